//! The measures of a run: counts and histograms, whole and by lane and tenant.

mod readout;

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::exchange::{Exchange, Outcome, Reply, Stages};
use readout::Readout;

/// Longest time that a histogram tells apart, microseconds: one hour.
const TIME_US_MAX: u64 = 3_600_000_000;
/// Most different reasons of refusals that are counted; the server has a dozen.
const REASONS_MAX: usize = 64;

/// Times in microseconds, to three digits.
#[derive(Debug, Clone)]
pub(crate) struct Times(Histogram<u64>);

impl Default for Times {
    #[expect(clippy::expect_used, reason = "the bounds are constants that a histogram takes")]
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, TIME_US_MAX, 3).expect("constant bounds"))
    }
}

impl Times {
    /// Adds a time; one over the limit counts as the limit.
    pub(crate) fn add(&mut self, time: Duration) {
        self.add_us(u64::try_from(time.as_micros()).unwrap_or(TIME_US_MAX));
    }

    /// Adds a time in microseconds, or in whatever unit the reader knows of.
    pub(crate) fn add_us(&mut self, time_us: u64) {
        self.0.saturating_record(time_us);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value in milliseconds below which this share of the values is; 1 is the largest.
    pub(crate) fn ms(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e3
    }

    /// The mean in milliseconds.
    pub(crate) fn mean_ms(&self) -> f64 {
        self.0.mean() / 1e3
    }
}

/// Requests by how they ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts([u64; Outcome::ALL.len()]);

impl Counts {
    fn add(&mut self, outcome: Outcome) {
        self.0[outcome as usize] += 1;
    }

    /// Those that ended so.
    pub(crate) fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }

    /// All.
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// The requests of a lane or of a tenant, or all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    pub(crate) counts: Counts,
    /// From the intended start to the last byte, of the answered ones.
    pub(crate) latency: Times,
    /// Those whose kind has a limit: admitted, and answered within it.
    pub(crate) limited: u64,
    pub(crate) within_limit: u64,
    /// Those whose kind has a limit, refused or not, without those that left.
    pub(crate) wanted: u64,
    pub(crate) computed_tokens: u64,
    pub(crate) cached_tokens: u64,
    /// Answered requests, and computed tokens, while requests still started: under load.
    pub(crate) loaded_answered: u64,
    pub(crate) loaded_tokens: u64,
}

/// The measures of a run.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    pub(crate) all: Group,
    pub(crate) lanes: BTreeMap<&'static str, Group>,
    /// By number.
    pub(crate) tenants: Vec<Group>,
    /// Answers to questions, while requests still started.
    pub(crate) loaded_answers: u64,
    /// From sending to the last byte, of the answered ones; of one that was sent again, the last time.
    pub(crate) service: Times,
    /// From the intended start to sending, of requests that found a connection: what the generator
    /// itself adds.
    pub(crate) lag: Times,
    /// The same of requests that found all connections taken, or were behind one that did.
    pub(crate) connection_wait: Times,
    pub(crate) stages: StageTimes,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) reasons: BTreeMap<String, u64>,
    /// Refusals' `Retry-After`, and how many refusals had none.
    pub(crate) retry_after: Times,
    pub(crate) retry_after_missing: u64,
    pub(crate) prewarms: Group,
    /// Requests of the warm-up: sent, and in no other number.
    pub(crate) warm_up: u64,
    pub(crate) first_fault: Option<String>,
    pub(crate) readout: Readout,
}

/// The server's own times, of the answered requests that told them.
#[derive(Debug, Default)]
pub(crate) struct StageTimes {
    pub(crate) queue: Times,
    pub(crate) state: Times,
    pub(crate) engine_wait: Times,
    pub(crate) engine: Times,
    /// The server's total without the four above.
    pub(crate) other: Times,
    pub(crate) total: Times,
    /// The client's time without the server's total.
    pub(crate) unexplained: Times,
}

/// Which request it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label {
    /// How many decisions of the seed's sequence were drawn before it.
    #[expect(dead_code, reason = "the list of answers reads it")]
    pub(crate) number: u64,
    pub(crate) lane: &'static str,
    pub(crate) tenant: usize,
    pub(crate) questions: usize,
    pub(crate) limit: Option<Duration>,
    /// When it should have started.
    pub(crate) intended: Instant,
    /// When it was sent, and where it was sent again, the first time.
    pub(crate) first_sent: Instant,
    /// Whether it was late for want of a connection.
    pub(crate) waited: bool,
    /// Whether requests still started when it ended.
    pub(crate) is_loaded: bool,
}

