//! The plots and tables of one run's page.

use std::time::Duration;

use super::super::{Loop, Report, percent, short};
use crate::exchange::Outcome;
use crate::html::{
    Axis, Bins, Card, Curve, Layer, Plot, Rule, Shares, curves, facts, shares, stacked, table,
};
use crate::measure::{Bin, Counts, Fairness, Group, Series, Stage};

/// Most bins of a plot over time.
const BINS_MAX: usize = 120;
/// Most tenants that have a bar.
const TENANTS_MAX: usize = 32;
/// Colours of the stages, in their order.
const STAGE_COLOURS: [usize; Stage::ALL.len()] = [3, 0, 1, 4, 2, 6, 7];
/// Colours of lanes, in their order; the first is that of all.
const LANE_COLOURS: [usize; 6] = [6, 0, 1, 2, 3, 4];

/// A distribution with its colour and name.
type Named<'n> = (usize, &'n str, Vec<(f64, f64)>);

/// All of them, in the order of the page.
pub(super) fn cards(report: &Report) -> Vec<String> {
    let series = report.measures.series.thinned(BINS_MAX);
    let mut cards = vec![
        distribution(report),
        waits(report, &series),
        outcomes(report, &series),
        latency(&series),
    ];
    cards.extend(tenants(report));
    cards.push(groups(report));
    let body = facts(&report.facts());
    cards.push(Card { title: "The run", body: &body, is_wide: true, ..Card::default() }.html());
    cards
}

/// The distribution of latency, by lane.
fn distribution(report: &Report) -> String {
    let lanes: Vec<(&str, &Group)> =
        report.measures.lanes.iter().map(|(lane, group)| (*lane, group)).collect();
    let all = ("all", &report.measures.all);
    let groups = if lanes.len() > 1 { [vec![all], lanes].concat() } else { vec![all] };
    let groups = groups.into_iter().filter(|(_, group)| group.latency.count() > 0);
    let colours = if report.measures.lanes.len() > 1 { &LANE_COLOURS[..] } else { &[0][..] };
    let named: Vec<Named<'_>> = groups
        .zip(colours)
        .map(|((name, group), colour)| (*colour, name, group.latency.cdf()))
        .collect();
    let ms = || named.iter().flat_map(|(_, _, cdf)| cdf.iter().map(|(ms, _)| *ms));
    let plot = Plot::new(
        "Share of the answered requests by latency",
        Axis::log("latency, ms (logarithmic)", ms()),
        Axis::until("% of the answered", 100.0),
    );
    let lines: Vec<Curve> = named
        .iter()
        .map(|(colour, _, cdf)| Curve {
            colour: *colour,
            points: cdf.iter().map(|(ms, share)| (*ms, Some(share * 100.0))).collect(),
            ..Curve::default()
        })
        .collect();
    let body = curves(plot, &lines, &[Rule::At(99.0, "p99")]);
    let words = |(colour, name, cdf): &Named<'_>| {
        let at =
            |share: f64| cdf.iter().find(|point| point.1 >= share).map_or(0.0, |point| point.0);
        (*colour, format!("{name}: p50 {} ms, p99 {} ms", short(at(0.5)), short(at(0.99))))
    };
    let legend: Vec<(usize, String)> = named.iter().map(words).collect();
    let from = match report.kind {
        Loop::Open { .. } => "from the intended start",
        Loop::Closed { .. } => "from sending",
    };
    let caption =
        format!("Latency {from} to the last byte, of the answered; further left is better.");
    Card {
        title: "How long answers took",
        caption: &caption,
        legend: &legend,
        body: &body,
        ..Card::default()
    }
    .html()
}

/// Where the time went, over time.
fn waits(report: &Report, series: &Series) -> String {
    let title = "Where the time went";
    if report.measures.stages.total.count() == 0 {
        let caption = "The server does not say where its time went: it sends neither Server-Timing \
                       nor x-docket-*-ms.";
        return Card { title, caption, ..Card::default() }.html();
    }
    let layer = |(stage, colour): (Stage, usize)| Layer {
        colour,
        name: stage.title(),
        values: series.bins().iter().map(|bin| bin.stage_ms(stage)).collect(),
    };
    let told: Vec<(Stage, usize)> =
        report.measures.stages.told().map(|stage| (stage, STAGE_COLOURS[stage as usize])).collect();
    let layers: Vec<Layer> = told.iter().copied().map(layer).collect();
    let body =
        stacked("Mean time by stage over the run", "mean, ms", when(report, series), &layers);
    let means = |stage: Stage| short(report.measures.stages.of(stage).mean_ms());
    let legend: Vec<_> = told
        .into_iter()
        .map(|(stage, colour)| (colour, format!("{} {} ms", stage.title(), means(stage))))
        .collect();
    let caption = "Mean time of the requests that were answered in each moment, from first sending \
                   them, by the server's own stages, as far as it tells them; what it does not \
                   explain is network, kernel, HTTP and the generator. Beside the names: means of \
                   the whole run.";
    Card { title, caption, legend: &legend, body: &body, ..Card::default() }.html()
}

/// When the bins of a series are.
fn when(report: &Report, series: &Series) -> Bins {
    Bins { width_s: series.width().as_secs_f64(), last_start_s: report.load.as_secs_f64() }
}

