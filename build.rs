//! The build script: tells the code which commit and which features it is built from.
//!
//! A binary should say what it is also when it was built from an archive, or in a container that has
//! no repository. The commit is, in this order, what `DOCKET_BUILD_COMMIT` says (empty: unknown), what
//! `git archive` wrote below, or what git says. Nothing is run again unless HEAD moves, and where that
//! is too often, `DOCKET_BUILD_COMMIT` ends it. Whether files were changed since the commit is not
//! told: every build would have to look.

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

/// What the commit is, where git cannot tell or should not be asked.
const OVERRIDE: &str = "DOCKET_BUILD_COMMIT";

/// `git archive` puts the commit here (.gitattributes).
const ARCHIVED: &str = "$Format:%h %cs$";

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "cargo::rerun-if-changed=build.rs")?;
    writeln!(out, "cargo::rerun-if-env-changed={OVERRIDE}")?;
    let told = env::var_os(OVERRIDE).map(|told| told.to_string_lossy().into_owned());
    let commit = match told.or_else(archived) {
        Some(commit) => commit,
        None => asked_of_git(&mut out)?,
    };
    // One line: what follows would be instructions to cargo.
    let commit = commit.lines().next().unwrap_or_default().trim();
    let features = features();
    let known = if commit.is_empty() { String::new() } else { format!("{commit}; ") };
    let listed = if features.is_empty() { "none" } else { &features };
    let version = env!("CARGO_PKG_VERSION");
    writeln!(out, "cargo::rustc-env=DOCKET_COMMIT={commit}")?;
    writeln!(out, "cargo::rustc-env=DOCKET_FEATURES={features}")?;
    writeln!(out, "cargo::rustc-env=DOCKET_VERSION={version} ({known}features: {listed})")
}

fn archived() -> Option<String> {
    (!ARCHIVED.starts_with('$')).then(|| ARCHIVED.to_owned())
}

/// Empty where there is no git, or where the repository that it finds has this one only as a folder.
fn asked_of_git(out: &mut impl Write) -> io::Result<String> {
    if git(&["rev-parse", "--show-prefix"]).is_none_or(|prefix| !prefix.is_empty()) {
        return Ok(String::new());
    }
    for path in moved_with_head() {
        writeln!(out, "cargo::rerun-if-changed={path}")?;
    }
    let told = ["-c", "log.showSignature=false", "log", "-1", "--abbrev=9", "--format=%h %cs"];
    Ok(git(&told).unwrap_or_default())
}

/// What changes when HEAD moves: its log, or, without logs, HEAD and all branches. Only what is there,
/// since cargo takes a file that is not for a changed one.
fn moved_with_head() -> Vec<String> {
    let path = |name: &&str| {
        let path = git(&["rev-parse", "--git-path", name])?;
        Path::new(&path).exists().then_some(path)
    };
    if let Some(log) = path(&"logs/HEAD") {
        return vec![log];
    }
    ["HEAD", "packed-refs", "refs/heads"].iter().filter_map(path).collect()
}

/// What git says about the folder of this file; `None` where it has nothing to say.
fn git(arguments: &[&str]) -> Option<String> {
    let root = env::var_os("CARGO_MANIFEST_DIR")?;
    let said = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    said.status.success().then(|| text.trim().to_owned())
}

/// The features of this build, sorted, separated by commas.
fn features() -> String {
    let mut names: Vec<String> = env::vars_os()
        .filter_map(|(name, _)| Some(name.to_str()?.strip_prefix("CARGO_FEATURE_")?.to_lowercase()))
        .filter(|name| name != "default")
        .collect();
    names.sort();
    names.join(",").replace('_', "-")
}
