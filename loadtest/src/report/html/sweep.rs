//! The page of a rate sweep: how the server does as more is asked of it, and where it breaks.

use super::super::{Report, Sweep, percent, short, time};
use crate::exchange::Outcome;
use crate::html::{Axis, Card, Curve, Page, Plot, Rule, curves, facts, table};

/// One step of a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// Requests a second that were to be offered, and decisions that were answered.
    pub(crate) rate: f64,
    pub(crate) achieved: f64,
    /// Share of the offered that were answered within their limit.
    pub(crate) goodput: Option<f64>,
    pub(crate) p99_ms: f64,
}

impl Point {
    /// Of a step's report.
    pub(crate) fn of(step: &Report) -> Self {
        Self {
            rate: step.rate(),
            achieved: step.achieved_rate(),
            goodput: step.measures.all.offered_goodput(),
            p99_ms: step.measures.all.latency.ms(0.99),
        }
    }
}

/// The page of a sweep: its steps in the order in which they ran, the goodput that is wanted, and
/// the highest rate that has it.
pub(crate) fn page(sweep: &Sweep) -> String {
    let (steps, wanted, knee) = (&sweep.steps, sweep.aim.goodput, sweep.knee);
    // Of a rate that was tried twice the second try is what counts.
    let last = steps.iter().enumerate().filter(|(number, _)| !sweep.is_second(number + 1));
    let points: Vec<Point> = last.map(|(_, step)| Point::of(step)).collect();
    let workload = steps.first().map_or("", |step| step.workload.as_str());
    let most = points.iter().map(|point| point.achieved).fold(0.0, f64::max);
    let verdict = match knee {
        Some(knee) => format!(
            "Up to {}/s at least {} of what was offered was answered within its limit. The most \
             that was answered at any rate was {}/s.",
            short(knee),
            percent(wanted),
            short(most)
        ),
        None => format!(
            "At no rate that was tried was {} of what was offered answered within its limit.",
            percent(wanted)
        ),
    };
    let doubts = doubts(sweep);
    let trust = if doubts.is_empty() {
        "The generator kept its times at every rate: the numbers are the server's.".to_owned()
    } else {
        format!("Read with care: {}.", doubts.join("; "))
    };
    let mut cards = plots(&points, wanted, knee);
    cards.push(steps_table(sweep));
    if let Some(last) = steps.last() {
        let body = facts(&last.facts());
        cards.push(
            Card { title: "The last step", body: &body, is_wide: true, ..Card::default() }.html(),
        );
    }
    Page {
        title: format!("Rate sweep: {workload}"),
        verdict,
        trust,
        is_doubtful: !doubts.is_empty(),
        tiles: tiles(sweep, most),
        cards,
    }
    .html()
}

/// What makes the search doubtful, in a few words: how many steps are, and why those are between which
/// the knee lies. The table of steps marks the others.
fn doubts(sweep: &Sweep) -> Vec<String> {
    let mut doubts = sweep.notes.clone();
    let count = sweep.steps.iter().filter(|step| !step.doubts().is_empty()).count();
    if count > 0 {
        doubts.push(format!("{count} of {} steps are marked in the table", sweep.steps.len()));
    }
    doubts.extend(sweep.doubts_at_knee());
    doubts
}

fn tiles(sweep: &Sweep, most: f64) -> Vec<(String, String)> {
    let rates = (0..sweep.steps.len()).filter(|number| !sweep.is_second(*number)).count();
    let mut tiles = vec![
        (
            sweep.knee.map_or("none".to_owned(), |knee| format!("{}/s", short(knee))),
            "knee: the highest rate that is good",
        ),
        (format!("{}/s", short(most)), "most decisions answered"),
        (rates.to_string(), "rates tried"),
    ];
    let is_knee = |step: &&Report| {
        let is_rate = sweep.knee.is_some_and(|knee| step.rate().total_cmp(&knee).is_eq());
        is_rate && sweep.holds(step)
    };
    let at_knee = sweep.steps.iter().find(is_knee).map(|step| step.measures.all.latency.ms(0.99));
    tiles.extend(at_knee.map(|p99_ms| (time(p99_ms), "p99 at the knee")));
    tiles.into_iter().map(|(value, what)| (value, what.to_owned())).collect()
}

