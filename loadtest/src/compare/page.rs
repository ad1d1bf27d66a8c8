//! The comparison as a page for people.

use serde_json::Value;

use super::Comparison;
use super::ratios::{Meaning, Ratio};
use super::runs::Run;
use super::table::{range, times};
use crate::html::{Axis, Card, Curve, Page, Plot, Span, curves, facts, spans, table};
use crate::machine::utc;
use crate::report::{percent, short};

/// How the note of every closed loop begins: that alone is no alarm.
const CLOSED_LOOP: &str = "closed loop: ";

/// Measures of the verdict, with their words and units.
const VERDICT: [(&str, &str, &str); 4] = [
    ("knee, requests/s", "knee", "/s"),
    ("decisions/s answered", "decisions/s", ""),
    ("latency p50, ms", "p50", " ms"),
    ("latency p99, ms", "p99", " ms"),
];

impl Comparison {
    /// The whole page.
    pub(super) fn html(&self) -> String {
        let workload = self.a.first().map(|run| run.word("workload")).unwrap_or_default();
        let mut cards = vec![self.first_look()];
        if !self.is_of_knees() {
            cards.extend([self.distributions(), self.agreement()]);
        }
        cards.push(self.all());
        cards.extend([("A", &self.a), ("B", &self.b)].map(|(side, runs)| runs_card(side, runs)));
        let page = Page {
            title: format!("B against A: {workload}"),
            verdict: self.verdict(),
            trust: format!("{}; {}.{}", self.sameness(), self.noise_words(), self.doubt_words()),
            is_doubtful: !self.work.is_same() || self.doubtful_runs() > 0,
            tiles: self.tiles(),
            cards,
        };
        page.html()
    }

    fn doubt_words(&self) -> String {
        match self.doubtful_runs() {
            0 => String::new(),
            count => format!(
                " {count} of {} runs say themselves that their numbers are to be read with care, see \
                 below.",
                self.a.len() + self.b.len()
            ),
        }
    }

    fn doubtful_runs(&self) -> usize {
        let is_doubtful = |run: &&Run| run.notes().any(|note| !note.starts_with(CLOSED_LOOP));
        self.a.iter().chain(&self.b).filter(is_doubtful).count()
    }

    fn verdict(&self) -> String {
        let meaning = |ratio: &Ratio| {
            let says_nothing = !self.work.is_same() || ratio.meaning() == Meaning::NoiseUnknown;
            if says_nothing { String::new() } else { format!(", {}", ratio.meaning().as_str()) }
        };
        let one = |(name, words, unit): (&str, &str, &str)| {
            let ratio = self.ratio(name)?;
            let (a, b) = (ratio.a.map(short)?, ratio.b.map(short)?);
            ratio.median?;
            Some(format!("{words} {a} to {b}{unit} ({}x{})", times(ratio.median), meaning(ratio)))
        };
        let parts: Vec<String> = VERDICT.into_iter().filter_map(one).collect();
        let answers = self.answers.top_share();
        let answers = answers.map(|top| {
            format!(
                " Both chose the same in {} of {} questions.",
                percent(top),
                self.answers.questions
            )
        });
        let name = |runs: &[Run]| runs.first().map(Run::server_words).unwrap_or_default();
        format!(
            "A is {}, B is {}. From A to B: {}.{}",
            name(&self.a),
            name(&self.b),
            parts.join("; "),
            answers.unwrap_or_default()
        )
    }

    fn tiles(&self) -> Vec<(String, String)> {
        let one = |(name, words, _): (&str, &str, &str)| {
            let median = self.ratio(name)?.median?;
            Some((format!("{}x", times(Some(median))), format!("{words}, B to A")))
        };
        let mut tiles: Vec<_> = VERDICT.into_iter().filter_map(one).collect();
        tiles.extend(
            self.answers.top_share().map(|top| (percent(top), "same top choice".to_owned())),
        );
        tiles.extend(
            self.answers
                .dp_mean()
                .map(|mean| (format!("{mean:.4}"), "mean |dp| of a probability".to_owned())),
        );
        tiles
    }

