//! What is compared: the measures that both sides have.

use super::runs::{Run, part};

/// Which direction is an improvement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    More,
    Less,
    /// Neither is better by itself.
    Neither,
}

/// A measure: what it is called, and where it stands in a report.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measure {
    pub(super) name: String,
    /// JSON pointers of the value, and of what it is divided by.
    of: String,
    per: Option<&'static str>,
    /// Of its unit in a report to that of its name.
    unit: f64,
    pub(super) better: Better,
    /// Whether it belongs on a first look.
    pub(super) is_main: bool,
    /// Whether its values are steps of a search, no finer than its precision.
    is_searched: bool,
}

impl Default for Measure {
    fn default() -> Self {
        let (name, of, per, better) = (String::new(), String::new(), None, Neither);
        Self { name, of, per, unit: 1.0, better, is_main: false, is_searched: false }
    }
}

impl Measure {
    /// Its value in a report.
    pub(super) fn value(&self, run: &Run) -> Option<f64> {
        let value = run.number(&self.of)? / self.unit;
        let Some(per) = self.per else { return Some(value) };
        run.number(per).filter(|per| *per > 0.0).map(|per| value / per)
    }

    /// By what share two values may differ that are the same.
    pub(super) fn precision(&self, run: &Run) -> f64 {
        let precision = run.number("/precision").filter(|_| self.is_searched);
        precision.unwrap_or(0.0)
    }
}

/// Bytes of one.
const MIB: f64 = 1_048_576.0;

use Better::{Less, More, Neither};

/// Of the whole run: name, place, direction, and whether it is on the first look.
const WHOLE: [(&str, &str, Better, bool); 27] = [
    ("requests/s offered", "/offered_rate", Neither, false),
    ("decisions/s answered", "/achieved_rate", More, true),
    ("questions/s answered", "/answers_rate", More, false),
    ("good of admitted", "/all/goodput", More, true),
    ("good of offered", "/all/offered_goodput", More, false),
    ("latency mean, ms", "/all/latency_ms/mean", Less, true),
    ("latency p50, ms", "/all/latency_ms/p50", Less, true),
    ("latency p90, ms", "/all/latency_ms/p90", Less, true),
    ("latency p99, ms", "/all/latency_ms/p99", Less, true),
    ("latency p99.9, ms", "/all/latency_ms/p99.9", Less, false),
    ("latency longest, ms", "/all/latency_ms/max", Less, false),
    ("queue wait mean, ms", "/stages_ms/queue_wait/mean", Less, true),
    ("queue wait p99, ms", "/stages_ms/queue_wait/p99", Less, false),
    ("state wait mean, ms", "/stages_ms/state_wait/mean", Less, true),
    ("state wait p99, ms", "/stages_ms/state_wait/p99", Less, false),
    ("engine wait mean, ms", "/stages_ms/engine_wait/mean", Less, true),
    ("engine wait p99, ms", "/stages_ms/engine_wait/p99", Less, false),
    ("engine time mean, ms", "/stages_ms/engine_time/mean", Less, true),
    ("engine time p99, ms", "/stages_ms/engine_time/p99", Less, false),
    ("other mean, ms", "/stages_ms/other/mean", Less, false),
    ("unexplained mean, ms", "/stages_ms/unexplained/mean", Less, false),
    ("computed twice, by server", "/duplicate_prefill/by_server_tokens", Less, false),
    ("computed twice, by answers", "/duplicate_prefill/by_client_tokens", Less, false),
    ("Jain of tokens", "/fairness/computed_tokens_under_load_per_weight/jain", More, false),
    ("server cores", "/server/cores", Neither, false),
    ("server ms of a core/decision", "/server/cpu_ms_per_decision", Less, true),
    ("server memory, MiB", "/server/rss_bytes_max", Less, true),
];

