//! Whose account what the engine runs is on: each token of a step that succeeds once.

use std::collections::BTreeMap;

use crate::engine::Segment;
use crate::plan::draft::Draft;
use crate::plan::path::PathSegment;
use crate::plan::running::Running;
use crate::plan::scheduler::SchedulerCore;
use crate::read::TenantId;
use crate::work::Work;

impl<S: Segment> SchedulerCore<S> {
    /// What was done for each tenant since this was last asked.
    pub(crate) fn take_work(&mut self) -> BTreeMap<TenantId, Work> {
        std::mem::take(&mut self.work)
    }

    /// Counts what a step serves its tenants: a row to whoever asked first, a chunk in equal shares
    /// to all who wait for the state. Who is served how many tokens.
    pub(super) fn charge(&mut self, draft: &Draft) -> Vec<(TenantId, u32)> {
        let mut served = Vec::new();
        for (key, place) in &draft.rows {
            let Some(group) = self.queue.group(*key) else { continue };
            let Some(row) = group.rows.get(place) else { continue };
            // An engine that keeps nothing computes the whole prompt of each row.
            let prefix: u32 = group.path.iter().map(PathSegment::len).sum();
            let tokens = row.tokens() + if self.keeps_segments { 0 } else { prefix };
            served.extend(row.tenant().map(|tenant| (place.0, tenant.clone(), tokens)));
        }
        let rows = served.len();
        for chunk in &draft.chunks {
            let Some(group) = self.queue.group(chunk.group) else { continue };
            let tenants = group.tenants();
            let count = u32::try_from(tenants.len()).unwrap_or(u32::MAX).max(1);
            let (part, rest) = (chunk.tokens / count, chunk.tokens % count);
            let parts = (0..).map(|at| part + u32::from(at < rest));
            let shares = tenants.into_iter().zip(parts);
            served.extend(shares.map(|((tenant, lane), tokens)| (lane, tenant, tokens)));
        }
        for (lane, tenant, tokens) in &served {
            self.counts.served(tenant, *tokens);
            let weight = self.tenant_limits.weight(tenant);
            self.queue.charge(*lane, tenant, (*tokens).into(), weight);
        }
        if !self.keeps_segments {
            served.truncate(rows);
        }
        served.into_iter().map(|(_, tenant, tokens)| (tenant, tokens)).collect()
    }

    /// A step has run: its tokens, and the reads that their callers left meanwhile.
    pub(super) fn account_step(&mut self, running: &Running) {
        for (tenant, tokens) in &running.served {
            self.work_of(tenant).computed_tokens += u64::from(*tokens);
        }
        for tenant in &running.left {
            self.work_of(tenant).reads += 1;
        }
    }

    /// A read was answered.
    pub(super) fn account_read(&mut self, tenant: &TenantId, cached_tokens: u32) {
        let work = self.work_of(tenant);
        work.reads += 1;
        work.cached_tokens += u64::from(cached_tokens);
    }

    fn work_of(&mut self, tenant: &TenantId) -> &mut Work {
        self.work.entry(tenant.clone()).or_default()
    }
}