    /// The ratios of the most telling measures.
    fn first_look(&self) -> String {
        let main = self.ratios.iter().filter(|ratio| ratio.measure.is_main);
        let span = |ratio: &Ratio| {
            let colour = match ratio.meaning() {
                Meaning::Better => 0,
                Meaning::Worse => 3,
                Meaning::WithinNoise
                | Meaning::Different
                | Meaning::NoiseUnknown
                | Meaning::Equal
                | Meaning::NoRatio => 6,
            };
            let meaning = ratio.meaning().as_str();
            let (name, words) =
                (ratio.measure.name.clone(), format!("{} {meaning}", times(ratio.median)));
            Some(Span {
                name,
                words,
                colour,
                at: ratio.median?,
                range: ratio.range?,
                noise: ratio.noise,
            })
        };
        let found: Vec<Span> = main.filter_map(span).collect();
        let caption = "How many times A's value B has, logarithmic: the dot is the median of the \
                       pairs, the bar their range, the band what runs of A differ by.";
        let legend = [
            (0, "better".to_owned()),
            (3, "worse".to_owned()),
            (6, "within noise, or noise unknown".to_owned()),
        ];
        let body = spans(&found);
        Card { title: "B to A", caption, legend: &legend, body: &body, ..Card::default() }.html()
    }

    /// The distributions of latency of all runs.
    fn distributions(&self) -> String {
        let sides = [(0, &self.a), (3, &self.b)];
        let curve = |(colour, run): (usize, &Run)| Curve {
            colour,
            points: points(run),
            ..Curve::default()
        };
        let runs =
            sides.into_iter().flat_map(|(colour, runs)| runs.iter().map(move |run| (colour, run)));
        let lines: Vec<Curve> = runs.map(curve).filter(|curve| !curve.points.is_empty()).collect();
        let ms = lines.iter().flat_map(|curve| curve.points.iter().map(|(ms, _)| *ms));
        let x = Axis::log("latency, ms (logarithmic)", ms);
        let plot = Plot::new(
            "Share of the answered by latency, A and B",
            x,
            Axis::until("% of the answered", 100.0),
        );
        let body = curves(plot, &lines, &[]);
        let legend = [(0, "A".to_owned()), (3, "B".to_owned())];
        let caption = "Latency of the answered requests, a line a run; further left is better.";
        Card {
            title: "How long answers took",
            caption,
            legend: &legend,
            body: &body,
            ..Card::default()
        }
        .html()
    }

    fn agreement(&self) -> String {
        let mut found = vec![("A and B", self.answers.words())];
        if self.a.len() > 1 {
            found.push(("among A", self.answers_noise.words()));
        }
        let caption = "Answers of the same decisions, question by question; |dp| is the difference \
                       of a probability.";
        Card {
            title: "Whether they answered the same",
            caption,
            body: &facts(&found),
            is_wide: true,
            ..Card::default()
        }
        .html()
    }

    fn all(&self) -> String {
        let value = |value: Option<f64>| value.map_or("-".to_owned(), short);
        let row = |ratio: &Ratio| {
            let name = ratio.measure.name.clone();
            let (a, b, meaning) =
                (value(ratio.a), value(ratio.b), ratio.meaning().as_str().to_owned());
            vec![name, a, b, times(ratio.median), range(ratio.range), range(ratio.noise), meaning]
        };
        let head = ["median", "A", "B", "B/A", "range of pairs", "range among A", ""];
        let body = table(&head, &self.ratios.iter().map(row).collect::<Vec<_>>());
        Card { title: "All measures", body: &body, is_wide: true, ..Card::default() }.html()
    }
}

/// Points of a run's distribution.
fn points(run: &Run) -> Vec<(f64, Option<f64>)> {
    let points = run.at("/all/latency_cdf").and_then(Value::as_array).into_iter().flatten();
    let numbers =
        points.filter_map(|point| Some((point.get(0)?.as_f64()?, point.get(1)?.as_f64()?)));
    numbers.map(|(ms, share)| (ms, Some(share * 100.0))).collect()
}

/// What the runs of a side were.
fn runs_card(side: &str, runs: &[Run]) -> String {
    let word = |run: &Run, pointer: &str| {
        let value = run.at(pointer).filter(|value| !value.is_null());
        value.map_or("not known".to_owned(), |value| {
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        })
    };
    let one = |run: &Run| {
        let began = run
            .at("/machine/began_unix_s")
            .and_then(Value::as_u64)
            .map_or("not known".to_owned(), utc);
        let notes: Vec<&str> = run.notes().collect();
        let words = format!(
            "{}, seed {}, began {began}, build {}, on {} with {} cores, load average before {}",
            word(run, "/run/url"),
            word(run, "/run/seed"),
            word(run, "/server/build"),
            word(run, "/machine/processor"),
            word(run, "/machine/cores"),
            word(run, "/machine/load_average_before"),
        );
        if notes.is_empty() { words } else { format!("{words}; note: {}", notes.join("; ")) }
    };
    let found: Vec<(&str, String)> = runs.iter().map(|run| (run.file.as_str(), one(run))).collect();
    let title = format!("Runs of {side}");
    Card { title: &title, body: &facts(&found), is_wide: true, ..Card::default() }.html()
}
