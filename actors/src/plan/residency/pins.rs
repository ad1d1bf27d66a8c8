//! Pins: states that stay for a time though nothing leases them, within a budget for all and one for
//! each tenant.
//!
//! Pins are apart from leases: a lease is given for use and comes back, a pin ends with time or when
//! its owner gives it up. Blocks that several pins share are counted once.

use std::time::{Duration, Instant};

use crate::engine::Segment;
use crate::plan::path::PathSegment;
use crate::plan::residency::Residency;
use crate::read::{SegmentKey, TenantId};

/// A pinned state.
#[derive(Debug, Clone)]
pub(super) struct Pin {
    until: Instant,
    ttl: Duration,
    tenant: TenantId,
    /// Its last piece.
    end: SegmentKey,
}

impl Pin {
    /// Its last piece, and when it ends.
    pub(super) fn ends(&self) -> (SegmentKey, Instant) {
        (self.end, self.until)
    }
}

#[cfg(test)]
impl Pin {
    pub(super) fn end(&self) -> SegmentKey {
        self.end
    }
}

impl<S: Segment> Residency<S> {
    /// Pins a complete state until its time to live ends; a longer pin stays. Returns when it ends, or
    /// `None` if it is not complete or a budget is full.
    pub(crate) fn pin(
        &mut self,
        path: &[PathSegment],
        (tenant, ttl): (&TenantId, Duration),
        now: Instant,
    ) -> Option<Instant> {
        self.end_old_pins(now);
        let until = self.try_pin(path, (tenant, ttl), now + ttl);
        self.trim();
        until
    }

    fn try_pin(
        &mut self,
        path: &[PathSegment],
        (tenant, ttl): (&TenantId, Duration),
        until: Instant,
    ) -> Option<Instant> {
        let key = path.last()?.key;
        let end = self.end_of(path).filter(|end| !self.is_beyond_budget(Some(*end)))?;
        if let Some(pin) = self.pins.get_mut(&key) {
            pin.until = pin.until.max(until);
            pin.ttl = pin.ttl.max(ttl);
            return Some(pin.until);
        }
        let own = self.pinnable(end);
        let fresh = own.iter().filter(|key| self.blocks[*key].pins == 0);
        let bytes: u64 = fresh.map(|key| self.blocks[key].bytes).sum();
        let payer = tenant.to_payer();
        let mine = self.pinned_of.get(&payer).copied().unwrap_or(0);
        let is_over_budget = self.bytes.pinned + bytes > self.config.pin_bytes()
            || mine + bytes > self.pin_bytes_max(tenant);
        if is_over_budget || !self.caps.keeps_segments {
            return None;
        }
        for key in own {
            self.count_pin(key, &payer);
        }
        self.lock(Some(end));
        self.pins.insert(key, Pin { until, ttl, tenant: tenant.clone(), end });
        Some(until)
    }

    /// Bytes that the pins of a tenant may hold.
    pub(super) fn pin_bytes_max(&self, tenant: &TenantId) -> u64 {
        let own = self.owners.limits().pin_bytes_max(tenant);
        own.unwrap_or_else(|| self.config.pin_tenant_bytes())
    }

    /// Gives up the pin of a state, if it is the tenant's; the state stays until room is needed.
    pub(crate) fn unpin(&mut self, key: SegmentKey, tenant: &TenantId) -> bool {
        let is_theirs = self.pins.get(&key).is_some_and(|pin| pin.tenant == *tenant);
        if is_theirs {
            self.end_pin(key);
            self.trim();
        }
        is_theirs
    }

    /// Unpins what has outlived its time; it stays until room is needed. What is leased is in use,
    /// which makes its pin young again: decisions that follow each other closely share one lease.
    pub(crate) fn expire_pins(&mut self, now: Instant) {
        self.end_old_pins(now);
        self.trim();
    }

    /// The same, but what their tenants keep too much of stays for now.
    pub(super) fn end_old_pins(&mut self, now: Instant) {
        let mut over = Vec::new();
        for (key, pin) in self.pins.iter_mut().filter(|(_, pin)| pin.until <= now) {
            if self.leases.contains_key(key) {
                pin.until = now + pin.ttl;
            } else {
                over.push(*key);
            }
        }
        for key in over {
            self.end_pin(key);
        }
    }

    /// A use of a pinned state makes its pin young again.
    pub(super) fn extend_pin(&mut self, path: &[PathSegment], now: Instant) {
        let pin = path.last().and_then(|segment| self.pins.get_mut(&segment.key));
        if let Some(pin) = pin {
            pin.until = pin.until.max(now + pin.ttl);
        }
    }

    /// The blocks of a state, without those of the head.
    fn pinnable(&self, end: SegmentKey) -> Vec<SegmentKey> {
        let is_own = |key: &SegmentKey| self.blocks.get(key).is_some_and(|block| !block.is_head);
        self.up_from(Some(end)).take_while(is_own).collect()
    }

    fn count_pin(&mut self, key: SegmentKey, tenant: &TenantId) {
        let Some(block) = self.blocks.get_mut(&key) else { return };
        block.pins += 1;
        if block.pins == 1 {
            block.pinned_by = Some(tenant.clone());
            self.bytes.pinned += block.bytes;
            *self.pinned_of.entry(tenant.clone()).or_insert(0) += block.bytes;
        }
    }

    fn end_pin(&mut self, key: SegmentKey) {
        let Some(pin) = self.pins.remove(&key) else { return };
        for key in self.pinnable(pin.end) {
            self.uncount_pin(key);
        }
        self.unlock(Some(pin.end));
    }

    fn uncount_pin(&mut self, key: SegmentKey) {
        let Some(block) = self.blocks.get_mut(&key) else { return };
        block.pins -= 1;
        if block.pins > 0 {
            return;
        }
        self.bytes.pinned -= block.bytes;
        let Some(tenant) = block.pinned_by.take() else { return };
        let Some(bytes) = self.pinned_of.get_mut(&tenant) else { return };
        *bytes -= block.bytes;
        if *bytes == 0 {
            self.pinned_of.remove(&tenant);
        }
    }
}