/// Goodput, latency and what was answered against the rate that was offered.
pub(crate) fn plots(points: &[Point], wanted: f64, knee: Option<f64>) -> Vec<String> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let high = sorted.last().map_or(1.0, |point| point.rate);
    let knee_words = knee.map(|knee| format!("knee {}/s", short(knee)));
    let upright =
        || knee.zip(knee_words.as_deref()).map(|(knee, words)| Rule::Upright(knee, words));
    let draw = |y: Axis,
                name: &str,
                colour,
                of: &dyn Fn(&Point) -> Option<f64>,
                rule: Option<Rule<'_>>| {
        let words = |point: &Point| {
            format!(
                "{}/s offered: {}/s answered, p99 {}, good {}",
                short(point.rate),
                short(point.achieved),
                time(point.p99_ms),
                point.goodput.map_or("-".to_owned(), percent)
            )
        };
        let curve = Curve {
            colour,
            points: sorted.iter().map(|point| (point.rate, of(point))).collect(),
            has_dots: true,
            words: sorted.iter().map(words).collect(),
        };
        let rules: Vec<Rule<'_>> = upright().into_iter().chain(rule).collect();
        curves(Plot::new(name, Axis::linear("requests/s offered", high), y), &[curve], &rules)
    };
    let target = format!("wanted: {}", percent(wanted));
    let good = draw(
        Axis::until("% answered within their limit", 100.0),
        "Goodput by rate",
        0,
        &|point| point.goodput.map(|good| good * 100.0),
        Some(Rule::At(wanted * 100.0, &target)),
    );
    let p99 = sorted.iter().map(|point| point.p99_ms);
    let p99 = draw(
        Axis::log("p99, ms (logarithmic)", p99),
        "p99 by rate",
        3,
        &|point| Some(point.p99_ms),
        None,
    );
    let achieved = draw(
        Axis::linear("decisions/s answered", high),
        "Answered by rate",
        2,
        &|point| Some(point.achieved),
        None,
    );
    let card = |title, caption, body: &str| Card { title, caption, body, ..Card::default() }.html();
    vec![
        card("How much of it was good", "Of the offered; what was refused is not good.", &good),
        card(
            "How long the slowest hundredth took",
            "Latency from the intended start, of the answered.",
            &p99,
        ),
        card("How much was answered", "Where it bends, the server gives no more.", &achieved),
    ]
}

fn steps_table(sweep: &Sweep) -> String {
    let head = [
        "wanted/s",
        "",
        "offered/s",
        "answered/s",
        "good",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "max ms",
        "refused",
        "failed",
        "seed",
    ];
    let row = |(number, step): (usize, &Report)| {
        let (all, latency) = (&step.measures.all, &step.measures.all.latency);
        let mut row = vec![short(step.rate()), sweep.word(number).to_owned()];
        row.extend([short(step.offered_rate()), short(step.achieved_rate())]);
        row.push(all.offered_goodput().map_or("-".to_owned(), percent));
        row.extend([0.5, 0.9, 0.99, 1.0].map(|share| short(latency.ms(share))));
        row.extend(
            [all.counts.of(Outcome::Refused), all.counts.lost(), step.seed].map(|n| n.to_string()),
        );
        row
    };
    let body = table(&head, &sweep.steps.iter().enumerate().map(row).collect::<Vec<_>>());
    let again = sweep.again_words().map_or(String::new(), |words| format!(" {words}."));
    let caption = &format!(
        "In the order in which they ran; ? where the generator doubts its numbers.{again}"
    );
    Card { title: "Steps", caption, body: &body, is_wide: true, ..Card::default() }.html()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::Loop;
    use super::*;
    use crate::html::tests::check;
    use crate::knee::Aim;

    #[test]
    fn the_plots_stand_on_points_in_any_order_without_goodput_too() {
        let point =
            |rate: f64, goodput| Point { rate, achieved: rate.min(50.0), goodput, p99_ms: rate };
        let points = [point(80.0, Some(0.5)), point(20.0, Some(1.0)), point(40.0, None)];
        for (points, knee) in [(&points[..], Some(40.0)), (&[], None)] {
            let plots = plots(points, 0.95, knee);
            assert_eq!(plots.len(), 3);
            for plot in &plots {
                check(plot);
            }
            assert_eq!(plots[0].matches("<circle").count(), points.len().saturating_sub(1));
            assert_eq!(plots[1].contains("knee 40.0/s"), knee.is_some());
        }
    }

    #[test]
    fn a_page_says_the_knee_or_that_there_is_none() {
        let sweep = |knee| Sweep {
            steps: vec![Report { workload: "<w>".to_owned(), ..Report::default() }],
            aim: Aim { goodput: 0.95, ..Aim::default() },
            knee,
            ..Sweep::default()
        };
        let found = page(&sweep(Some(120.0)));
        check(&found);
        assert!(
            found.contains("Up to 120/s at least 95 %") && found.contains("&lt;w&gt;"),
            "{found}"
        );
        let none = page(&sweep(None));
        assert!(none.contains("At no rate that was tried was 95 %"), "{none}");
        check(&page(&Sweep::default()));
    }

    #[test]
    fn p99_at_the_knee_is_that_of_the_step_that_held_there() {
        let step = |rate, within_limit, p99_ms| {
            let (duration, connections) = (Duration::from_secs(1), 1);
            let kind = Loop::Open { rate, duration, connections };
            let mut step = Report { kind, ..Report::default() };
            (step.measures.all.wanted, step.measures.all.within_limit) = (2, within_limit);
            step.measures.all.latency.add(Duration::from_millis(p99_ms));
            step
        };
        // Tried twice at 100; a rate that fails is as near as five percent.
        let steps = vec![step(100.0, 1, 7_000), step(100.0, 2, 30), step(104.0, 1, 9_000)];
        let aim = Aim { goodput: 0.95, ..Aim::default() };
        let sweep = Sweep { steps, aim, knee: Some(100.0), ..Sweep::default() };
        let page = page(&sweep);
        check(&page);
        assert!(page.contains("<b>30.0 ms</b><span>p99 at the knee"), "{page}");
        assert!(page.contains("<b>2</b><span>rates tried"), "{page}");
        assert!(page.contains("rates tried again: 1, of which 1 had"), "{page}");
    }
}
