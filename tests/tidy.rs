//! House rules which no other tool checks: file heads, sizes, names, walls between crates, and that
//! the docs name what the code has.
//!
//! Goal: a reader can trust the folder tree and the docs. Method: read the sources as text.

use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 400;
const BANNED_NAMES: [&str; 8] =
    ["utils", "util", "helpers", "common", "misc", "manager", "data", "info"];
const BANNED_IN_ACTORS: [&str; 5] = ["candle", "tokenizers", "axum", "serde", "serde_json"];

#[cfg(test)]
mod support {
    use super::{Path, PathBuf, fs};

    pub(crate) fn root() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
    }

    pub(crate) fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// All files below `folder` with this extension.
    pub(crate) fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![root().join(folder)];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let (inner, files): (Vec<_>, Vec<_>) =
                entries.map(|entry| entry.path()).partition(|path| path.is_dir());
            let built = |path: &PathBuf| path.ends_with("target") || path.ends_with("node_modules");
            folders.extend(inner.into_iter().filter(|path| !built(path)));
            found.extend(
                files.into_iter().filter(|path| path.extension().is_some_and(|e| e == extension)),
            );
        }
        found.sort();
        found
    }

    pub(crate) fn sources() -> Vec<PathBuf> {
        ["src", "actors", "tests", "loadtest"].iter().flat_map(|f| files(f, "rs")).collect()
    }
}

fn assert_none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}:\n{}", faults.join("\n"));
}

#[test]
fn every_source_file_says_first_what_it_is() {
    let faults: Vec<String> = support::sources()
        .into_iter()
        .filter(|path| !support::read(path).starts_with("//!"))
        .map(|path| path.display().to_string())
        .collect();
    assert_none("files that do not begin with a module doc", &faults);
}

