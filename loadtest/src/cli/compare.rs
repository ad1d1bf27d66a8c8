//! What was typed for a comparison.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;

/// Most reports of one side.
const REPORTS_MAX: usize = 64;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Compare {
    /// Reports (--json of open or closed, or all of knee): A, B, then further ones in the order in
    /// which they were measured: A B A B
    #[arg(value_name = "A.json B.json", conflicts_with_all = ["a", "b"])]
    pub(crate) files: Vec<PathBuf>,
    /// A report of side A; repeatable
    #[arg(long, value_name = "FILE", requires = "b")]
    pub(crate) a: Vec<PathBuf>,
    /// A report of side B; repeatable. The first is a pair with the first A, and so on
    #[arg(long, value_name = "FILE", requires = "a")]
    pub(crate) b: Vec<PathBuf>,
    /// Also write the comparison as JSON
    #[arg(long, value_name = "OUT")]
    pub(crate) json: Option<PathBuf>,
    /// Also write a page for people: one HTML file with plots
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,
}

impl Compare {
    /// The reports of both sides.
    ///
    /// # Errors
    /// When one side has none, or either too many.
    pub(crate) fn sides(&self) -> anyhow::Result<[Vec<PathBuf>; 2]> {
        let turn = |first: usize| self.files.iter().skip(first).step_by(2).cloned();
        let sides =
            [turn(0).chain(self.a.clone()).collect(), turn(1).chain(self.b.clone()).collect()];
        let count: [usize; 2] = sides.each_ref().map(Vec::<PathBuf>::len);
        ensure!(!count.contains(&0), "compare needs two reports: compare A.json B.json");
        ensure!(
            count.iter().all(|count| *count <= REPORTS_MAX),
            "{} reports of A and {} of B, at most {REPORTS_MAX} of each",
            count[0],
            count[1]
        );
        Ok(sides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn reports_without_a_side_take_turns() {
        let files = |names: &[&str]| Compare { files: paths(names), ..Compare::default() };
        let sides = files(&["1", "2", "3", "4", "5"]).sides().unwrap();
        assert_eq!(sides, [paths(&["1", "3", "5"]), paths(&["2", "4"])]);
        let named = Compare { a: paths(&["1", "2"]), b: paths(&["3"]), ..Compare::default() };
        assert_eq!(named.sides().unwrap(), [paths(&["1", "2"]), paths(&["3"])]);
        assert!(files(&["1"]).sides().unwrap_err().to_string().contains("needs two reports"));
    }

    #[test]
    fn the_number_of_reports_is_bounded() {
        let files = paths(&["x"; 2 * REPORTS_MAX + 2]);
        let fault = Compare { files, ..Compare::default() }.sides().unwrap_err().to_string();
        assert_eq!(fault, "65 reports of A and 65 of B, at most 64 of each");
    }
}
