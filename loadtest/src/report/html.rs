//! The report as a page for people: verdict, plots, tables, and the facts of the run.

mod sections;
pub(super) mod sweep;

use super::{Loop, Report, percent, short, time};
use crate::exchange::Outcome;
use crate::html::Page;
use crate::machine::utc;

/// A closed loop's percentiles are always to be read with care; that alone is no alarm.
const DOUBTS_OF_A_CLOSED_LOOP: usize = 1;

impl Report {
    /// The whole page.
    pub(crate) fn html(&self) -> String {
        let doubts = self.doubts().len();
        let expected =
            if matches!(self.kind, Loop::Closed { .. }) { DOUBTS_OF_A_CLOSED_LOOP } else { 0 };
        let page = Page {
            title: format!("Load test: {}", self.title()),
            verdict: self.verdict(),
            trust: self.trust(),
            is_doubtful: doubts > expected,
            tiles: self.tiles(),
            cards: sections::cards(self),
        };
        page.html()
    }

    fn tiles(&self) -> Vec<(String, String)> {
        let (all, sent) = (&self.measures.all, self.sent().max(1) as f64);
        let times = match self.kind {
            Loop::Open { .. } => &all.latency,
            Loop::Closed { .. } => &self.measures.service,
        };
        let mut tiles = vec![
            (format!("{}/s", short(self.offered_rate())), "requests offered"),
            (format!("{}/s", short(self.achieved_rate())), "decisions answered"),
            (format!("{}/s", short(self.answers_rate())), "questions answered"),
            (time(times.ms(0.5)), "latency p50"),
            (time(times.ms(0.99)), "latency p99"),
            (time(times.ms(1.0)), "latency, longest"),
        ];
        tiles.extend(all.goodput().map(|good| (percent(good), "of admitted within the limit")));
        let refused = all.counts.of(Outcome::Refused) as f64 / sent;
        tiles.push((percent(refused), "refused"));
        tiles.push((percent(all.counts.lost() as f64 / sent), "failed or too late"));
        tiles.extend(self.server_cores().map(|cores| (short(cores), "cores, by the server")));
        tiles.extend(self.server_cpu_ms().map(|ms| (time(ms), "of a core a decision")));
        tiles.into_iter().map(|(value, what)| (value, what.to_owned())).collect()
    }

    /// What somebody needs to know to run it again, or to doubt it.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let machine = &self.machine;
        let known = |fact: Option<String>| fact.unwrap_or_else(|| "not known".to_owned());
        let load = |load: Option<f64>| load.map_or("?".to_owned(), |load| format!("{load:.2}"));
        let mut facts = vec![
            ("workload", format!("{}: {}", self.workload, self.about)),
            ("loop", self.loop_words()),
            ("limits", self.limit_words()),
            ("driver", self.driver.driver.as_str().to_owned()),
            ("seed", self.seed.to_string()),
            ("server", self.url.clone()),
            ("server's build", known(self.server.build.clone())),
            ("generator", format!("loadtest {}", env!("CARGO_PKG_VERSION"))),
            ("began", utc(machine.began_unix_s)),
            ("processor", known(machine.processor.clone())),
            ("cores", known(machine.cores.map(|cores| cores.to_string()))),
            (
                "load average",
                format!("{} before, {} after", load(machine.load_before), load(machine.load_after)),
            ),
            ("server's memory", known(self.memory())),
            ("state tokens computed twice", self.duplicate_words()),
        ];
        let weights = self.tenants.iter().enumerate().filter(|_| self.tenants.len() > 1);
        let weights: Vec<String> =
            weights.map(|(n, name)| format!("{name} {}", self.weight(n))).collect();
        if !weights.is_empty() {
            facts.push(("weights", weights.join(", ")));
        }
        facts.extend(self.refusal_words().map(|words| ("refusals", words)));
        facts.extend(self.retry_words().map(|words| ("retries", words)));
        facts.extend(self.prewarm_words().map(|words| ("prewarms", words)));
        facts.extend(self.measures.first_fault.clone().map(|fault| ("first fault", fault)));
        facts
    }

    fn loop_words(&self) -> String {
        let warm_up = self.warm_up.as_secs_f64();
        match self.kind {
            Loop::Open { rate, duration, connections } => format!(
                "open, {} arrivals of {rate} requests/s for {} s, warm-up {warm_up} s, at most \
                 {connections} connections",
                self.arrivals,
                duration.as_secs_f64()
            ),
            Loop::Closed { clients, until } => {
                let requests = until.requests.map(|count| format!(", {count} requests"));
                let duration = until.duration.map(|time| format!(", for {} s", time.as_secs_f64()));
                format!(
                    "closed, {clients} clients{}{}, warm-up {warm_up} s",
                    requests.unwrap_or_default(),
                    duration.unwrap_or_default()
                )
            }
        }
    }

    /// The limits of the kinds of request, in the workload's order.
    fn limit_words(&self) -> String {
        let word = |limit: &Option<u32>| limit.map_or("none".to_owned(), |ms| format!("{ms} ms"));
        self.limits_ms.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// Why requests were refused and when they were to come back, where any were.
    fn refusal_words(&self) -> Option<String> {
        let measures = &self.measures;
        let (reasons, waits) = (measures.reason_words(), &measures.retry_after);
        let named = (waits.count() > 0).then(|| {
            let (half, most) = (time(waits.ms(0.5)), time(waits.ms(1.0)));
            format!("; told to come back after {half} (the middle one) to {most}")
        });
        let missing = measures.retry_after_missing;
        let without = (missing > 0).then(|| format!("; {missing} were told no time"));
        (!reasons.is_empty() || waits.count() + missing > 0)
            .then(|| [Some(reasons), named, without].into_iter().flatten().collect())
    }

    /// How prewarms went, where there were any.
    fn prewarm_words(&self) -> Option<String> {
        let prewarms = &self.measures.prewarms;
        let (sent, times) = (prewarms.counts.sum(), &prewarms.latency);
        (sent > 0).then(|| {
            format!(
                "{} of {sent} answered, half of them within {}, the slowest after {}",
                prewarms.counts.of(Outcome::Answered),
                time(times.ms(0.5)),
                time(times.ms(1.0))
            )
        })
    }

    /// What became of retries, where there were any.
    fn retry_words(&self) -> Option<String> {
        let all = &self.retries.all;
        (!all.is_empty()).then(|| {
            format!(
                "{} refused requests were sent again, {} times in all, {} of these refused again",
                all.requests, all.sent, all.refused_again
            )
        })
    }

    fn memory(&self) -> Option<String> {
        let usage = self.server.usage.as_ref()?;
        let mib = |bytes: u64| bytes >> 20;
        let ever =
            usage.rss_bytes_ever.map(|bytes| format!(", {} MiB since its start", mib(bytes)));
        Some(format!(
            "at most {} MiB resident{}",
            mib(usage.rss_bytes_max),
            ever.unwrap_or_default()
        ))
    }

    fn duplicate_words(&self) -> String {
        let found = self.measures.prefill.duplicates();
        let told = |tokens: Option<u64>| tokens.map_or("not told".to_owned(), |n| n.to_string());
        let by_client = (found.states_told > 0).then_some(found.tokens);
        format!(
            "{} by the server's count; {} by its answers",
            told(self.server.duplicate_tokens),
            told(by_client)
        )
    }
}
