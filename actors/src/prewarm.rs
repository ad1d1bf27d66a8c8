//! Prewarm: what is asked for, how it stands, and by what its pin is given up.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant as StdInstant};

use tokio::time::Instant;

use crate::read::{Lane, Prefix, SegmentKey, TenantId};

/// A state that is to be resident before its questions come.
#[derive(Debug, Clone)]
pub struct PrewarmSpec {
    /// Whose state it is.
    pub tenant: TenantId,
    /// Head and state.
    pub prefix: Prefix,
    /// Lane in which it is computed.
    pub lane: Lane,
    /// How long it stays pinned without a hit; the default of the configuration if not given, and
    /// never more than its maximum.
    pub ttl: Option<Duration>,
    /// Whether to answer only when it is resident.
    pub wait: bool,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Whether the caller asked for that time limit; then it is not let in if it cannot be met.
    pub deadline_is_asked: bool,
}

/// How a prewarm stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrewarmOutcome {
    /// Tokens of the prefix.
    pub prompt_tokens: u32,
    /// Of these, how many were resident when it was asked for, whichever states had them.
    pub reused: u32,
    /// Of these, how many were computed on its account. What several prewarms and reads wait for is
    /// computed on account of whoever asked first; summed over all, this is what the engine ran.
    pub computed: u32,
    /// Time until work on it began; the rest of its time is that of the computation.
    pub queue_wait: Duration,
    /// Whether all of them are resident now.
    pub stored: bool,
    /// Whether they are pinned; a full pin budget leaves a state stored but evictable.
    pub pinned: bool,
    /// Whether they are still to be computed.
    pub pending: bool,
    /// When the pin ends unless a hit comes first; `None` where there is no pin.
    pub expires_at: Option<Instant>,
    /// By what the pin, or a prewarm that is pending, is given up.
    pub pin: PinHandle,
    /// How it is kept.
    pub tier: Tier,
}

impl PrewarmOutcome {
    /// All is resident, and pinned until then.
    pub(crate) fn stored(self, until: Option<StdInstant>) -> Self {
        let expires_at = until.map(Instant::from_std);
        Self { stored: true, pinned: until.is_some(), expires_at, ..self }
    }

    /// It was computed, but there is no room in which it could stay.
    pub(crate) fn not_kept(self) -> Self {
        Self { tier: Tier::Off, ..self }
    }

    /// It will be computed.
    pub(crate) fn pending(self) -> Self {
        Self { pending: true, tier: Tier::Pending, ..self }
    }
}

/// How well a state is kept, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Its keys and values are what computing it gives, bit for bit.
    Exact,
    /// It is still to be computed.
    Pending,
    /// The engine keeps nothing.
    Unsupported,
    /// It is not kept: [`kv_bytes`](crate::CacheConfig::kv_bytes) is 0 or less than it takes, or no
    /// room had become free when it was computed.
    Off,
}

impl Tier {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Pending => "pending",
            Self::Unsupported => "unsupported",
            Self::Off => "off",
        }
    }
}

/// Names the pin of a state; written as 64 hexadecimal digits.
///
/// It is the state's key, which is salted by tenant, and is taken from its own tenant only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinHandle(pub SegmentKey);

impl fmt::Display for PinHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PinHandle(SegmentKey(bytes)) = self;
        bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for PinHandle {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(());
        }
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| ())?;
        }
        Ok(Self(SegmentKey(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_as_it_is_written() {
        let handle = PinHandle(SegmentKey::root(b"state"));
        assert_eq!(handle.to_string().parse(), Ok(handle));
        for text in ["", "0", &"0".repeat(65), &"+1".repeat(32), &"é".repeat(32)] {
            assert_eq!(text.parse::<PinHandle>(), Err(()), "{text}");
        }
    }
}
