//! The comparison as a table for people.

use std::fmt::{self, Display, Formatter};

use super::Comparison;
use super::ratios::{Range, Ratio};
use super::runs::Run;
use crate::report::short;

impl Comparison {
    /// The whole comparison as text.
    pub(super) fn table(&self) -> impl Display {
        Table(self)
    }

    /// Whether both sides did the same, in words.
    pub(super) fn sameness(&self) -> String {
        let words = &self.work.words;
        if self.work.is_same() {
            return format!("the same work on both sides: {words}");
        }
        format!("NOT the same work, ratios mean little: {}", self.work.differences.join("; "))
    }

    /// How far the ratios can be told from noise, in words.
    pub(super) fn noise_words(&self) -> String {
        match self.a.len() {
            1 => "one run of A: noise is not known, give two or more of each".to_owned(),
            2 => "noise: the one ratio of 2 runs of A; three or more of each tell more".to_owned(),
            count => format!("noise: the range of ratios among {count} runs of A"),
        }
    }
}

struct Table<'c>(&'c Comparison);

impl Display for Table<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let comparison = self.0;
        writeln!(out, "{}", comparison.sameness())?;
        for (side, runs) in [("A", &comparison.a), ("B", &comparison.b)] {
            runs.iter().try_for_each(|run| run_line(out, side, run))?;
        }
        notes(out, comparison)?;
        let columns = ["A", "B", "B/A", "range", "among A"];
        write!(out, "\n{:<30}", "medians")?;
        columns.iter().try_for_each(|column| write!(out, " {column:>17}"))?;
        writeln!(out)?;
        comparison.ratios.iter().try_for_each(|ratio| row(out, ratio))?;
        writeln!(out, "{}", comparison.noise_words())?;
        if comparison.is_of_knees() {
            return Ok(());
        }
        writeln!(out, "\nanswers of A and B: {}", comparison.answers.words())?;
        if comparison.a.len() > 1 {
            writeln!(out, "answers among A: {}", comparison.answers_noise.words())?;
        }
        Ok(())
    }
}

fn run_line(out: &mut Formatter<'_>, side: &str, run: &Run) -> fmt::Result {
    let build =
        run.at("/server/build").and_then(|build| build.as_str()).unwrap_or("build not known");
    writeln!(out, "{side}: {}, {}, {build}, seed {}", run.file, run.word("url"), run.word("seed"))
}

/// What runs say of themselves, each once with the runs that say it.
fn notes(out: &mut Formatter<'_>, comparison: &Comparison) -> fmt::Result {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for (side, runs) in [("A", &comparison.a), ("B", &comparison.b)] {
        for (number, run) in runs.iter().enumerate() {
            let name = format!("{side}{}", number + 1);
            for note in run.notes() {
                match notes.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, names)) => names.push(name.clone()),
                    None => notes.push((note, vec![name.clone()])),
                }
            }
        }
    }
    notes.iter().try_for_each(|(note, of)| writeln!(out, "note of {}: {note}", of.join(", ")))
}

fn row(out: &mut Formatter<'_>, ratio: &Ratio) -> fmt::Result {
    let value = |value: Option<f64>| value.map_or("-".to_owned(), short);
    let meaning = ratio.meaning().as_str();
    writeln!(
        out,
        "{:<30} {:>17} {:>17} {:>17} {:>17} {:>17}  {meaning}",
        ratio.measure.name,
        value(ratio.a),
        value(ratio.b),
        times(ratio.median),
        range(ratio.range),
        range(ratio.noise),
    )
}

/// A ratio as text.
pub(super) fn times(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"))
}

/// A range of ratios as text.
pub(super) fn range(range: Option<Range>) -> String {
    range.map_or("-".to_owned(), |(low, high)| format!("{low:.3}-{high:.3}"))
}
