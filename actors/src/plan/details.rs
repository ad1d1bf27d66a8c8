//! What the scheduler shows of its queue and its step to those who look.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use crate::engine::Segment;
use crate::plan::draft::DraftChunk;
use crate::plan::running::{Running, RunningRow};
use crate::plan::scheduler::SchedulerCore;
use crate::read::{Lane, SegmentKey, TenantId};
use crate::snapshot::{QueueDetails, STEP_PARTS_MAX, StepDetails, StepPart, Top, WaitingDetails};

/// On whose account, and in which lane, a step computes something of a state.
type PartKey = (SegmentKey, Option<TenantId>, Option<Lane>);

impl<S: Segment> SchedulerCore<S> {
    /// What waits and runs, in detail; walks over all of it.
    pub(crate) fn details(&self, now: Instant) -> QueueDetails {
        let step = self.running.as_ref().map(|running| self.step_details(running, now));
        QueueDetails { step, waiting: self.waiting_details() }
    }

    fn waiting_details(&self) -> [WaitingDetails; 4] {
        let mut tenants = [0; 4];
        let mut most: [_; 4] = std::array::from_fn(|_| Top::new());
        for ((lane, tenant), reads) in self.queue.waiting_by_tenant() {
            tenants[lane as usize] += 1;
            most[lane as usize].offer(tenant, reads);
        }
        let mut most = most.into_iter();
        tenants.map(|tenants| WaitingDetails {
            tenants,
            most: most.next().map(Top::into_vec).unwrap_or_default(),
        })
    }

    fn step_details(&self, running: &Running, now: Instant) -> StepDetails {
        let mut parts: BTreeMap<PartKey, StepPart> = BTreeMap::new();
        for chunk in &running.chunks {
            let tenant = self.tenant_of(chunk);
            let part = part_of(&mut parts, (chunk.group, tenant, Some(chunk.lane)));
            part.state_tokens += u64::from(chunk.tokens);
        }
        for RunningRow { group, row } in &running.rows {
            let lane = row.place().map(|place| place.0);
            let part = part_of(&mut parts, (*group, row.tenant().cloned(), lane));
            part.rows += 1;
            part.reads += row.askers.len();
            part.row_tokens += u64::from(row.tokens());
        }
        let mut parts: Vec<_> = parts.into_values().collect();
        parts.sort_by_key(|part| Reverse(part.row_tokens + part.state_tokens));
        let parts_left_out = parts.len().saturating_sub(STEP_PARTS_MAX);
        parts.truncate(STEP_PARTS_MAX);
        let elapsed = now.saturating_duration_since(running.since);
        StepDetails { step: running.step, elapsed, parts, parts_left_out }
    }

    /// On whose account a chunk is computed.
    fn tenant_of(&self, chunk: &DraftChunk) -> Option<TenantId> {
        let charged = chunk.charged.and_then(|read| self.decisions.get(&read.decision));
        let charged = charged.map(|decision| decision.tenant().clone());
        charged.or_else(|| {
            let group = self.queue.group(chunk.group)?;
            let want = group.want.as_ref().map(|want| &want.tenant);
            want.or_else(|| group.owner()).cloned()
        })
    }
}

fn part_of(parts: &mut BTreeMap<PartKey, StepPart>, key: PartKey) -> &mut StepPart {
    parts.entry(key).or_insert_with_key(|(state, tenant, lane)| StepPart {
        state: *state,
        tenant: tenant.clone(),
        lane: *lane,
        rows: 0,
        reads: 0,
        row_tokens: 0,
        state_tokens: 0,
    })
}
