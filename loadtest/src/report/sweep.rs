//! The report of a search for the knee: a run at each rate that was tried.

use std::fmt::{self, Display, Formatter};

use serde_json::{Value, json};

use super::{Loop, Report};
use crate::exchange::Outcome;

/// Runs at rising rates, and the highest that holds.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// In the order in which they ran.
    pub(crate) steps: Vec<Report>,
    /// The highest rate that held, of those below the lowest that did not.
    pub(crate) knee: Option<f64>,
    /// The lowest rate that did not hold; none where all did.
    pub(crate) failed: Option<f64>,
    /// What a step must have to hold.
    pub(crate) goodput: f64,
    /// Largest ratio, less one, of `failed` to `knee` that was wanted.
    pub(crate) precision: f64,
    /// What is to be known about the search, in words.
    pub(crate) notes: Vec<String>,
}

/// The titles over a [`Report::step_row`].
pub(crate) const STEP_TITLES: &str = concat!(
    "    rate/s   offered  achieved   goodput    p50 ms    p99 ms",
    "  answered   refused     other"
);

impl Report {
    /// The rate that was asked for.
    fn rate(&self) -> f64 {
        match self.kind {
            Loop::Open { rate, .. } => rate,
            Loop::Closed { .. } => self.offered_rate(),
        }
    }

    /// Share of the requests with a limit that were answered within it, the refused ones included;
    /// 0 where there is none.
    pub(crate) fn offered_goodput(&self) -> f64 {
        self.measures.all.offered_goodput().unwrap_or(0.0)
    }

    /// One line of a sweep, without its end.
    pub(crate) fn step_row(&self, goodput: f64) -> impl Display {
        let all = &self.measures.all;
        let (answered, refused) = (self.answered(), all.counts.of(Outcome::Refused));
        let word = if self.offered_goodput() >= goodput { "holds" } else { "fails" };
        // The note is printed below the table.
        let note = if self.doubts().is_empty() { "" } else { ", see notes" };
        format!(
            "{:>10}{:>10.1}{:>10.1}{:>10.3}{:>10.1}{:>10.1}{answered:>10}{refused:>10}{:>10}  \
             {word}{note}",
            self.rate(),
            self.offered_rate(),
            self.achieved_rate(),
            self.offered_goodput(),
            all.latency.ms(0.5),
            all.latency.ms(0.99),
            self.sent() - answered - refused,
        )
    }
}

impl Sweep {
    /// The whole sweep as text, by rate.
    pub(crate) fn table(&self) -> impl Display {
        Table(self)
    }

    /// The whole sweep, with the whole report of every step.
    pub(crate) fn json(&self) -> Value {
        let step = |report: &Report| {
            let mut step = report.json();
            step["holds"] = json!(report.offered_goodput() >= self.goodput);
            step
        };
        json!({
            "knee": self.knee,
            "failed": self.failed,
            "goodput": self.goodput,
            "precision": self.precision,
            "is_found": self.is_found(),
            "notes": self.all_notes(),
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
        })
    }

    /// The whole sweep as a page.
    pub(crate) fn html(&self) -> String {
        super::html::sweep::page(&self.steps, self.goodput, self.knee)
    }

    /// Whether a rate that holds and one that does not are as near as was wanted.
    pub(crate) fn is_found(&self) -> bool {
        let (Some(knee), Some(failed)) = (self.knee, self.failed) else { return false };
        failed <= knee * (1.0 + self.precision)
    }

    /// The result in a sentence.
    pub(crate) fn verdict(&self) -> String {
        let (goodput, tried) = (self.goodput, self.steps.len());
        match (self.knee, self.failed) {
            (Some(knee), Some(failed)) => format!(
                "the knee is at {knee} requests/s: the highest rate at which a share of {goodput} \
                 is good ({failed}/s is too much{})",
                if self.is_found() {
                    ""
                } else {
                    ", the search ended before it was as near as wanted"
                }
            ),
            (Some(knee), None) => format!(
                "the knee is over {knee} requests/s, the highest rate of {tried} steps: none failed"
            ),
            (None, failed) => format!(
                "no knee: the goodput is below {goodput} even at {} requests/s",
                failed.unwrap_or(0.0)
            ),
        }
    }

    fn by_rate(&self) -> Vec<&Report> {
        let mut steps: Vec<&Report> = self.steps.iter().collect();
        steps.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        steps
    }

    /// The search's notes, and whatever makes a step's numbers the generator's.
    fn all_notes(&self) -> Vec<String> {
        let of_step = |step: &&Report| {
            let rate = step.rate();
            step.doubts().into_iter().map(move |doubt| format!("at {rate}/s: {doubt}"))
        };
        let steps = self.by_rate();
        self.notes.iter().cloned().chain(steps.iter().flat_map(of_step)).collect()
    }
}

struct Table<'s>(&'s Sweep);

impl Display for Table<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let sweep = self.0;
        if let Some(first) = sweep.steps.first() {
            writeln!(
                out,
                "sweep of {}, {} arrivals, {} steps, {}",
                first.workload,
                first.arrivals,
                sweep.steps.len(),
                first.url
            )?;
        }
        writeln!(out, "{STEP_TITLES}")?;
        sweep
            .by_rate()
            .iter()
            .try_for_each(|step| writeln!(out, "{}", step.step_row(sweep.goodput)))?;
        writeln!(
            out,
            "goodput: answered within the limit, of all that were offered; a refusal is not good"
        )?;
        sweep.all_notes().iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
        writeln!(out, "\n{}", sweep.verdict())
    }
}
