//! The report as a table for people.

use std::fmt::{self, Display, Formatter};

use super::{Loop, Report, seconds};
use crate::exchange::Outcome;
use crate::measure::{Fairness, Group, Stage, Times};

impl Report {
    /// The whole report as text.
    pub(crate) fn table(&self) -> impl Display {
        Table(self)
    }
}

struct Table<'r>(&'r Report);

impl Display for Table<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        head(out, report)?;
        ends(out, report)?;
        latencies(out, report)?;
        stages(out, report)?;
        groups(out, report)?;
        fairness(out, report)?;
        refusals(out, report)?;
        report.retries.write(out)?;
        server(out, report)?;
        generator(out, report)
    }
}

fn head(out: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let Report { workload, url, seed, .. } = report;
    let driver = report.driver.driver.as_str();
    match report.kind {
        Loop::Open { rate, duration, .. } => {
            let arrivals = &report.arrivals;
            writeln!(
                out,
                "open loop, {workload}, {arrivals} arrivals of {rate}/s for {duration:?}, \
                 seed {seed}, {url}, {driver}"
            )?;
        }
        Loop::Closed { clients, .. } => {
            writeln!(
                out,
                "closed loop, {workload}, {clients} clients, seed {seed}, {url}, {driver}"
            )?;
        }
    }
    writeln!(
        out,
        "offered {:.1} requests/s, achieved {:.1} decisions/s and {:.1} answers/s in {:.2} s; last end after {:.2} s",
        report.offered_rate(),
        report.achieved_rate(),
        report.answers_rate(),
        seconds(report.load),
        seconds(report.whole),
    )
}

/// Every request's one end.
fn ends(out: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let measures = &report.measures;
    write!(out, "{} requests:", report.sent())?;
    for outcome in Outcome::ALL {
        let count = measures.all.counts.of(outcome);
        if count > 0 || outcome == Outcome::Answered {
            write!(out, " {count} {}", outcome.as_str())?;
        }
    }
    if measures.warm_up > 0 {
        write!(out, "; beside them {} in the warm-up", measures.warm_up)?;
    }
    let prewarms = &measures.prewarms.counts;
    if prewarms.sum() > 0 {
        write!(
            out,
            "; prewarms: {} of {} answered",
            prewarms.of(Outcome::Answered),
            prewarms.sum()
        )?;
    }
    let all = &measures.all;
    writeln!(out, "\ntokens: {} computed, {} cached", all.computed_tokens, all.cached_tokens)?;
    let readout = &measures.readout;
    if let Some(mass) = readout.label_mass() {
        writeln!(
            out,
            "letters: {} HTTP requests, label mass {mass:.3}, {} options not among the likeliest tokens",
            readout.parts, readout.options_unseen
        )?;
    }
    match &measures.first_fault {
        Some(fault) => writeln!(out, "first fault: {fault}"),
        None => Ok(()),
    }
}

fn titles(out: &mut Formatter<'_>, title: &str) -> fmt::Result {
    let columns = ["p50", "p90", "p99", "p99.9", "max", "mean", "count"];
    write!(out, "\n{title:<22}")?;
    columns.iter().try_for_each(|column| write!(out, "{column:>10}"))?;
    writeln!(out)
}

fn row(out: &mut Formatter<'_>, name: &str, times: &Times) -> fmt::Result {
    write!(out, "{name:<22}")?;
    let told = |ms: f64| if times.count() > 0 { format!("{ms:.2}") } else { "-".to_owned() };
    for share in [0.5, 0.9, 0.99, 0.999, 1.0] {
        write!(out, "{:>10}", told(times.ms(share)))?;
    }
    writeln!(out, "{:>10}{:>10}", told(times.mean_ms()), times.count())
}

fn latencies(out: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    titles(out, "answered, ms")?;
    match report.kind {
        Loop::Open { .. } => row(out, "from intended start", &report.measures.all.latency)?,
        Loop::Closed { .. } => {}
    }
    row(out, "from sending", &report.measures.service)?;
    for (kind, name, group) in report.groups().filter(|(_, _, group)| group.latency.count() > 0) {
        row(out, &format!("{kind} {name}"), &group.latency)?;
    }
    Ok(())
}

fn stages(out: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let stages = &report.measures.stages;
    if stages.total.count() == 0 {
        return writeln!(out, "\nthe server does not say where its time went");
    }
    titles(out, "where it went, ms")?;
    for stage in stages.told().filter(|stage| *stage != Stage::Unexplained) {
        row(out, &stage.title(), stages.of(stage))?;
    }
    row(out, "total, by the server", &stages.total)?;
    row(out, "unexplained", stages.of(Stage::Unexplained))?;
    let untold = Stage::ALL.into_iter().filter(|stage| stages.of(*stage).count() == 0);
    let untold: Vec<String> = untold.map(Stage::title).collect();
    if !untold.is_empty() {
        writeln!(out, "the server does not tell its {}", untold.join(", "))?;
    }
    stages_by_lane(out, report)
}

