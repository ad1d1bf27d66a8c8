//! The comparison of reports: A against B, by pairs of runs that did the same work.
//!
//! A ratio alone does not say whether something changed: what two runs of A differ by is noise, and
//! a difference within it is none.

mod agreement;
mod json;
mod measures;
mod page;
mod ratios;
mod runs;
mod table;
mod work;

use anyhow::bail;

use crate::cli::Compare;
use crate::{printed, report};
use agreement::Agreement;
use measures::measures;
use ratios::Ratio;
use runs::Run;
use work::Work;

/// Two sides, and what they differ by.
#[derive(Debug)]
struct Comparison {
    a: Vec<Run>,
    b: Vec<Run>,
    work: Work,
    ratios: Vec<Ratio>,
    /// Of the answers of A and B, and of runs of A among themselves.
    answers: Agreement,
    answers_noise: Agreement,
}

impl Comparison {
    fn of(a: Vec<Run>, b: Vec<Run>) -> Self {
        let ratios = measures(&a, &b).into_iter().filter_map(|measure| Ratio::of(measure, &a, &b));
        let answers = pairs(&a, &b).map(|(a, b)| Agreement::of(a, b));
        let among = a
            .iter()
            .enumerate()
            .flat_map(|(n, one)| a.iter().skip(n + 1).map(move |other| (one, other)));
        Self {
            work: Work::of(&a, &b),
            ratios: ratios.collect(),
            answers: answers.fold(Agreement::default(), Agreement::and),
            answers_noise: among
                .map(|(one, other)| Agreement::of(one, other))
                .fold(Agreement::default(), Agreement::and),
            a,
            b,
        }
    }

    /// Whether the reports are of searches for the knee.
    fn is_of_knees(&self) -> bool {
        self.a.first().is_some_and(Run::is_knee)
    }

    /// Ratio of a measure by its name.
    fn ratio(&self, name: &str) -> Option<&Ratio> {
        self.ratios.iter().find(|ratio| ratio.measure.name == name)
    }
}

/// Runs of A and B that were measured one after the other.
fn pairs<'r>(a: &'r [Run], b: &'r [Run]) -> impl Iterator<Item = (&'r Run, &'r Run)> {
    a.iter().zip(b)
}

/// Compares, prints, and writes what was asked for.
///
/// # Errors
/// When a report cannot be read, some are of runs and some of knees, or a file cannot be written.
pub(crate) fn run(files: &Compare) -> anyhow::Result<()> {
    let [a, b] = files.sides()?;
    let read = |paths: Vec<std::path::PathBuf>| paths.iter().map(|path| Run::read(path)).collect();
    let (a, b): (anyhow::Result<Vec<Run>>, anyhow::Result<Vec<Run>>) = (read(a), read(b));
    let (a, b) = (a?, b?);
    check(&a, &b)?;
    let comparison = Comparison::of(a, b);
    printed::line(comparison.table())?;
    if let Some(path) = &files.json {
        report::write(path, &report::json_text(&comparison.json())?)?;
    }
    if let Some(path) = &files.html {
        report::write(path, &comparison.html())?;
    }
    Ok(())
}

/// Reports of a run and of a search for the knee have nothing in common.
fn check(a: &[Run], b: &[Run]) -> anyhow::Result<()> {
    let knee = a.iter().chain(b).find(|run| run.is_knee());
    let other = a.iter().chain(b).find(|run| !run.is_knee());
    let Some((knee, other)) = knee.zip(other) else { return Ok(()) };
    bail!(
        "{} is a report of `knee` and {} one of `{}`: compare sets reports of `knee` against each \
         other, or reports of `open` or `closed`",
        knee.file,
        other.file,
        other.word("loop")
    )
}

#[cfg(test)]
mod tests;
