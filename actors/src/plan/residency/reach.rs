//! How far a lease may go for its room.

/// Of what a lease may take its room, where not enough is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Whether what foreground reads have used again is evicted for it also while other leases are
    /// held, which end and leave room. Work in the background waits for that instead: a sweep that
    /// has much of the memory leased at a time would drive out live sessions otherwise.
    pub(crate) evicts_protected: bool,
    /// Whether it is granted beyond the budget if no other is, up to the allowance.
    pub(crate) may_overflow: bool,
}

impl Reach {
    /// All of the budget, and nothing beyond.
    pub(crate) const BUDGET: Self = Self { evicts_protected: true, may_overflow: false };

    /// Whether it has something that another has not.
    pub(crate) fn exceeds(self, other: Self) -> bool {
        self.evicts_protected && !other.evicts_protected || self.may_overflow && !other.may_overflow
    }
}
