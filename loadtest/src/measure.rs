//! The measures of a run: counts, histograms and a series by second, whole and by lane and tenant.

mod answers;
mod denials;
mod fairness;
mod group;
mod prefill;
mod series;
mod stages;
mod times;

mod readout;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::exchange::{Exchange, Outcome, Reply};

pub(crate) use answers::Answers;
pub(crate) use denials::Denials;
pub(crate) use fairness::{Fairness, fairness};
pub(crate) use group::{Counts, Group};
pub(crate) use prefill::Prefill;
use readout::Readout;
pub(crate) use series::{Bin, Series};
use stages::Parts;
pub(crate) use stages::{Stage, StageTimes};
pub(crate) use times::Times;

/// Most different reasons of refusals that are counted; the server has a dozen.
const REASONS_MAX: usize = 64;

/// The measures of a run.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    pub(crate) all: Group,
    pub(crate) lanes: BTreeMap<&'static str, Group>,
    /// By number.
    pub(crate) tenants: Vec<Group>,
    /// Requests that have started, whether they have ended or not, the warm-up's and prewarms
    /// included.
    pub(crate) started: u64,
    /// Answers to questions under load, as [`Group::loaded_answered`].
    pub(crate) loaded_answers: u64,
    /// From sending to the last byte, of the answered ones whose clients would have waited; of one
    /// that was sent again, the last time.
    pub(crate) service: Times,
    /// From the intended start to sending, of requests that found a connection: what the generator
    /// itself adds.
    pub(crate) lag: Times,
    /// The same of requests that found all connections taken, or were behind one that did.
    pub(crate) connection_wait: Times,
    pub(crate) stages: StageTimes,
    pub(crate) series: Series,
    pub(crate) prefill: Prefill,
    pub(crate) answers: Answers,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) reasons: BTreeMap<String, u64>,
    /// Refusals' `Retry-After`, and how many refusals had none.
    pub(crate) retry_after: Times,
    pub(crate) retry_after_missing: u64,
    pub(crate) prewarms: Group,
    /// Requests of the warm-up: sent, and in no other number than those under load, where they
    /// ended in the measured part.
    pub(crate) warm_up: u64,
    pub(crate) first_fault: Option<String>,
    pub(crate) denials: Denials,
    /// Requests whose clients gave up before there was a connection for them.
    pub(crate) unsent: u64,
    pub(crate) readout: Readout,
}

/// Which request it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label {
    pub(crate) lane: &'static str,
    pub(crate) tenant: usize,
    pub(crate) questions: usize,
    /// Which text its state is.
    pub(crate) state: u64,
    /// How many decisions of the seed's sequence were drawn before it.
    pub(crate) number: u64,
    pub(crate) limit: Option<Duration>,
    /// When it should have started.
    pub(crate) intended: Instant,
    /// When it was sent, and where it was sent again, the first time.
    pub(crate) first_sent: Instant,
    /// Whether it was late for want of a connection.
    pub(crate) waited: bool,
    /// Whether its client was to go away before long. An answer that was quicker than that says
    /// nothing of latency: the slower ones of its kind are not there to be counted.
    pub(crate) leaves: bool,
    /// Whether it ended under load: after the warm-up, and while requests still started.
    pub(crate) is_loaded: bool,
}

#[cfg(test)]
impl Label {
    /// An urgent request of one question, without a limit, of the first tenant.
    pub(crate) fn of(intended: Instant) -> Self {
        Self {
            lane: "urgent",
            tenant: 0,
            questions: 1,
            state: 0,
            number: 0,
            limit: None,
            intended,
            first_sent: intended,
            waited: false,
            leaves: false,
            is_loaded: true,
        }
    }
}

impl Measures {
    /// Measures of a run with so many tenants.
    pub(crate) fn new(tenants: usize) -> Self {
        Self { tenants: vec![Group::default(); tenants], ..Self::default() }
    }

    /// Tells when the measured part of the run begins.
    pub(crate) fn begin(&mut self, at: Instant) {
        self.series = Series::since(at);
    }

    /// Counts the one end of a request.
    pub(crate) fn record(&mut self, label: Label, mut exchange: Exchange) {
        let late = label.first_sent.saturating_duration_since(label.intended);
        if label.waited { &mut self.connection_wait } else { &mut self.lag }.add(late);
        self.readout.record(&exchange);
        self.unsent += u64::from(exchange.is_unsent());
        self.record_load(label, &exchange);
        let tenant = self.tenants.get_mut(label.tenant);
        let lane = self.lanes.entry(label.lane).or_default();
        for group in [Some(&mut self.all), Some(lane), tenant].into_iter().flatten() {
            group.record(label, &exchange);
        }
        self.series.record(label, &exchange);
        exchange.denied.into_iter().for_each(|denied| self.denials.add(denied));
        if let Some(reply) = &exchange.reply {
            self.record_reply(reply, exchange.outcome);
        }
        if exchange.outcome == Outcome::Answered {
            self.record_answer(label, &mut exchange);
        }
        self.first_fault = self.first_fault.take().or(exchange.fault);
    }

