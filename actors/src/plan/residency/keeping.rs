//! What stays beyond its last lease: states that are kept, and whether one could be at all.

use crate::engine::Segment;
use crate::plan::path::PathSegment;
use crate::plan::residency::Residency;
use crate::prewarm::Tier;
use crate::read::{SegmentKey, TenantId};

impl<S: Segment> Residency<S> {
    /// Keeps a complete state beyond its last lease; says whether it is there and may stay.
    pub(crate) fn keep(&mut self, path: &[PathSegment]) -> bool {
        let Some(end) = self.end_of(path).filter(|_| self.caps.keeps_segments) else {
            return false;
        };
        self.move_into_budget(path, end) && self.mark_kept(end)
    }

    /// Tokens of `path` that are held, whoever computed them.
    pub(crate) fn held(&self, path: &[PathSegment]) -> u32 {
        path.iter().map(|segment| self.find(segment).tokens).sum()
    }

    /// Whether a path of these segments could be held for a tenant at all: within the budget, and
    /// within what the tenant may keep or pin.
    pub(crate) fn could_hold(&self, path: &[PathSegment], tenant: &TenantId) -> bool {
        let bytes_max = self.owners.limits().kv_bytes_max(tenant).unwrap_or(u64::MAX);
        let pinned_max = self.pin_bytes_max(tenant).min(self.config.pin_bytes());
        self.fits(path, bytes_max.max(pinned_max))
    }

    /// Whether it could stay though nothing leases or pins it.
    pub(crate) fn could_stay(&self, path: &[PathSegment], tenant: &TenantId) -> bool {
        self.fits(path, self.owners.limits().kv_bytes_max(tenant).unwrap_or(u64::MAX))
    }

    /// Whether a path fits the budget, and what of it is its tenant's `own_max` bytes.
    fn fits(&self, path: &[PathSegment], own_max: u64) -> bool {
        let bytes = |segment: &PathSegment| self.caps.segment_bytes(segment.start, segment.len());
        let own = path.iter().filter(|segment| !segment.is_head).map(bytes).sum::<u64>();
        let all = path.iter().map(bytes).sum::<u64>();
        self.caps.keeps_segments && all <= self.budget && own <= own_max
    }

    /// How well a state that a tenant asks for now could be kept.
    pub(crate) fn tier(&self, path: &[PathSegment], tenant: &TenantId) -> Tier {
        match (self.caps.keeps_segments, self.could_hold(path, tenant)) {
            (false, _) => Tier::Unsupported,
            (true, false) => Tier::Off,
            (true, true) => Tier::Exact,
        }
    }

    /// The last piece of a path that is complete.
    pub(super) fn end_of(&self, path: &[PathSegment]) -> Option<SegmentKey> {
        let last = path.iter().rev().find(|segment| segment.len() > 0)?;
        Some(last.end()).filter(|end| self.blocks.contains_key(end))
    }
}