#[test]
fn no_source_file_is_too_long() {
    let faults: Vec<String> = support::sources()
        .into_iter()
        .map(|path| (support::read(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .map(|(lines, path)| format!("{}: {lines} lines, at most {LINES_MAX}", path.display()))
        .collect();
    assert_none("files over the limit", &faults);
}

#[test]
fn no_file_is_named_for_nothing() {
    let faults: Vec<String> = support::sources()
        .into_iter()
        .filter(|path| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_string();
            BANNED_NAMES.contains(&stem.as_str()) || stem == "mod"
        })
        .map(|path| path.display().to_string())
        .collect();
    assert_none("files with a name that says nothing", &faults);
}

#[test]
fn nothing_is_left_for_later_without_an_issue() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
    let left = |line: &str| words.iter().any(|word| line.contains(word)) && !line.contains('#');
    let mut faults = Vec::new();
    for path in support::sources().into_iter().filter(|path| !path.ends_with("tidy.rs")) {
        let text = support::read(&path);
        let lines = text.lines().filter(|line| left(line));
        faults.extend(lines.map(|line| format!("{}: {line}", path.display())));
    }
    assert_none("notes to ourselves", &faults);
}

#[test]
fn the_actors_know_no_tensor_and_no_wire() {
    let manifest = support::read(&support::root().join("actors/Cargo.toml"));
    let faults: Vec<String> = manifest
        .lines()
        .filter(|line| {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            BANNED_IN_ACTORS.iter().any(|banned| name == *banned || name.starts_with("candle"))
        })
        .map(str::to_owned)
        .collect();
    assert_none("dependencies that actors must not have", &faults);
}

#[test]
fn the_load_test_shares_no_code_with_the_server() {
    let manifest = support::read(&support::root().join("loadtest/Cargo.toml"));
    assert!(!manifest.contains("docket =") && !manifest.contains("actors"), "{manifest}");
}

#[test]
fn every_metric_is_in_the_operations_page() {
    let page = support::read(&support::root().join("docs/OPERATIONS.md"));
    let names = docket::telemetry::metric_names();
    let faults: Vec<String> = names
        .chain(docket::telemetry::gateway_metric_names())
        .filter(|name| !page.contains(&format!("`{name}`")))
        .map(str::to_owned)
        .collect();
    assert_none("metrics that docs/OPERATIONS.md does not name", &faults);
}

#[test]
fn every_route_is_in_the_api_page() {
    let page = support::read(&support::root().join("docs/API.md"));
    let document = docket::openapi::document(&docket::openapi::Served::default());
    let document: serde_json::Value = serde_json::from_str(&document).expect("it is JSON");
    let routes = document["paths"].as_object().expect("paths is an object");
    // Routes of a dialect are those of the root under its name.
    let at_root = |route: &&str| {
        let named = route.split('/').nth(1).unwrap_or_default();
        named.parse::<docket::dialect::Dialect>().is_err()
    };
    let routes = routes.keys().map(String::as_str).filter(at_root);
    let faults: Vec<&str> = routes.filter(|route| !page.contains(&format!("`{route}`"))).collect();
    assert!(faults.is_empty(), "routes that docs/API.md does not name: {faults:?}");
}

/// Reasons that no route of the document gives: there is no such route or dialect, or a gateway gives them.
const NO_ROUTE: [&str; 6] = [
    "unknown_dialect",
    "unknown_url",
    "no_backend",
    "gateway_full",
    "backend_lost",
    "backend_timeout",
];

/// A server with every kind of failure.
fn seeing() -> docket::openapi::Served {
    docket::openapi::Served { images_max: 1, needs_key: true, ..docket::openapi::Served::default() }
}

/// Error codes in a source: what follows each of the ways in which the sources name one.
fn error_codes(source: &str) -> Vec<String> {
    let calls = ["code: \"", "], \"", "usage(", "internal(", "detail("];
    let mut codes = Vec::new();
    for call in calls {
        for rest in source.split(call).skip(1) {
            let line = rest.split(['\n', ';']).next().unwrap_or_default();
            let texts: Vec<&str> = if call.ends_with('"') {
                line.split('"').take(1).collect()
            } else {
                line.split('"').skip(1).step_by(2).collect()
            };
            let is_code = |text: &&str| {
                text.len() > 3 && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            };
            codes.extend(texts.into_iter().filter(is_code).map(str::to_owned));
        }
    }
    // An argument on a line of its own, as the formatter breaks long calls.
    for line in source.lines().map(str::trim) {
        let alone = line.strip_prefix('"').and_then(|rest| rest.strip_suffix("\","));
        let is_code = |text: &&str| {
            text.contains('_') && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        };
        codes.extend(alone.filter(is_code).map(str::to_owned));
    }
    codes
}

#[test]
fn every_error_code_is_in_the_api_page() {
    let pages = ["docs/API.md", "docs/DECISIO.md"];
    let page = pages.map(|page| support::read(&support::root().join(page))).concat();
    let sources = ["src/dialect", "src/json", "src/decide", "src/tasks"]
        .map(|folder| support::files(folder, "rs"));
    let root = support::root();
    let is_test = |path: &Path| {
        let own = path.strip_prefix(&root).unwrap_or(path);
        own.to_string_lossy().contains("/tests")
    };
    let sources = sources.into_iter().flatten().filter(|path| !is_test(path));
    let own = |source: &str| source.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
    let codes: Vec<String> =
        sources.flat_map(|path| error_codes(&own(&support::read(&path)))).collect();
    for known in ["lone_surrogate", "samples_invalid", "body_too_large", "engine_dead", "too_long"]
    {
        assert!(codes.iter().any(|code| code == known), "{known} is not found in the sources");
    }
    let document = docket::openapi::document(&seeing());
    let undescribed = |code: &&String| {
        !NO_ROUTE.contains(&code.as_str()) && !document.contains(&format!("\"{code}\""))
    };
    let faults: Vec<String> = codes.iter().filter(undescribed).cloned().collect();
    assert_none("error codes that the OpenAPI document does not list", &faults);
    let faults: Vec<String> =
        codes.into_iter().filter(|code| !page.contains(&format!("`{code}`"))).collect();
    assert_none("error codes that neither docs/API.md nor docs/DECISIO.md names", &faults);
}

#[test]
fn every_page_is_reachable() {
    let root = support::root();
    let entry =
        support::read(&root.join("README.md")) + &support::read(&root.join("docs/ARCHITECTURE.md"));
    let faults: Vec<String> = support::files("docs", "md")
        .into_iter()
        .filter_map(|path| path.file_name().map(|n| n.to_string_lossy().to_string()))
        .filter(|name| name != "ARCHITECTURE.md" && !entry.contains(name.as_str()))
        .collect();
    assert_none("pages that neither README.md nor docs/ARCHITECTURE.md links", &faults);
}

#[test]
fn every_flag_of_serve_and_ask_is_in_the_operations_page() {
    let page = support::read(&support::root().join("docs/OPERATIONS.md"));
    let command = <docket::cli::Cli as clap::CommandFactory>::command();
    let mut faults = Vec::new();
    for (name, least) in [("serve", 20), ("gateway", 25), ("ask", 13), ("health", 2)] {
        let command = command.find_subcommand(name).expect("there is such a command");
        let names = command.get_arguments().filter_map(|flag| Some((flag.get_long()?, flag)));
        let mut flags = Vec::new();
        for (long, flag) in names {
            flags.push(format!("`--{long}`"));
            // Those of the servers follow from the flags' names.
            let variable = flag.get_env().filter(|_| !["serve", "gateway"].contains(&name));
            flags.extend(variable.map(|name| format!("`{}`", name.to_string_lossy())));
        }
        assert!(flags.len() >= least, "{flags:?}");
        faults.extend(flags.into_iter().filter(|flag| !page.contains(flag)));
    }
    assert_none("flags that docs/OPERATIONS.md does not name", &faults);
}

#[test]
fn every_flag_of_serve_is_in_the_explained_configuration_file() {
    let file = support::read(&support::root().join("docs/deploy/docket.toml"));
    let command = <docket::cli::Cli as clap::CommandFactory>::command();
    let serve = command.find_subcommand("serve").expect("there is a serve command");
    let flags = serve.get_arguments().filter_map(|flag| flag.get_long());
    let is_named = |flag: &&str| {
        let name = flag.replace('-', "_");
        let setting =
            |line: &str| line.trim_start_matches(['#', ' ']).split(" = ").next() == Some(&name);
        *flag == "config" || file.lines().any(setting)
    };
    let faults: Vec<String> = flags.filter(|flag| !is_named(flag)).map(str::to_owned).collect();
    assert_none("flags that docs/deploy/docket.toml does not have", &faults);
    let told = "docs/deploy/docket.toml is not what `docket config example` prints: write it anew";
    assert!(file == docket::cli::settings::example(), "{told}");
}

/// What a value of a flag is refused with that is far beyond every range.
fn range_in_the_code(flag: &str) -> Option<String> {
    ["9000h", "8TiB", "9000000000000000", "4000000000"].iter().find_map(|value| {
        let typed = ["docket", "serve", "--engine", "fake", flag, value];
        let cli = <docket::cli::Cli as clap::Parser>::try_parse_from(typed).ok()?;
        let docket::cli::Command::Serve(arguments) = cli.command else { return None };
        let faults = arguments.config(PathBuf::from("home")).err()?;
        let fault = faults.0.into_iter().find(|fault| fault.flag == flag)?;
        let (_, range) = fault.message.split_once("within ")?;
        let mut words: Vec<&str> = range.split(' ').collect();
        // Behind the flag that is a limit its value is said.
        if let Some(at) = words.iter().position(|word| word.starts_with("--")) {
            words.remove(at + 1);
        }
        Some(words.join(" "))
    })
}

#[test]
fn the_ranges_in_the_operations_page_are_those_of_the_code() {
    let page = support::read(&support::root().join("docs/OPERATIONS.md"));
    let command = <docket::cli::Cli as clap::CommandFactory>::command();
    let serve = command.find_subcommand("serve").expect("there is a serve command");
    let flags = serve.get_arguments().filter_map(|flag| flag.get_long());
    let mut faults = Vec::new();
    let mut seen = 0;
    for flag in flags.map(|name| format!("--{name}")).filter(|flag| flag != "--engine") {
        let Some(range) = range_in_the_code(&flag) else { continue };
        let row = page.lines().find(|line| line.starts_with(&format!("| `{flag}` |")));
        let cell = row.and_then(|row| row.split('|').nth(4)).unwrap_or_default();
        let told = cell.trim().replace('`', "");
        seen += 1;
        if told != range {
            faults.push(format!("{flag}: {range} in the code, {told:?} in the page"));
        }
    }
    assert!(seen > 20, "{seen}");
    assert_none("ranges that docs/OPERATIONS.md has otherwise", &faults);
}