    /// Counts the end of a request that had started in the warm-up: what was done under load is the
    /// server's work, whenever it was asked for. Without it a server would seem the slower the
    /// longer its answers take.
    pub(crate) fn record_warm_up(&mut self, label: Label, exchange: &Exchange) {
        self.warm_up += 1;
        self.record_load(label, exchange);
    }

    fn record_load(&mut self, label: Label, exchange: &Exchange) {
        if !label.is_loaded {
            return;
        }
        let answers = if exchange.outcome == Outcome::Answered { label.questions } else { 0 };
        self.loaded_answers += answers as u64;
        let tenant = self.tenants.get_mut(label.tenant);
        let lane = self.lanes.entry(label.lane).or_default();
        for group in [Some(&mut self.all), Some(lane), tenant].into_iter().flatten() {
            group.record_load(exchange);
        }
    }

    /// Counts the one end of a prewarm.
    pub(crate) fn record_prewarm(&mut self, label: Label, exchange: Exchange) {
        self.prewarms.record(label, &exchange);
        exchange.denied.into_iter().for_each(|denied| self.denials.add(denied));
        self.first_fault = self.first_fault.take().or(exchange.fault);
    }

    /// Refusals and failures by the reason that the server gave, the most frequent first.
    pub(crate) fn reason_words(&self) -> String {
        let mut reasons: Vec<(&String, &u64)> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let words = reasons.into_iter().map(|(reason, count)| format!("{count} x {reason}"));
        words.collect::<Vec<_>>().join(", ")
    }

    /// Requests whose end was counted.
    pub(crate) fn ends(&self) -> u64 {
        self.all.counts.sum() + self.prewarms.counts.sum() + self.warm_up
    }

    fn record_answer(&mut self, label: Label, exchange: &mut Exchange) {
        let service = exchange.ended.saturating_duration_since(exchange.sent);
        if !label.leaves {
            self.service.add(service);
        }
        if let Some(reply) = &exchange.reply {
            self.prefill.record(&label, reply);
            if let Some(stages) = reply.stages.filter(|_| !label.leaves) {
                let span = (exchange.sent, exchange.ended);
                self.stages.record(&Parts::of(stages, label.first_sent, span), stages.total_us);
            }
        }
        if let Some(answers) = exchange.answers.take() {
            self.answers.keep(label.number, answers);
        }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LANES: [&str; 2] = ["urgent", "batch"];

    fn end() -> impl Strategy<Value = (usize, usize, usize, u64, bool)> {
        (0..Outcome::ALL.len(), 0..LANES.len(), 0..3_usize, 0..5_000_u64, any::<bool>())
    }

    fn sum_over(groups: &[&Group], of: impl Fn(&Group) -> u64) -> u64 {
        groups.iter().map(|group| of(group)).sum()
    }

    proptest! {
        /// Each end is counted once in the whole, once in its lane, once for its tenant and once in
        /// the series.
        #[test]
        fn sums_over_lanes_and_tenants_are_the_whole(ends in prop::collection::vec(end(), 0..200)) {
            let (now, mut measures) = (Instant::now(), Measures::new(3));
            for (outcome, lane, tenant, took_ms, is_loaded) in &ends {
                let limit = is_loaded.then_some(Duration::from_secs(1));
                let (lane, tenant, is_loaded) = (LANES[*lane], *tenant, *is_loaded);
                let label = Label { lane, tenant, limit, is_loaded, ..Label::of(now) };
                let reply = Some(Reply { computed_tokens: 3, ..Reply::default() });
                let ended = now + Duration::from_millis(*took_ms);
                let bare = Exchange::bare(Outcome::ALL[*outcome], now, ended);
                measures.record(label, Exchange { reply, ..bare });
            }
            prop_assert_eq!(measures.ends(), ends.len() as u64);
            let lanes: Vec<&Group> = measures.lanes.values().collect();
            let tenants: Vec<&Group> = measures.tenants.iter().collect();
            for groups in [lanes, tenants] {
                for outcome in Outcome::ALL {
                    let sum = sum_over(&groups, |group| group.counts.of(outcome));
                    prop_assert_eq!(sum, measures.all.counts.of(outcome));
                }
                let sum = |of: fn(&Group) -> u64| sum_over(&groups, of);
                prop_assert_eq!(sum(|group| group.computed_tokens), 3 * ends.len() as u64);
                prop_assert_eq!(sum(|group| group.latency.count()), measures.service.count());
                prop_assert_eq!(sum(|group| group.within_limit), measures.all.within_limit);
                prop_assert_eq!(sum(|group| group.limited), measures.all.limited);
            }
            let bins = measures.series.bins();
            prop_assert_eq!(bins.iter().map(|bin| bin.started).sum::<u64>(), ends.len() as u64);
            prop_assert_eq!(bins.iter().map(|bin| bin.ends.sum()).sum::<u64>(), ends.len() as u64);
        }
    }
}
