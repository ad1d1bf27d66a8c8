//! The scheduler actor: what waits, and the step that runs.

use std::time::Instant;

use tokio::sync::oneshot;

use crate::handle::DecisionMeta;
use crate::links::Permit;
use crate::plan::DecisionId;
use crate::read::{Lane, Prefix, ReadSpec};
use crate::request::ReadPort;
use crate::snapshot::DrainReport;

/// What handles and request actors ask of the scheduler.
pub(crate) enum SchedulerAsk {
    /// A decision was admitted.
    Open { decision: DecisionId, prefix: Prefix, lane: Lane, deadline: Option<Instant> },
    /// Read these.
    Submit {
        decision: DecisionId,
        first: u32,
        reads: Vec<ReadSpec>,
        at: Instant,
        port: ReadPort,
        permit: Option<Permit>,
    },
    /// Cancel what waits of a decision.
    Withdraw { decision: DecisionId },
    /// The decision is over.
    Close { decision: DecisionId },
    /// Finish and stop.
    Drain { reply: oneshot::Sender<DrainReport> },
}

impl SchedulerAsk {
    pub(crate) fn open(decision: DecisionId, meta: &DecisionMeta) -> Self {
        Self::Open {
            decision,
            prefix: meta.prefix.clone(),
            lane: meta.lane,
            deadline: meta.deadline.map(tokio::time::Instant::into_std),
        }
    }
}