impl Measures {
    /// Measures of a run with so many tenants.
    pub(crate) fn new(tenants: usize) -> Self {
        Self { tenants: vec![Group::default(); tenants], ..Self::default() }
    }

    /// Counts the one end of a request.
    pub(crate) fn record(&mut self, label: Label, exchange: Exchange) {
        let late = label.first_sent.saturating_duration_since(label.intended);
        if label.waited { &mut self.connection_wait } else { &mut self.lag }.add(late);
        self.readout.record(&exchange);
        let tenant = self.tenants.get_mut(label.tenant);
        let lane = self.lanes.entry(label.lane).or_default();
        for group in [Some(&mut self.all), Some(lane), tenant].into_iter().flatten() {
            group.record(label, &exchange);
        }
        if let Some(reply) = &exchange.reply {
            self.record_reply(reply, exchange.outcome);
        }
        if exchange.outcome == Outcome::Answered {
            self.loaded_answers += if label.is_loaded { label.questions as u64 } else { 0 };
            let service = exchange.ended.saturating_duration_since(exchange.sent);
            self.service.add(service);
            if let Some(stages) = exchange.reply.and_then(|reply| reply.stages) {
                self.stages.record(stages, service);
            }
        }
        self.first_fault = self.first_fault.take().or(exchange.fault);
    }

    /// Counts the one end of a prewarm.
    pub(crate) fn record_prewarm(&mut self, label: Label, exchange: Exchange) {
        self.prewarms.record(label, &exchange);
        self.first_fault = self.first_fault.take().or(exchange.fault);
    }

    /// Requests whose end was counted.
    pub(crate) fn ends(&self) -> u64 {
        self.all.counts.sum() + self.prewarms.counts.sum() + self.warm_up
    }

    fn record_reply(&mut self, reply: &Reply, outcome: Outcome) {
        *self.statuses.entry(reply.status).or_default() += 1;
        if let Some(reason) = &reply.reason
            && (self.reasons.len() < REASONS_MAX || self.reasons.contains_key(reason))
        {
            *self.reasons.entry(reason.clone()).or_default() += 1;
        }
        if outcome == Outcome::Refused {
            match reply.retry_after_ms {
                Some(wait_ms) => self.retry_after.add(Duration::from_millis(wait_ms)),
                None => self.retry_after_missing += 1,
            }
        }
    }
}

impl Group {
    fn record(&mut self, label: Label, exchange: &Exchange) {
        self.counts.add(exchange.outcome);
        let latency = exchange.ended.saturating_duration_since(label.intended);
        let is_answered = exchange.outcome == Outcome::Answered;
        if is_answered {
            self.latency.add(latency);
        }
        self.wanted +=
            u64::from(label.limit.is_some() && exchange.outcome != Outcome::Disconnected);
        if let Some(limit) = label.limit
            && !matches!(exchange.outcome, Outcome::Refused | Outcome::Disconnected)
        {
            self.limited += 1;
            self.within_limit += u64::from(is_answered && latency <= limit);
        }
        self.loaded_answered += u64::from(is_answered && label.is_loaded);
        if let Some(reply) = &exchange.reply {
            self.computed_tokens += reply.computed_tokens;
            self.cached_tokens += reply.cached_tokens;
            self.loaded_tokens += if label.is_loaded { reply.computed_tokens } else { 0 };
        }
    }

    /// Share of the admitted requests with a limit that were answered within it.
    pub(crate) fn goodput(&self) -> Option<f64> {
        (self.limited > 0).then(|| self.within_limit as f64 / self.limited as f64)
    }

    /// Share of all requests with a limit that were answered within it: a refusal is not good here.
    pub(crate) fn offered_goodput(&self) -> Option<f64> {
        (self.wanted > 0).then(|| self.within_limit as f64 / self.wanted as f64)
    }
}