/// How requests ended, over time.
fn outcomes(report: &Report, series: &Series) -> String {
    type Of = fn(&Counts) -> u64;
    let kinds: [(usize, &str, Of); 4] = [
        (0, "answered", |ends| ends.of(Outcome::Answered)),
        (1, "refused", |ends| ends.of(Outcome::Refused)),
        (3, "failed or too late", Counts::lost),
        (6, "left by themselves", |ends| ends.of(Outcome::Disconnected)),
    ];
    let width_s = series.width().as_secs_f64();
    let all = |of: Of| series.bins().iter().map(|bin| of(&bin.ends)).sum::<u64>();
    let seen: Vec<_> =
        kinds.into_iter().filter(|(colour, _, of)| *colour == 0 || all(*of) > 0).collect();
    let layer = |(colour, name, of): &(usize, &str, Of)| Layer {
        colour: *colour,
        name: (*name).to_owned(),
        values: series.bins().iter().map(|bin| Some(of(&bin.ends) as f64 / width_s)).collect(),
    };
    let layers: Vec<Layer> = seen.iter().map(layer).collect();
    let body =
        stacked("Ends of requests over the run", "requests/s", when(report, series), &layers);
    let legend: Vec<_> =
        seen.iter().map(|(colour, name, of)| (*colour, format!("{name}: {}", all(*of)))).collect();
    let caption =
        "Requests by the moment in which they ended. The last bin may be shorter than the others.";
    Card { title: "How requests ended", caption, legend: &legend, body: &body, ..Card::default() }
        .html()
}

/// Latency over time.
fn latency(series: &Series) -> String {
    let width = series.width().as_secs_f64();
    let middle = |bin: usize| (bin as f64 + 0.5) * width;
    let points = |of: fn(&Bin) -> Option<f64>| {
        series.bins().iter().enumerate().map(|(bin, it)| (middle(bin), of(it))).collect::<Vec<_>>()
    };
    let (mean, p99) = (points(Bin::mean_ms), points(Bin::p99_ms));
    let values = || mean.iter().chain(&p99).filter_map(|(_, ms)| *ms);
    let end = series.bins().len() as f64 * width;
    let plot = Plot::new(
        "Latency over the run",
        Axis::until("seconds since the warm-up", end),
        Axis::log("ms (logarithmic)", values()),
    );
    let has_dots = series.bins().len() < 4;
    let curve = |colour, points| Curve { colour, points, has_dots, ..Curve::default() };
    let body = curves(plot, &[curve(0, mean.clone()), curve(3, p99.clone())], &[]);
    let legend = [(0, "mean".to_owned()), (3, "p99 (to 6 %)".to_owned())];
    let width = Duration::from_secs_f64(width);
    let caption = format!(
        "Of the requests that were answered in each {width:?}. A line that climbs is a queue that \
         grows."
    );
    Card {
        title: "Latency over time",
        caption: &caption,
        legend: &legend,
        body: &body,
        ..Card::default()
    }
    .html()
}

/// What each tenant got; nothing where there is one.
fn tenants(report: &Report) -> Option<String> {
    let (unit, found) = report.shares();
    if found.len() < 2 {
        return None;
    }
    let row = |share: &super::super::Share<'_>| {
        (share.tenant.to_owned(), share.served, share.offered, share.fair)
    };
    let rows: Vec<_> = found.iter().take(TENANTS_MAX).map(row).collect();
    let bars = rows.iter().map(|(name, served, asked, fair)| Shares {
        name,
        served: *served,
        asked: *asked,
        fair: *fair,
    });
    let body = shares(&bars.collect::<Vec<_>>());
    let jain =
        |of: Option<Fairness>| of.map_or("not known".to_owned(), |of| format!("{:.3}", of.jain));
    let hidden = match found.len().saturating_sub(TENANTS_MAX) {
        0 => String::new(),
        more => format!(" {more} more are not shown."),
    };
    let caption = format!(
        "Share of the {unit}; the mark is the share by weight. A tenant that asks for less than \
         its share leaves the rest to the others. Jain's index (1 is even): {} of tokens per \
         weight, {} of mean latencies.{hidden}",
        jain(report.fairness_of_tokens()),
        jain(report.fairness_of_latency()),
    );
    let legend = [(0, "got".to_owned()), (7, "asked for, in requests".to_owned())];
    Some(
        Card {
            title: "What each tenant got",
            caption: &caption,
            legend: &legend,
            body: &body,
            ..Card::default()
        }
        .html(),
    )
}

/// All numbers by lane and tenant.
fn groups(report: &Report) -> String {
    let mut head = vec!["", "sent", "answered", "refused", "failed", "good"];
    head.extend(["p50 ms", "p90 ms", "p99 ms", "max ms"]);
    head.extend(["queue ms", "state ms", "engine wait ms", "engine ms", "computed", "cached"]);
    let all = [("", "all", &report.measures.all)].into_iter();
    let rows: Vec<Vec<String>> =
        all.chain(report.groups()).map(|(kind, name, group)| row(kind, name, group)).collect();
    let body = table(&head, &rows);
    let caption = "good: answered within the limit, of those admitted; stages are means; computed \
                   and cached are tokens.";
    Card { title: "By lane and tenant", caption, body: &body, is_wide: true, ..Card::default() }
        .html()
}

fn row(kind: &str, name: &str, group: &Group) -> Vec<String> {
    let counts = &group.counts;
    let mut row = vec![format!("{kind} {name}").trim().to_owned(), counts.sum().to_string()];
    let ends = [counts.of(Outcome::Answered), counts.of(Outcome::Refused), counts.lost()];
    row.extend(ends.map(|count| count.to_string()));
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    row.push(or_dash(group.goodput().map(percent)));
    let is_answered = group.latency.count() > 0;
    let times =
        [0.5, 0.9, 0.99, 1.0].map(|share| is_answered.then(|| short(group.latency.ms(share))));
    row.extend(times.map(or_dash));
    let stages = [Stage::Queue, Stage::State, Stage::EngineWait, Stage::Engine];
    row.extend(stages.map(|stage| or_dash(group.stages.mean_ms(stage).map(short))));
    row.extend([group.computed_tokens, group.cached_tokens].map(|tokens| tokens.to_string()));
    row
}
