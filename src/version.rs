//! What this binary was built from: version, commit and features, as `build.rs` found them.

/// Short hash and day of the commit, as `abc123456 2026-11-30`; empty where it is not known. Changes
/// that were not committed are not told.
pub const COMMIT: &str = env!("DOCKET_COMMIT");

/// The features of the build, sorted and separated by commas; empty where there are none.
pub const FEATURES: &str = env!("DOCKET_FEATURES");

/// All of it in a line, as `0.1.0 (abc123456 2026-11-30; features: cuda)`.
pub const LINE: &str = env!("DOCKET_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_version_commit_and_features() {
        let listed = if cfg!(feature = "cuda") { "cuda" } else { "" };
        assert_eq!(FEATURES, listed);
        let known = if COMMIT.is_empty() { String::new() } else { format!("{COMMIT}; ") };
        let listed = if listed.is_empty() { "none" } else { listed };
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(LINE, format!("{version} ({known}features: {listed})"));
    }
}
