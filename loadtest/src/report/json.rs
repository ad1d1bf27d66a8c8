//! The report as JSON. Times are milliseconds, rates a second; no key is ever written.

use serde_json::{Map, Value, json};

use super::{Loop, Report, seconds};
use crate::exchange::Outcome;
use crate::measure::{Counts, Group, Times};

impl Report {
    /// The whole report.
    pub(crate) fn json(&self) -> Value {
        let measures = &self.measures;
        json!({
            "run": self.run(),
            "offered_rate": self.offered_rate(),
            "achieved_rate": self.achieved_rate(),
            "answers_rate": self.answers_rate(),
            "load_s": seconds(self.load),
            "whole_s": seconds(self.whole),
            "warm_up_requests": measures.warm_up,
            "all": group(&measures.all),
            "from_sending_ms": times(&measures.service),
            "lanes": self.grouped("lane"),
            "tenants": self.grouped("tenant"),
            "stages_ms": self.stages(),
            "statuses": measures.statuses.iter().map(|(status, n)| (status.to_string(), json!(n))).collect::<Map<_, _>>(),
            "reasons": &measures.reasons,
            "retry_after_ms": times(&measures.retry_after),
            "retry_after_missing": measures.retry_after_missing,
            "retries": self.retries.json(),
            "prewarms": group(&measures.prewarms),
            "readout": {
                "http_requests": measures.readout.parts,
                "answers_read": measures.readout.answers_read,
                "options_unseen": measures.readout.options_unseen,
                "label_mass": measures.readout.label_mass(),
            },
            "generator": {
                "start_lag_ms": times(&measures.lag),
                "connection_wait_ms": times(&measures.connection_wait),
                "cpu_share": self.cpu_share(),
            },
            "first_fault": &measures.first_fault,
            "notes": self.doubts(),
        })
    }

    fn run(&self) -> Value {
        let mut run = match self.kind {
            Loop::Open { rate, duration, connections } => json!({
                "loop": "open", "rate": rate, "duration_s": seconds(duration), "connections": connections,
            }),
            Loop::Closed { clients } => json!({ "loop": "closed", "clients": clients }),
        };
        if !self.arrivals.is_empty() {
            run["arrivals"] = json!(self.arrivals);
        }
        run["workload"] = json!(self.workload);
        run["about"] = json!(self.about);
        run["url"] = json!(self.url);
        run["driver"] = json!(self.driver.as_str());
        run["seed"] = json!(self.seed);
        run["warm_up_s"] = json!(self.warm_up.as_secs_f64());
        run
    }

    fn grouped(&self, wanted: &str) -> Value {
        let groups = self.groups().filter(|(kind, _, _)| *kind == wanted);
        groups.map(|(_, name, of)| (name.to_owned(), group(of))).collect::<Map<_, _>>().into()
    }

    fn stages(&self) -> Value {
        let stages = &self.measures.stages;
        json!({
            "queue_wait": times(&stages.queue),
            "state_wait": times(&stages.state),
            "engine_wait": times(&stages.engine_wait),
            "engine_time": times(&stages.engine),
            "other": times(&stages.other),
            "total": times(&stages.total),
            "unexplained": times(&stages.unexplained),
        })
    }
}

fn group(group: &Group) -> Value {
    json!({
        "sent": group.counts.sum(),
        "outcomes": outcomes(&group.counts),
        "latency_ms": times(&group.latency),
        "goodput": group.goodput(),
        "offered_goodput": group.offered_goodput(),
        "computed_tokens": group.computed_tokens,
        "cached_tokens": group.cached_tokens,
        "answered_under_load": group.loaded_answered,
        "computed_tokens_under_load": group.loaded_tokens,
    })
}

fn outcomes(counts: &Counts) -> Value {
    let one = |outcome: Outcome| (outcome.as_str().to_owned(), json!(counts.of(outcome)));
    Outcome::ALL.into_iter().map(one).collect::<Map<_, _>>().into()
}

/// The quantiles that every list of times has.
pub(crate) fn times(times: &Times) -> Value {
    json!({
        "count": times.count(),
        "mean": times.mean_ms(),
        "p50": times.ms(0.5),
        "p90": times.ms(0.9),
        "p99": times.ms(0.99),
        "p99.9": times.ms(0.999),
        "max": times.ms(1.0),
    })
}