/// Of the whole run, a request.
const PER_REQUEST: [(&str, &str, Better); 6] = [
    ("share answered", "/all/outcomes/answered", More),
    ("share refused", "/all/outcomes/refused", Less),
    ("share expired", "/all/outcomes/expired", Less),
    ("share failed", "/all/outcomes/failed", Less),
    ("computed tokens/request", "/all/computed_tokens", Less),
    ("cached tokens/request", "/all/cached_tokens", More),
];

/// Of each lane and tenant.
const OF_GROUP: [(&str, &str, Better); 3] = [
    ("p50, ms", "latency_ms/p50", Less),
    ("p99, ms", "latency_ms/p99", Less),
    ("good", "goodput", More),
];

/// Of a search for the knee, and of the step that held there. The rates of two of those differ, and
/// so their latencies say nothing.
const OF_KNEE: [(&str, &str, Better); 7] = [
    ("answered/s at the knee", "/at_knee/achieved_rate", More),
    ("good of offered at the knee", "/at_knee/all/offered_goodput", Neither),
    ("p50 at the knee, ms", "/at_knee/all/latency_ms/p50", Neither),
    ("p99 at the knee, ms", "/at_knee/all/latency_ms/p99", Neither),
    ("cores at the knee", "/at_knee/server/cores", Neither),
    ("ms of a core/decision there", "/at_knee/server/cpu_ms_per_decision", Less),
    ("memory at the knee, MiB", "/at_knee/server/rss_bytes_max", Less),
];

/// Those that a report of each side has.
pub(super) fn measures(a: &[Run], b: &[Run]) -> Vec<Measure> {
    if a.first().is_some_and(Run::is_knee) { of_knees() } else { of_runs(a, b) }
}

fn of_knees() -> Vec<Measure> {
    let rate = |name: &str, of: &str, is_main| Measure {
        name: name.to_owned(),
        of: of.to_owned(),
        better: More,
        is_main,
        is_searched: true,
        ..Measure::default()
    };
    let at_knee = OF_KNEE.into_iter().map(|(name, of, better)| Measure {
        name: name.to_owned(),
        of: of.to_owned(),
        unit: unit(of),
        better,
        ..Measure::default()
    });
    let rates =
        [rate("knee, requests/s", "/knee", true), rate("too much, requests/s", "/failed", false)];
    rates.into_iter().chain(at_knee).collect()
}

/// Of a report's value to that of its measure.
fn unit(of: &str) -> f64 {
    if of.ends_with("_bytes_max") { MIB } else { 1.0 }
}

fn of_runs(a: &[Run], b: &[Run]) -> Vec<Measure> {
    let whole = WHOLE.into_iter().map(|(name, of, better, is_main)| Measure {
        name: name.to_owned(),
        of: of.to_owned(),
        unit: unit(of),
        better,
        is_main,
        ..Measure::default()
    });
    let shares = PER_REQUEST.into_iter().map(|(name, of, better)| Measure {
        name: name.to_owned(),
        of: of.to_owned(),
        per: Some("/all/sent"),
        better,
        ..Measure::default()
    });
    let (lanes, tenants) = (groups("lane", a, b), groups("tenant", a, b));
    whole.chain(shares).chain(lanes).chain(tenants).collect()
}

/// Of groups that both sides have, where there is more than one.
fn groups(kind: &str, a: &[Run], b: &[Run]) -> Vec<Measure> {
    let place = format!("/{kind}s");
    let Some(first) = a.first() else { return Vec::new() };
    let names = first.names(&place);
    let names = if names.len() > 1 { names } else { Vec::new() };
    let is_in_b = |name: &&str| b.first().is_some_and(|run| run.names(&place).contains(name));
    let of = |name: &str| {
        let (name, part) = (name.to_owned(), part(name));
        let place = place.clone();
        OF_GROUP.into_iter().map(move |(what, of, better)| Measure {
            name: format!("{kind} {name} {what}"),
            of: format!("{place}/{part}/{of}"),
            better,
            ..Measure::default()
        })
    };
    names.into_iter().filter(is_in_b).flat_map(of).collect()
}
