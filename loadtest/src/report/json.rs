//! The report as JSON. Times are milliseconds, rates a second; no key is ever written.

use serde_json::{Map, Value, json};

use super::{Report, seconds};
use crate::exchange::Outcome;
use crate::machine::Machine;
use crate::measure::{Bin, Counts, Fairness, Group, Stage, Times};

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
            "fairness": self.fairness(),
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
            "duplicate_prefill": self.duplicates(),
            "server": self.server_json(),
            "generator": {
                "start_lag_ms": times(&measures.lag),
                "connection_wait_ms": times(&measures.connection_wait),
                "cpu_share": self.cpu_share(),
                "version": env!("CARGO_PKG_VERSION"),
                "starved_share": self.starved_share(),
                "unsent": measures.unsent,
                "own_connection_errors": measures.denials.own,
                "new_connections_closed": measures.denials.closed,
            },
            "machine": machine(&self.machine),
            "first_fault": &measures.first_fault,
            "notes": self.doubts(),
            "series": self.series(),
            "answers": self.answers(),
        })
    }

    fn grouped(&self, wanted: &str) -> Value {
        let groups = self.groups().filter(|(kind, _, _)| *kind == wanted);
        groups.map(|(_, name, of)| (name.to_owned(), group(of))).collect::<Map<_, _>>().into()
    }

    fn fairness(&self) -> Value {
        let of = |fairness: Option<Fairness>| {
            let name = |tenant: usize| self.tenants.get(tenant);
            let one = |(tenant, value)| json!({ "tenant": name(tenant), "value": value });
            fairness.map(|Fairness { jain, gap, least, most }| {
                json!({ "jain": jain, "gap": gap, "least": one(least), "most": one(most) })
            })
        };
        let weight = |(n, name): (usize, &String)| (name.clone(), json!(self.weight(n)));
        json!({
            "weights": self.tenants.iter().enumerate().map(weight).collect::<Map<_, _>>(),
            "computed_tokens_under_load_per_weight": of(self.fairness_of_tokens()),
            "mean_latency_ms": of(self.fairness_of_latency()),
        })
    }

    fn stages(&self) -> Value {
        let stages = &self.measures.stages;
        let told = |of: &Times| if of.count() > 0 { times(of) } else { Value::Null };
        let one = |stage: Stage| (stage.as_str().to_owned(), told(stages.of(stage)));
        let mut all: Map<_, _> = Stage::ALL.into_iter().map(one).collect();
        all.insert("total".to_owned(), times(&stages.total));
        all.into()
    }

    /// None is what the server does not tell.
    fn duplicates(&self) -> Value {
        let found = self.measures.prefill.duplicates();
        json!({
            "by_server_tokens": self.server.duplicate_tokens,
            "by_client_tokens": (found.states_told > 0).then_some(found.tokens),
            "states": found.states,
            "states_told": found.states_told,
        })
    }

    fn server_json(&self) -> Value {
        let usage = self.server.usage.as_ref();
        json!({
            "build": self.server.build,
            "connections_turned_away": self.server.turned_away,
            "pid": usage.and_then(|usage| usage.pid),
            "process": usage.and_then(|usage| usage.name.as_ref()),
            "cpu_s": usage.map(|usage| usage.cpu.as_secs_f64()),
            "over_s": usage.map(|usage| usage.over.as_secs_f64()),
            "cores": self.server_cores(),
            "cpu_ms_per_decision": self.server_cpu_ms(),
            "rss_bytes_max": usage.map(|usage| usage.rss_bytes_max),
            "rss_bytes_ever": usage.and_then(|usage| usage.rss_bytes_ever),
        })
    }

    fn series(&self) -> Value {
        let series = &self.measures.series;
        let column = |of: &dyn Fn(&Bin) -> Value| series.bins().iter().map(of).collect::<Value>();
        let mut all = json!({
            "bin_s": series.width().as_secs_f64(),
            "started": column(&|bin| json!(bin.started)),
        });
        for outcome in Outcome::ALL {
            all[outcome.as_str()] = column(&|bin| json!(bin.ends.of(outcome)));
        }
        all["latency_mean_ms"] = column(&|bin| rounded(bin.mean_ms()));
        all["latency_p99_ms"] = column(&|bin| rounded(bin.p99_ms()));
        for stage in Stage::ALL {
            all[format!("{}_ms", stage.as_str())] = column(&|bin| rounded(bin.stage_ms(stage)));
        }
        all
    }

    fn answers(&self) -> Value {
        let five_digits = |p: &f64| (p * 1e5).round() / 1e5;
        let decision = |answers: &Vec<Vec<f64>>| {
            let question = |answer: &Vec<f64>| answer.iter().map(five_digits).collect::<Value>();
            answers.iter().map(question).collect::<Value>()
        };
        let kept = self.measures.answers.iter();
        kept.map(|(number, answers)| (number.to_string(), decision(answers)))
            .collect::<Map<_, _>>()
            .into()
    }
}

fn group(group: &Group) -> Value {
    let stage = |stage: Stage| (stage.as_str().to_owned(), rounded(group.stages.mean_ms(stage)));
    let point = |(ms, share): (f64, f64)| json!([ms, share]);
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
        "stages_mean_ms": Stage::ALL.into_iter().map(stage).collect::<Map<_, _>>(),
        "latency_cdf": group.latency.cdf().into_iter().map(point).collect::<Value>(),
    })
}

fn machine(machine: &Machine) -> Value {
    let Machine { processor, cores, began_unix_s, load_before, load_after } = machine;
    json!({
        "processor": processor,
        "cores": cores,
        "began_unix_s": began_unix_s,
        "load_average_before": load_before,
        "load_average_after": load_after,
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

/// Milliseconds to the microsecond.
fn rounded(ms: Option<f64>) -> Value {
    json!(ms.map(|ms| (ms * 1e3).round() / 1e3))
}