impl StageTimes {
    fn record(&mut self, stages: Stages, service: Duration) {
        let Stages { queue_us, state_us, engine_wait_us, engine_us, total_us } = stages;
        let told = queue_us + state_us + engine_wait_us + engine_us;
        let service_us = u64::try_from(service.as_micros()).unwrap_or(TIME_US_MAX);
        for (times, time_us) in [
            (&mut self.queue, queue_us),
            (&mut self.state, state_us),
            (&mut self.engine_wait, engine_wait_us),
            (&mut self.engine, engine_us),
            (&mut self.other, total_us.saturating_sub(told)),
            (&mut self.total, total_us),
            (&mut self.unexplained, service_us.saturating_sub(total_us)),
        ] {
            times.add_us(time_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LANES: [&str; 2] = ["urgent", "batch"];

    fn end() -> impl Strategy<Value = (usize, usize, usize, u64, bool)> {
        (0..Outcome::ALL.len(), 0..LANES.len(), 0..3_usize, 0..5_000_u64, any::<bool>())
    }

    proptest! {
        /// Each end is counted once in the whole, once in its lane and once for its tenant.
        #[test]
        fn sums_over_lanes_and_tenants_are_the_whole(ends in prop::collection::vec(end(), 0..200)) {
            let (now, mut measures) = (Instant::now(), Measures::new(3));
            for (outcome, lane, tenant, took_ms, is_loaded) in &ends {
                let limit = is_loaded.then_some(Duration::from_secs(1));
                let label = Label {
                    number: 0, lane: LANES[*lane], tenant: *tenant, questions: 1, limit, waited: false,
                    intended: now, first_sent: now,
                    is_loaded: *is_loaded,
                };
                let (outcome, reply) = (Outcome::ALL[*outcome], Some(Reply { computed_tokens: 3, ..Reply::default() }));
                let ended = now + Duration::from_millis(*took_ms);
                measures.record(label, Exchange { reply, ..Exchange::bare(outcome, now, ended) });
            }
            prop_assert_eq!(measures.ends(), ends.len() as u64);
            let lanes: Vec<&Group> = measures.lanes.values().collect();
            let tenants: Vec<&Group> = measures.tenants.iter().collect();
            for groups in [lanes, tenants] {
                for outcome in Outcome::ALL {
                    let sum: u64 = groups.iter().map(|group| group.counts.of(outcome)).sum();
                    prop_assert_eq!(sum, measures.all.counts.of(outcome));
                }
                let sum = |of: &dyn Fn(&Group) -> u64| groups.iter().map(|group| of(group)).sum::<u64>();
                prop_assert_eq!(sum(&|group| group.computed_tokens), 3 * ends.len() as u64);
                prop_assert_eq!(sum(&|group| group.latency.count()), measures.service.count());
                prop_assert_eq!(sum(&|group| group.within_limit), measures.all.within_limit);
                prop_assert_eq!(sum(&|group| group.limited), measures.all.limited);
            }
        }
    }

    #[test]
    fn quantiles_are_in_milliseconds_and_to_three_digits() {
        let mut times = Times::default();
        (1..=1_000).for_each(|ms| times.add(Duration::from_millis(ms)));
        for (share, expected) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0)] {
            assert!((times.ms(share) / expected - 1.0).abs() < 0.002, "{}", times.ms(share));
        }
        times.add(Duration::from_hours(9));
        assert!((times.ms(1.0) / 3.6e6 - 1.0).abs() < 0.002);
    }

    #[test]
    fn goodput_leaves_out_the_refused_and_those_that_left() {
        let (now, mut group) = (Instant::now(), Group::default());
        assert_eq!(group.goodput(), None);
        let limit = Some(Duration::from_millis(10));
        let label = Label {
            number: 0,
            lane: "urgent",
            tenant: 0,
            questions: 1,
            limit,
            waited: false,
            intended: now,
            first_sent: now,
            is_loaded: true,
        };
        for (outcome, took_ms) in [
            (Outcome::Answered, 10),
            (Outcome::Answered, 11),
            (Outcome::Expired, 1),
            (Outcome::Refused, 1),
            (Outcome::Disconnected, 1),
        ] {
            let ended = now + Duration::from_millis(took_ms);
            group.record(label, &Exchange::bare(outcome, now, ended));
        }
        assert_eq!((group.limited, group.within_limit), (3, 1));
        // Of what was offered, the refused one is not good; the one that left is nobody's fault.
        assert_eq!((group.wanted, group.offered_goodput()), (4, Some(0.25)));
    }
}
