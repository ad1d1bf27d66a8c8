//! What the user called a model: a catalogue name, a place on the hub, or a path.

use std::fmt;
use std::path::{Path, PathBuf};

use super::catalogue::{self, CATALOGUE, CatalogueModel};
use super::error::PullError;

/// A model as it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelRef {
    /// A name of the catalogue.
    Catalogue(&'static CatalogueModel),
    /// `hf:OWNER/REPO[:FILE]`.
    Hub {
        /// `OWNER/REPO`.
        repo: String,
        /// A GGUF file of it; `None` for its safetensors.
        file: Option<String>,
    },
    /// A GGUF file or a folder of safetensors.
    Path(PathBuf),
}

impl ModelRef {
    /// Understands what was typed.
    ///
    /// # Errors
    /// [`PullError::Unknown`] when it is no known name and no path, [`PullError::Reference`] when
    /// it begins as a hub reference and is none.
    pub fn parse(text: &str) -> Result<Self, PullError> {
        if let Some(model) = catalogue::by_name(text) {
            return Ok(Self::Catalogue(model));
        }
        if let Some(place) = text.strip_prefix("hf:") {
            return parse_hub(text, place);
        }
        let path = Path::new(text);
        let looks_like_a_path = text.contains(std::path::MAIN_SEPARATOR)
            || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
        if looks_like_a_path || path.exists() {
            return Ok(Self::Path(path.to_owned()));
        }
        let known = CATALOGUE.iter().map(|model| model.name).collect();
        Err(PullError::Unknown { name: text.to_owned(), known })
    }

    /// Name of its folder in the store.
    pub fn slug(&self) -> String {
        slug(&self.to_string())
    }

    /// The name it is served under unless the user says otherwise.
    pub fn served_name(&self) -> String {
        match self {
            Self::Catalogue(model) => model.name.to_owned(),
            Self::Hub { repo, .. } => repo.clone(),
            Self::Path(path) => {
                let name = path.file_stem().unwrap_or(path.as_os_str());
                name.to_string_lossy().into_owned()
            }
        }
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Catalogue(model) => formatter.write_str(model.name),
            Self::Hub { repo, file: None } => write!(formatter, "hf:{repo}"),
            Self::Hub { repo, file: Some(file) } => write!(formatter, "hf:{repo}:{file}"),
            Self::Path(path) => write!(formatter, "{}", path.display()),
        }
    }
}

/// A name as one path component: what is not a letter, digit, `.`, `_` or `-` becomes `-`; for a
/// hub reference `/` becomes `--`, so that two references differ as their folders do.
pub(crate) fn slug(name: &str) -> String {
    name.replace('/', "--").replace(|c: char| !is_plain(c), "-")
}

fn parse_hub(text: &str, place: &str) -> Result<ModelRef, PullError> {
    let fault = |message: &str| {
        Err(PullError::Reference { reference: text.to_owned(), message: message.to_owned() })
    };
    let (repo, file) = match place.split_once(':') {
        Some((repo, file)) => (repo, Some(file)),
        None => (place, None),
    };
    match repo.split_once('/') {
        Some((owner, name)) if is_component(owner) && is_component(name) => {}
        _ => return fault("expected hf:OWNER/REPO or hf:OWNER/REPO:FILE"),
    }
    if file.is_some_and(|file| !file.split('/').all(is_component)) {
        return fault("the file must be a path of letters, digits, '.', '_' and '-'");
    }
    if file.is_some_and(|file| !file.to_ascii_lowercase().ends_with(".gguf")) {
        return fault("the file must be a .gguf; name the repository alone for its safetensors");
    }
    Ok(ModelRef::Hub { repo: repo.to_owned(), file: file.map(str::to_owned) })
}

fn is_component(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('.') && text.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_name_a_hub_reference_and_a_path_are_told_apart() {
        let named = ModelRef::parse("smollm2:135m").unwrap();
        assert_eq!(
            (named.served_name(), named.slug()),
            ("smollm2:135m".into(), "smollm2-135m".into())
        );
        let hub = ModelRef::parse("hf:Owner/Repo-GGUF:sub/x.Q8_0.gguf").unwrap();
        assert_eq!(hub.slug(), "hf-Owner--Repo-GGUF-sub--x.Q8_0.gguf");
        assert_eq!(hub.to_string(), "hf:Owner/Repo-GGUF:sub/x.Q8_0.gguf");
        assert_eq!(hub.served_name(), "Owner/Repo-GGUF");
        let path = ModelRef::parse("here/Tiny.gguf").unwrap();
        assert_eq!(path, ModelRef::Path(PathBuf::from("here/Tiny.gguf")));
        assert_eq!(path.served_name(), "Tiny");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = ModelRef::parse("llama-900b").unwrap_err().to_string();
        assert!(error.contains("llama-900b") && error.contains("qwen2.5-coder:1.5b"), "{error}");
    }

    #[test]
    fn a_hub_reference_cannot_leave_its_folder() {
        for text in ["hf:a", "hf:a/b/c", "hf:../b", "hf:a/b:../x.gguf", "hf:a/b:/x.gguf", "hf:a/b:"]
        {
            assert!(matches!(ModelRef::parse(text), Err(PullError::Reference { .. })), "{text}");
        }
        assert!(ModelRef::parse("hf:a/b:x.bin").unwrap_err().to_string().contains(".gguf"));
    }
}
