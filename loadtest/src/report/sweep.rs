//! The report of a search for the knee: a run at each rate that was tried.

use std::fmt::{self, Display, Formatter};

use serde_json::{Value, json};

use super::{Loop, Report};
use crate::exchange::Outcome;
use crate::knee::Aim;

/// Runs at rising rates, and the highest that holds.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// In the order in which they ran; the second try of a rate comes right after the first.
    pub(crate) steps: Vec<Report>,
    /// The highest rate that held, of those below the lowest that did not.
    pub(crate) knee: Option<f64>,
    /// The lowest rate that did not hold; none where all did.
    pub(crate) failed: Option<f64>,
    /// What was looked for.
    pub(crate) aim: Aim,
    /// Whether Ctrl-C ended it before its end.
    pub(crate) is_interrupted: bool,
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
    pub(super) fn rate(&self) -> f64 {
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

    /// One line of a sweep, without its end; a step that fails may be tried again.
    pub(crate) fn step_row(&self, goodput: f64, is_tried_again: bool) -> impl Display {
        let all = &self.measures.all;
        let (answered, refused) = (self.answered(), all.counts.of(Outcome::Refused));
        let word = match (self.offered_goodput() >= goodput, is_tried_again) {
            (true, _) => "holds",
            (false, true) => "fails, tried again",
            (false, false) => "fails",
        };
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
        let step = |(number, report): (usize, &Report)| {
            let mut step = report.json();
            step["holds"] = json!(self.holds(report));
            step["try"] = json!(if self.is_second(number) { 2 } else { 1 });
            step
        };
        let (again, held) = self.tried_again();
        json!({
            "run": self.run(),
            "knee": self.knee,
            "failed": self.failed,
            "goodput": self.aim.goodput,
            "precision": self.aim.precision,
            "is_found": self.is_found(),
            "verdict": self.verdict(),
            "rates_tried_again": again,
            "rates_held_at_second_try": held,
            "notes": self.all_notes(),
            "steps": self.steps.iter().enumerate().map(step).collect::<Vec<_>>(),
        })
    }

    /// The settings of the search: those of a step, but its rate and seed.
    fn run(&self) -> Value {
        let Aim { from, goodput, precision, pause, seed, .. } = self.aim;
        let mut run = self.steps.first().map_or_else(|| json!({}), Report::run);
        if let Some(settings) = run.as_object_mut() {
            settings.remove("rate");
        }
        run["loop"] = json!("knee");
        run["from"] = json!(from);
        run["goodput"] = json!(goodput);
        run["precision"] = json!(precision);
        run["pause_s"] = json!(pause.as_secs_f64());
        run["seed"] = json!(seed);
        run
    }

    /// The whole sweep as a page.
    pub(crate) fn html(&self) -> String {
        super::html::sweep::page(self)
    }

    /// Whether a step has the goodput that is wanted.
    pub(super) fn holds(&self, step: &Report) -> bool {
        step.offered_goodput() >= self.aim.goodput
    }

    /// What came of a step, and whether the generator doubts it.
    pub(super) fn word(&self, number: usize) -> &'static str {
        let Some(step) = self.steps.get(number) else { return "" };
        match (self.holds(step), self.is_second(number + 1), step.doubts().is_empty()) {
            (true, _, true) => "holds",
            (true, _, false) => "holds ?",
            (false, true, true) => "fails, tried again",
            (false, true, false) => "fails ?, tried again",
            (false, false, true) => "fails",
            (false, false, false) => "fails ?",
        }
    }

    /// What makes the steps doubtful between which the knee lies: then it may be the generator's own.
    pub(super) fn doubts_at_knee(&self) -> Vec<String> {
        let is_at = |step: &&Report| {
            let at = [self.knee, self.failed];
            at.into_iter().flatten().any(|rate| rate.total_cmp(&step.rate()).is_eq())
        };
        let doubts = |step: &Report| {
            let rate = step.rate();
            step.doubts().into_iter().map(move |doubt| format!("at {rate}/s: {doubt}"))
        };
        let mut found: Vec<String> = self.steps.iter().filter(is_at).flat_map(doubts).collect();
        found.dedup();
        found
    }

    /// Whether a step is the second try of a rate.
    pub(super) fn is_second(&self, number: usize) -> bool {
        let rate = |number: usize| self.steps.get(number).map(Report::rate);
        let before = number.checked_sub(1).and_then(rate);
        before.zip(rate(number)).is_some_and(|(before, own)| before.total_cmp(&own).is_eq())
    }

    /// The rates that were tried twice, and those of them that held then.
    fn tried_again(&self) -> (usize, usize) {
        let seconds = || (0..self.steps.len()).filter(|number| self.is_second(*number));
        let held = seconds().filter(|number| self.holds(&self.steps[*number]));
        (seconds().count(), held.count())
    }

    /// The same in words; none where every rate was tried once.
    pub(super) fn again_words(&self) -> Option<String> {
        let (again, held) = self.tried_again();
        (again > 0).then(|| {
            format!(
                "rates tried again: {again}, of which {held} had their goodput then; a rate is too \
                 much only where it was so twice, which favours the server a little"
            )
        })
    }

    /// Whether a rate that holds and one that does not are as near as was wanted.
    pub(crate) fn is_found(&self) -> bool {
        let (Some(knee), Some(failed)) = (self.knee, self.failed) else { return false };
        failed <= knee * (1.0 + self.aim.precision)
    }

    /// The result in a sentence.
    pub(crate) fn verdict(&self) -> String {
        let goodput = self.aim.goodput;
        let tried = self.steps.len() - self.tried_again().0;
        match (self.knee, self.failed) {
            (Some(knee), Some(failed)) => format!(
                "the knee is at {knee} requests/s: the highest rate at which a share of {goodput} \
                 is good ({failed}/s is too much{}){}",
                if self.is_found() {
                    ""
                } else {
                    ", the search ended before it was as near as wanted"
                },
                if self.doubts_at_knee().is_empty() {
                    ""
                } else {
                    "; it may be the generator's own, see the notes of these rates"
                }
            ),
            (Some(knee), None) => format!(
                "the knee is over {knee} requests/s, the highest of {tried} rates: none failed"
            ),
            (None, failed) => format!(
                "no knee: the goodput is below {goodput} even at {} requests/s",
                failed.unwrap_or(0.0)
            ),
        }
    }

    /// Numbers of the steps by rate.
    fn by_rate(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..self.steps.len()).collect();
        numbers.sort_by(|a, b| self.steps[*a].rate().total_cmp(&self.steps[*b].rate()));
        numbers
    }

    /// The search's notes, and whatever makes a step's numbers the generator's.
    pub(super) fn all_notes(&self) -> Vec<String> {
        let of_step = |number: usize| {
            let step = &self.steps[number];
            let again = if self.is_second(number) { ", tried again" } else { "" };
            let at = format!("at {}/s{again}", step.rate());
            step.doubts().into_iter().map(move |doubt| format!("{at}: {doubt}"))
        };
        self.notes.iter().cloned().chain(self.by_rate().into_iter().flat_map(of_step)).collect()
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
        for number in sweep.by_rate() {
            let is_tried_again = sweep.is_second(number + 1);
            let row = sweep.steps[number].step_row(sweep.aim.goodput, is_tried_again);
            writeln!(out, "{row}")?;
        }
        writeln!(
            out,
            "goodput: answered within the limit, of all that were offered; a refusal is not good"
        )?;
        if let Some(words) = sweep.again_words() {
            writeln!(out, "{words}")?;
        }
        sweep.all_notes().iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
        writeln!(out, "\n{}", sweep.verdict())
    }
}
