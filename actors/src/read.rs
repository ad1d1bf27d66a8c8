//! What a caller asks for: decisions, the reads they consist of, and the prefixes they stand on.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::engine::RowOutcome;

pub use crate::prefix::{Prefix, SegmentSpec};

/// Priority lanes, most urgent first. The four names are the same everywhere (ARCHITECTURE D12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Lane {
    /// Someone waits for the answer at this moment.
    Urgent,
    /// The default.
    #[default]
    Normal,
    /// Bulk work.
    Batch,
    /// Only when nothing else is ready: boundary registration, idle prewarm.
    Idle,
}

impl Lane {
    /// All lanes, most urgent first.
    pub const ALL: [Self; 4] = [Self::Urgent, Self::Normal, Self::Batch, Self::Idle];

    /// The lane in which what has waited long stands: one higher, but never the urgent one.
    #[must_use]
    pub fn raised(self) -> Self {
        match self {
            Self::Urgent => Self::Urgent,
            Self::Normal | Self::Batch => Self::Normal,
            Self::Idle => Self::Batch,
        }
    }

    /// Its name on the wire, in metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Urgent => "urgent",
            Self::Normal => "normal",
            Self::Batch => "batch",
            Self::Idle => "idle",
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Lane {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == text).ok_or(())
    }
}

/// Whom fairness and isolation are counted for; comes from the API key only (ARCHITECTURE D12).
///
/// `PARENT/SUB` names a sub-tenant: a tenant of its own for isolation and fairness, whose limits are
/// those of its parent, counted for the parent with all its subs together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub Arc<str>);

/// Buckets into which tenants fall in metrics, so that these neither name tenants nor grow with them.
pub const TENANT_BUCKETS: usize = 16;

impl TenantId {
    /// Whose sub-tenant it is, if it is one.
    pub fn parent(&self) -> Option<&str> {
        self.0.split_once('/').map(|(parent, _)| parent)
    }

    /// In whose limits it is counted: its parent's, or its own.
    pub fn payer(&self) -> &str {
        self.parent().unwrap_or(&self.0)
    }

    /// The same as a tenant.
    pub(crate) fn to_payer(&self) -> Self {
        self.parent().map_or_else(|| self.clone(), |parent| Self(parent.into()))
    }

    /// The tenant's bucket, 0 to 15: FNV-1a of its name, the same in every process.
    pub fn bucket(&self) -> usize {
        let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let hash = self.0.bytes().fold(0x811c_9dc5, step);
        // The low bits of this hash depend on all bytes; folding the high ones in evens them out.
        (hash ^ hash >> 16) as usize % TENANT_BUCKETS
    }
}

impl Borrow<str> for TenantId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Identity of a segment: its tokens, all tokens before it, the model and the tenant's salt.
///
/// SHA-256 over the parent's key, the salt and the token ids; the root is the fingerprint of model,
/// weights, precision and rendering. Different content never shares a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentKey(pub [u8; 32]);

impl SegmentKey {
    /// The key above all segments of one model and rendering.
    pub fn root(fingerprint: &[u8]) -> Self {
        Self(Sha256::digest(fingerprint).into())
    }

    /// The key of `tokens` after `self`, under `salt` (empty for what all tenants share).
    #[must_use]
    pub fn child(&self, salt: &[u8], tokens: &[u32]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update((salt.len() as u64).to_le_bytes());
        hash.update(salt);
        for token in tokens {
            hash.update(token.to_le_bytes());
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for SegmentKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &self.0[..6] {
            write!(formatter, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// One prompt whose label log-probabilities are wanted; its prefix is the decision's.
#[derive(Debug, Clone)]
pub struct ReadSpec {
    /// The tokens after the prefix; never empty.
    pub suffix: Arc<[u32]>,
    /// Token ids of the labels, distinct.
    pub labels: Arc<[u32]>,
    /// Whether the last hidden state is wanted too.
    pub want_hidden: bool,
    /// Whether the probability of all labels over the whole vocabulary is wanted, where the engine reads
    /// label rows only.
    pub want_mass: bool,
}

/// What one read gave, what it cost and what it waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOutcome {
    /// The reading.
    pub row: RowOutcome,
    /// Where its time went.
    pub timing: ReadTiming,
    /// Tokens computed on its account: its suffix, and those of the state (or head) whose chunk was
    /// run because of it. Summed over all reads this is what the engine really ran.
    pub computed_tokens: u32,
    /// Tokens of its prompt that it found resident or that another read was already waiting for.
    pub cached_tokens: u32,
}

/// Where a read's time went (ARCHITECTURE D15); the sum is its time from admission to outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadTiming {
    /// From admission until work on it starts: the first chunk of its state or, if that is
    /// resident, its step.
    pub queue_wait: Duration,
    /// From then until its state is resident (zero where it was).
    pub state_wait: Duration,
    /// Of the state wait, the steps that had a chunk of its state; the rest was waited for others.
    pub state_time: Duration,
    /// From ready to run until the step that reads it starts.
    pub engine_wait: Duration,
    /// The step that read it.
    pub engine_time: Duration,
    /// That step's number: reads of one step have one.
    pub step: u64,
    /// Whether a boundary registration was running when it was admitted.
    pub behind_registration: bool,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_sub_tenant_is_counted_for_its_parent() {
        let names = ["acme", "acme/a", "acme/a/b"].map(|name| TenantId(name.into()));
        assert_eq!(names.each_ref().map(TenantId::payer), ["acme"; 3]);
        assert_eq!(names.each_ref().map(TenantId::parent), [None, Some("acme"), Some("acme")]);
        assert!(names.iter().all(|name| name.to_payer() == names[0]));
    }

    #[test]
    fn tenants_fall_into_all_buckets_alike() {
        let mut sizes = BTreeMap::new();
        for number in 0..1_600 {
            let tenant = TenantId(format!("tenant-{number}").into());
            *sizes.entry(tenant.bucket()).or_insert(0) += 1;
            assert_eq!(tenant.bucket(), tenant.clone().bucket());
        }
        assert_eq!(sizes.len(), TENANT_BUCKETS);
        assert!(sizes.values().all(|size| (50..=150).contains(size)), "{sizes:?}");
    }
}