/// Means, where there is more than one lane.
fn stages_by_lane(out: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    if report.measures.lanes.len() < 2 {
        return Ok(());
    }
    write!(out, "\n{:<22}", "mean by lane, ms")?;
    let told: Vec<Stage> = report.measures.stages.told().collect();
    told.iter().try_for_each(|stage| write!(out, "{:>12}", stage.title()))?;
    writeln!(out)?;
    for (lane, group) in &report.measures.lanes {
        write!(out, "{:<22}", format!("lane {lane}"))?;
        for mean in told.iter().map(|stage| group.stages.mean_ms(*stage)) {
            let mean = mean.map_or("-".to_owned(), |mean| format!("{mean:.2}"));
            write!(out, "{mean:>12}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn groups(out: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let columns = ["sent", "answered", "refused", "good", "computed", "cached", "under load"];
    write!(out, "\n{:<22}", "by lane and tenant")?;
    columns.iter().try_for_each(|column| write!(out, "{column:>11}"))?;
    writeln!(out)?;
    for (kind, name, group) in report.groups() {
        write!(out, "{:<22}", format!("{kind} {name}"))?;
        group_row(out, group)?;
    }
    writeln!(
        out,
        "good: answered within the limit, of those admitted; under load: tokens computed after the \
         warm-up and while requests started"
    )
}

fn group_row(out: &mut Formatter<'_>, group: &Group) -> fmt::Result {
    let Group { counts, computed_tokens, cached_tokens, loaded_tokens, .. } = group;
    let good = group.goodput().map_or("-".to_owned(), |good| format!("{good:.3}"));
    let (answered, refused) = (counts.of(Outcome::Answered), counts.of(Outcome::Refused));
    write!(out, "{:>11}{answered:>11}{refused:>11}{good:>11}", counts.sum())?;
    writeln!(out, "{computed_tokens:>11}{cached_tokens:>11}{loaded_tokens:>11}")
}

/// How evenly the tenants were served, where there is more than one.
fn fairness(out: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let name = |tenant: usize| report.tenants.get(tenant).map_or("?", String::as_str);
    let mut line = |what: &str, of: Option<Fairness>| match of {
        Some(Fairness { jain, gap, least, most }) => writeln!(
            out,
            "fairness of {what}: Jain {jain:.3}, largest gap {gap:.1}: {} {:.1}, {} {:.1}",
            name(least.0),
            least.1,
            name(most.0),
            most.1,
        ),
        None => Ok(()),
    };
    line("tokens computed under load per weight", report.fairness_of_tokens())?;
    line("mean latencies, ms", report.fairness_of_latency())
}

fn refusals(out: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let measures = &report.measures;
    if measures.statuses.keys().any(|status| *status != 200) {
        write!(out, "\nstatuses:")?;
        measures.statuses.iter().try_for_each(|(status, n)| write!(out, " {n} x {status}"))?;
        write!(out, "; reasons:")?;
        measures.reasons.iter().try_for_each(|(reason, n)| write!(out, " {n} x {reason}"))?;
        writeln!(out)?;
    }
    let waits = &measures.retry_after;
    if waits.count() + measures.retry_after_missing > 0 {
        let (half, most) = (waits.ms(0.5), waits.ms(1.0));
        let missing = measures.retry_after_missing;
        writeln!(
            out,
            "retry after: p50 {half:.0} ms, max {most:.0} ms, {missing} refusals without"
        )?;
    }
    Ok(())
}

/// What the server used and computed twice, as far as that is known.
fn server(out: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let found = report.measures.prefill.duplicates();
    let by_server = report.server.duplicate_tokens;
    let told = |tokens: Option<u64>| tokens.map_or("not told".to_owned(), |n| n.to_string());
    writeln!(
        out,
        "\nstate tokens computed twice: {} by the server's count, {} by the answers ({} of {} \
         states told enough)",
        told(by_server),
        told((found.states_told > 0).then_some(found.tokens)),
        found.states_told,
        found.states,
    )?;
    let Some(usage) = &report.server.usage else {
        return writeln!(out, "server: processor time and memory are not known");
    };
    let per_decision = report.server_cpu_ms().map_or("-".to_owned(), |ms| format!("{ms:.2}"));
    let (cores, mib) = (usage.cores(), |bytes: u64| bytes >> 20);
    let ever = usage.rss_bytes_ever.map(|bytes| format!(", {} MiB since its start", mib(bytes)));
    let (name, pid) = (usage.name.as_deref().unwrap_or("by its metrics"), usage.pid);
    let pid = pid.map_or(String::new(), |pid| format!(" {pid}"));
    writeln!(
        out,
        "server: {name}{pid}, {cores:.2} cores, {per_decision} ms of a core a decision; memory at \
         most {} MiB{}",
        mib(usage.rss_bytes_max),
        ever.unwrap_or_default(),
    )
}

fn generator(out: &mut Formatter<'_>, report: &Report) -> fmt::Result {
    let lag = &report.measures.lag;
    let waits = &report.measures.connection_wait;
    writeln!(
        out,
        "\ngenerator: start lag p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms; {} waited for a connection, max {:.3} ms; {:.0} % of one core",
        lag.ms(0.5),
        lag.ms(0.99),
        lag.ms(1.0),
        waits.count(),
        waits.ms(1.0),
        report.cpu_share() * 100.0
    )?;
    report.doubts().iter().try_for_each(|doubt| writeln!(out, "note: {doubt}"))
}
