//! Names of traces and spans, and which of the traces that begin here are kept.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a trace's id that are random, by W3C Trace Context: the last ones.
const RANDOM_BITS: u32 = 56;

/// Names a trace; not all zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// Names a span within its trace; not all zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl fmt::Display for TraceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", u64::from_be_bytes(self.0))
    }
}

/// Draws ids.
///
/// They are keyed hashes of a counter, under keys that the standard library takes from the system once
/// a process: distinct within it, and neither to be guessed from outside nor to be met in another.
#[derive(Debug, Default)]
pub struct Ids {
    keys: [RandomState; 2],
    count: AtomicU64,
}

impl Ids {
    /// Names a trace that begins here.
    pub fn trace(&self) -> TraceId {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let [high, low] = self.keys.each_ref().map(|keys| keys.hash_one(count));
        // An id of zeros is none.
        TraceId(((u128::from(high) << 64 | u128::from(low)).max(1)).to_be_bytes())
    }

    /// Names a span.
    pub fn span(&self) -> SpanId {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        SpanId(self.keys[0].hash_one(count).max(1).to_be_bytes())
    }
}

/// Keeps a share of the traces, the same ones wherever it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// Ids whose random bits are below it are kept.
    below: u64,
}

impl Sampler {
    /// Keeps this share, 0 to 1.
    pub fn new(share: f64) -> Self {
        let all = 1_u64 << RANDOM_BITS;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of 2^56, which is neither negative nor more than that"
        )]
        let below = (share.clamp(0.0, 1.0) * all as f64) as u64;
        Self { below }
    }

    /// Whether this trace is kept.
    pub fn takes(self, trace: TraceId) -> bool {
        let random = u128::from_be_bytes(trace.0) & ((1 << RANDOM_BITS) - 1);
        random < u128::from(self.below)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_distinct_and_written_in_full() {
        let ids = Ids::default();
        let traces: HashSet<TraceId> = (0..1_000).map(|_| ids.trace()).collect();
        let spans: HashSet<SpanId> = (0..1_000).map(|_| ids.span()).collect();
        assert_eq!((traces.len(), spans.len()), (1_000, 1_000));
        assert!(traces.iter().all(|id| id.to_string().len() == 32));
        assert_eq!(SpanId([0, 0, 0, 0, 0, 0, 0, 0xab]).to_string(), "00000000000000ab");
    }

    #[test]
    fn a_share_of_the_traces_is_kept() {
        let ids = Ids::default();
        let kept = |share: f64| {
            let sampler = Sampler::new(share);
            (0..10_000).filter(|_| sampler.takes(ids.trace())).count()
        };
        assert_eq!((kept(0.0), kept(1.0)), (0, 10_000));
        // Ten standard deviations of a binomial of 10,000 at .25 are 433.
        assert!(kept(0.25).abs_diff(2_500) < 433);
    }

    #[test]
    fn whether_a_trace_is_kept_depends_on_its_last_seven_bytes() {
        let half = Sampler::new(0.5);
        let of = |byte: u8| {
            let mut id = [0xff; 16];
            id[9] = byte;
            half.takes(TraceId(id))
        };
        assert!(of(0x7f) && !of(0x80));
    }
}
