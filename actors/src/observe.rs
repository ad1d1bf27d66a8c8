//! Metrics of the actors: every name once, and the handles by which they are moved.
//!
//! Counters and histograms are registered once and moved by handles, since a read passes dozens of
//! them; gauges are drawn from the published views when somebody looks. Label values are bounded:
//! lanes, reasons, stages, kinds and buckets, never a tenant.

mod gauges;
mod ledger;
mod reads;
mod refusals;
mod steps;
mod table;

use metrics::{Counter, Histogram, counter, histogram};

use crate::plan::counts::Counts;
use crate::restarts::ActorKind;
use crate::snapshot::LoadView;
pub(crate) use gauges::show;
use ledger::LedgerMeters;
use reads::ReadMeters;
use refusals::Refusals;
use steps::StepMeters;
pub use table::{Kind, METRICS};

/// Handles of all counters and histograms; without a recorder they do nothing.
pub(crate) struct Meters {
    pub(crate) reads: ReadMeters,
    pub(crate) steps: StepMeters,
    pub(crate) ledger: LedgerMeters,
    pub(crate) refusals: Refusals,
    /// What it took to make details for those who look, by the scheduler and by the cache.
    pub(crate) details: [Histogram; 2],
    restarts: [Counter; 3],
}

impl Meters {
    /// Registers all with the recorder that is there now, each at 0 and with every value of its
    /// label: a rate over a counter that appears with its first event misses that event.
    pub(crate) fn new() -> Self {
        let restarts =
            |actor: ActorKind| counter!("docket_actor_restarts_total", "actor" => actor.as_str());
        let details = |actor: ActorKind| histogram!("docket_details_duration_seconds", "actor" => actor.as_str());
        Self {
            reads: ReadMeters::new(),
            steps: StepMeters::new(),
            ledger: LedgerMeters::new(),
            refusals: Refusals::new(),
            details: [ActorKind::Scheduler, ActorKind::Cache].map(details),
            restarts: ActorKind::ALL.map(restarts),
        }
    }

    /// What the scheduler counted during one event.
    pub(crate) fn count(&self, counts: &Counts) {
        if *counts == Counts::default() {
            return;
        }
        self.reads.count(counts);
        if counts.displaced > 0 {
            self.refusals.displaced(counts.displaced);
        }
    }

    /// Scheduler and cache are lost; `last` is what the scheduler published last, whose reads are gone.
    pub(crate) fn pair_lost(&self, last: &LoadView) {
        self.reads.lost(last.totals.admitted.saturating_sub(last.totals.ended()));
    }

    /// An actor was lost and is started again.
    pub(crate) fn restarted(&self, actor: ActorKind) {
        self.restarts[actor as usize].increment(1);
    }
}

/// Shows all counters at 0; called once, when the recorder is there.
pub fn start() {
    drop(Meters::new());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use metrics_util::MetricKind;
    use metrics_util::debugging::DebuggingRecorder;

    use super::*;
    use crate::config::Config;
    use crate::links::Shared;
    use crate::plan::fixture::caps;

    #[test]
    fn every_metric_is_listed_once_with_its_kind() {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        metrics::with_local_recorder(&recorder, || {
            let _in_runtime = runtime.enter();
            let shared = Arc::new(Shared::new(Config::default(), caps(), Box::new(|_| ())));
            show(&shared.snapshot(), &shared.config);
        });
        let registered: BTreeSet<_> = snapshotter
            .snapshot()
            .into_vec()
            .into_iter()
            .map(|(key, ..)| (key.key().name().to_owned(), key.kind()))
            .collect();
        let kind = |kind: Kind| match kind {
            Kind::Counter => MetricKind::Counter,
            Kind::Gauge => MetricKind::Gauge,
            Kind::Seconds
            | Kind::Micros
            | Kind::Ages
            | Kind::Tokens
            | Kind::Count
            | Kind::Share => MetricKind::Histogram,
        };
        let listed: BTreeSet<_> =
            METRICS.iter().map(|(name, of, _)| ((*name).to_owned(), kind(*of))).collect();
        assert_eq!(listed.len(), METRICS.len());
        assert_eq!(registered, listed);
    }

    #[test]
    fn names_tell_the_kind() {
        for (name, kind, help) in METRICS {
            assert_eq!(*kind == Kind::Counter, name.ends_with("_total"), "{name}");
            assert!(!help.is_empty() && !help.ends_with('.'), "{name}");
            let is_timed = matches!(kind, Kind::Seconds | Kind::Micros | Kind::Ages);
            assert!(!is_timed || name.ends_with("_seconds"), "{name}");
        }
    }

    #[test]
    fn buckets_rise() {
        let buckets = METRICS.iter().filter_map(|(_, kind, _)| kind.buckets());
        for bounds in buckets.chain(Kind::Share.buckets()) {
            assert!(bounds.is_sorted_by(|one, next| one < next), "{bounds:?}");
        }
    }
}
