//! What each tenant has open, and what it may still ask for: read at admission, without a message.
//!
//! Sub-tenants are counted for their parent. A tenant is here while something of it is open or waits,
//! or its bucket is not full again; full buckets of tenants that are away are forgotten, so that the
//! map is never much larger than what is in use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use dashmap::DashMap;
use tokio::time::Instant;

use crate::config::SchedulerConfig;
use crate::limits::Limits;
use crate::read::TenantId;
use crate::snapshot::Top;

/// Entries from which those with nothing open and a full bucket are looked for at a new one.
const SWEEP_FROM: usize = 1_024;

/// All tenants that are known now; point look-ups, never held across an await.
#[derive(Debug)]
pub(crate) struct Tenants {
    known: DashMap<TenantId, Tenant>,
    limits: ArcSwap<Limits>,
    /// What flows into the bucket of a tenant that has no limit of its own.
    flow: Option<Flow>,
    /// Entries from which idle ones are looked for next.
    sweep_at: AtomicUsize,
}

#[derive(Debug, Default)]
struct Tenant {
    /// Reads that wait or run.
    reads: usize,
    /// Reads that were let in and that the queue has not seen yet.
    entering: usize,
    /// Reads in the queue.
    queued: usize,
    /// Tokens taken out of its bucket and not flowed back by `at`.
    owed: f64,
    at: Option<Instant>,
}

/// What flows into a bucket.
#[derive(Debug, Clone, Copy)]
struct Flow {
    per_minute: u64,
    /// What it holds when full.
    burst: u64,
}

/// What a newcomer finds of its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Found {
    /// Reads that wait or run.
    pub(crate) reads: usize,
    /// Its own limit of these, if it has one.
    pub(crate) reads_max: Option<usize>,
    /// Reads that wait.
    pub(crate) waiting: usize,
    /// Which part of the queue these may be, if not all.
    pub(crate) queue_share: Option<f64>,
    /// Its bucket, where it has one.
    pub(crate) bucket: Option<Bucket>,
}

/// A tenant's bucket of tokens as a newcomer finds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Tokens in it; below zero after a decision larger than the bucket.
    pub held: f64,
    /// Tokens that it holds when full.
    pub burst: u64,
    /// Tokens a minute that flow into it.
    pub per_minute: u64,
}

