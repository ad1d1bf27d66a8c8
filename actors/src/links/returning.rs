//! What refused decisions are told, and by what they are known when they come back.

use std::sync::{MutexGuard, PoisonError};

use tokio::time::Instant;

use super::Shared;
use crate::error::RejectReason;
use crate::handle::DecisionMeta;
use crate::plan::admit::{Newcomer, work_of};
use crate::plan::returns::{Claimant, Returns};
use crate::tenants::Found;

impl Shared {
    /// Whether a decision that came now would find half of the room only, since others come back.
    pub(crate) fn gives_way(&self, meta: &DecisionMeta) -> bool {
        self.returns().gives_way(&claimant(meta), Instant::now().into_std())
    }

    /// The same of one that comes now.
    pub(super) fn arrives(&self, meta: &DecisionMeta) -> bool {
        self.returns().arrive(&claimant(meta), Instant::now().into_std())
    }

    /// Gives a refused decision its time to come back.
    pub(super) fn told_when(
        &self,
        mut reason: RejectReason,
        meta: &DecisionMeta,
        newcomer: Newcomer,
    ) -> RejectReason {
        if let Some(wait) = reason.backlog_wait() {
            let backlog = self.backlog(self.entering(), Found::default());
            let (work, now) = (work_of(backlog, newcomer), Instant::now().into_std());
            *wait = self.returns().refused(claimant(meta), (*wait, work), now);
        }
        reason
    }

    /// Refused decisions for which room is kept when they come back.
    pub(crate) fn retries_expected(&self) -> usize {
        self.returns().count(Instant::now().into_std())
    }

    fn returns(&self) -> MutexGuard<'_, Returns> {
        self.returns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn claimant(meta: &DecisionMeta) -> Claimant {
    Claimant {
        payer: meta.tenant.to_payer(),
        lane: meta.lane,
        state: meta.prefix.state.key,
        reads: meta.first_reads.max(1),
        suffix_tokens: meta.first_tokens,
    }
}