impl Bucket {
    /// Tokens that would be let in at once now.
    pub fn remaining(&self) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to `burst`")]
        let held = self.held.max(0.0) as u64;
        held.min(self.burst)
    }

    /// Time until it is full.
    pub fn reset(&self) -> Duration {
        self.time_of(self.burst as f64 - self.held)
    }

    /// Time in which as much flows in as it holds.
    pub fn window(&self) -> Duration {
        self.time_of(self.burst as f64)
    }

    fn time_of(&self, tokens: f64) -> Duration {
        let seconds = tokens.max(0.0) * 60.0 / self.per_minute as f64;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl Flow {
    /// What is still owed of so much since then.
    fn owed(self, tenant: &Tenant, now: Instant) -> f64 {
        let since = tenant.at.map_or(0.0, |at| now.saturating_duration_since(at).as_secs_f64());
        (tenant.owed - self.per_minute as f64 / 60.0 * since).max(0.0)
    }
}

impl Tenants {
    pub(crate) fn new(config: &SchedulerConfig) -> Self {
        let (rate, burst) = (config.tenant_rate, config.tenant_burst);
        let per_minute = rate.saturating_mul(60);
        Self {
            known: DashMap::new(),
            limits: ArcSwap::default(),
            flow: (rate > 0).then_some(Flow { per_minute, burst }),
            sweep_at: AtomicUsize::new(SWEEP_FROM),
        }
    }

    /// The limits of single tenants as they are now.
    pub(crate) fn limits(&self) -> Arc<Limits> {
        self.limits.load_full()
    }

    /// Replaces them. What was let in stays in; what is owed to a bucket is owed on, but for what a
    /// smaller one does not hold.
    pub(crate) fn limit(&self, limits: Limits, now: Instant) {
        let (before, limits) = (self.limits.load_full(), Arc::new(limits));
        self.limits.store(Arc::clone(&limits));
        for mut known in self.known.iter_mut() {
            let owed = self.flow(&before, known.key()).map_or(0.0, |flow| flow.owed(&known, now));
            let burst = self.flow(&limits, known.key()).map_or(0, |flow| flow.burst);
            known.owed = owed.min(burst as f64);
            known.at = Some(now);
        }
    }

    /// Counts `reads` of a tenant, and takes `tokens` out of its bucket, until the use is dropped or
    /// given back; as waiting the reads count until their arrival is dropped.
    pub(crate) fn enter(
        self: &Arc<Self>,
        tenant: TenantId,
        (reads, tokens): (usize, u64),
        now: Instant,
    ) -> (TenantUse, Arrival, Found) {
        let limits = self.limits.load();
        if self.known.len() >= self.sweep_at.load(Ordering::Relaxed) {
            let left = self.count(now);
            self.sweep_at.store(SWEEP_FROM.max(2 * left), Ordering::Relaxed);
        }
        let payer = tenant.to_payer();
        let flow = self.flow(&limits, &payer);
        let mut known = self.known.entry(payer.clone()).or_default();
        let found = Found::of(&known, flow, now).within(&limits, &payer);
        known.reads += reads;
        known.entering += reads;
        if let Some(bucket) = found.bucket {
            known.owed = bucket.burst as f64 - bucket.held + tokens as f64;
            known.at = Some(now);
        }
        drop(known);
        let arrival = Arrival { tenants: Arc::clone(self), payer: payer.clone(), reads };
        let tenants = Arc::clone(self);
        (TenantUse { tenants, tenant, payer, reads, tokens }, arrival, found)
    }

    /// A tenant as a newcomer would find it now.
    pub(crate) fn found(&self, tenant: &TenantId, now: Instant) -> Found {
        let limits = self.limits.load();
        let flow = self.flow(&limits, tenant);
        let found = match self.known.get(tenant.payer()) {
            Some(known) => Found::of(&known, flow, now),
            None => Found::of(&Tenant::default(), flow, now),
        };
        found.within(&limits, tenant)
    }

    /// Puts tokens back into a tenant's bucket.
    pub(crate) fn refund(&self, tenant: &TenantId, tokens: u64) {
        let has_bucket = self.flow(&self.limits.load(), tenant).is_some();
        if let (true, Some(mut known)) = (has_bucket, self.known.get_mut(tenant.payer())) {
            known.owed -= tokens as f64;
        }
    }

    /// Counts reads that came into the queue, or left it, by tenant.
    pub(crate) fn queued(&self, changes: BTreeMap<TenantId, isize>) {
        for (tenant, change) in changes {
            let payer = tenant.to_payer();
            let mut known = self.known.entry(payer.clone()).or_default();
            known.queued = known.queued.saturating_add_signed(change);
            let may_go = known.reads + known.entering + known.queued == 0;
            drop(known);
            if may_go {
                self.forget(&payer);
            }
        }
    }

    /// The queue is lost with all that waited in it.
    pub(crate) fn queue_lost(&self) {
        for mut known in self.known.iter_mut() {
            known.queued = 0;
        }
    }

    /// The tenants of whom most reads wait or run.
    pub(crate) fn most_reads(&self) -> Vec<(TenantId, usize)> {
        let mut top = Top::new();
        for known in self.known.iter().filter(|known| known.reads > 0) {
            top.offer(known.key(), known.reads);
        }
        top.into_vec()
    }

    /// How many tenants have something open or a bucket that is not full; the others are forgotten.
    pub(crate) fn count(&self, now: Instant) -> usize {
        let limits = self.limits.load();
        self.known.retain(|payer, known| !known.is_idle(self.flow(&limits, payer), now));
        self.known.len()
    }

    /// Forgets a tenant of which nothing is open, if its bucket is full.
    fn forget(&self, payer: &TenantId) {
        let (limits, now) = (self.limits.load(), Instant::now());
        self.known.remove_if(payer, |payer, known| known.is_idle(self.flow(&limits, payer), now));
    }

    /// What flows into a tenant's bucket, where it has one.
    fn flow(&self, limits: &Limits, tenant: &TenantId) -> Option<Flow> {
        let own = limits.tokens_per_minute(tenant);
        own.map(|tokens| Flow { per_minute: tokens, burst: tokens }).or(self.flow)
    }
}

impl Tenant {
    fn is_idle(&self, flow: Option<Flow>, now: Instant) -> bool {
        let is_full = flow.is_none_or(|flow| flow.owed(self, now) <= 0.0);
        self.reads + self.entering + self.queued == 0 && is_full
    }
}

impl Found {
    fn of(tenant: &Tenant, flow: Option<Flow>, now: Instant) -> Self {
        let bucket = |flow: Flow| {
            let Flow { per_minute, burst } = flow;
            Bucket { held: burst as f64 - flow.owed(tenant, now), burst, per_minute }
        };
        let waiting = tenant.entering + tenant.queued;
        Self { reads: tenant.reads, waiting, bucket: flow.map(bucket), ..Self::default() }
    }

    fn within(self, limits: &Limits, tenant: &TenantId) -> Self {
        let reads_max = limits.of(tenant).and_then(|limits| limits.reads_max);
        Self { reads_max, queue_share: limits.queue_share(tenant), ..self }
    }
}

/// Counts an open decision's reads for its tenant.
#[derive(Debug)]
pub(crate) struct TenantUse {
    tenants: Arc<Tenants>,
    tenant: TenantId,
    payer: TenantId,
    reads: usize,
    tokens: u64,
}

impl TenantUse {
    /// Whose it is.
    pub(crate) fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// What was refused takes nothing out of the bucket.
    pub(crate) fn give_back(self) {
        self.tenants.refund(&self.payer, self.tokens);
    }
}

impl Drop for TenantUse {
    fn drop(&mut self) {
        if let Some(mut known) = self.tenants.known.get_mut(&self.payer) {
            known.reads -= self.reads;
        }
        self.tenants.forget(&self.payer);
    }
}

/// Counts a decision's first reads among those of its tenant that wait, until the queue does.
#[derive(Debug)]
pub(crate) struct Arrival {
    tenants: Arc<Tenants>,
    payer: TenantId,
    reads: usize,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        if let Some(mut known) = self.tenants.known.get_mut(&self.payer) {
            known.entering -= self.reads;
        }
        self.tenants.forget(&self.payer);
    }
}

#[cfg(test)]
mod tests;
