//! Reads whose own text is longer than a step: their beginning is read in chunks, like a state.
//!
//! A suffix runs in one step, which nothing can interrupt; ten thousand tokens of instructions would
//! make everybody wait. So the beginning of a long suffix becomes part of a prefix of its own, which
//! the scheduler chunks, orders and cancels as it does with every state. It has the state's blocks in
//! common with it; what it answers is the same bit for bit (ARCHITECTURE D6).

use actors::{DecisionHandle, DecisionMeta, Prefix, ReadError, ReadOutcome, ReadSpec};

use super::Decider;
use super::round::Round;
use crate::error::DecideError;

/// Tokens that are left of a long suffix when its beginning has been cut off.
const REST_TOKENS: usize = 64;

/// Mixed into the key of such a prefix, so that it is never taken for a state that clients share.
const SALT: &[u8] = b"suffix";

impl Decider {
    /// Reads a round: short suffixes on the decision's state, long ones one after the other.
    pub(super) async fn read(
        &self,
        session: &mut DecisionHandle,
        meta: &DecisionMeta,
        round: &Round,
    ) -> Result<Vec<ReadOutcome>, DecideError> {
        let is_long = |spec: &&ReadSpec| spec.suffix.len() > self.limits.suffix_tokens as usize;
        let short: Vec<ReadSpec> = round.specs.iter().filter(|s| !is_long(s)).cloned().collect();
        let short = session.read(short).await?;
        let mut short = short.into_iter().collect::<Result<Vec<_>, ReadError>>()?.into_iter();
        let mut outcomes = Vec::with_capacity(round.specs.len());
        for spec in &round.specs {
            let outcome =
                if is_long(&spec) { Some(self.read_long(meta, spec).await?) } else { short.next() };
            outcomes.extend(outcome);
        }
        Ok(outcomes)
    }

    async fn read_long(
        &self,
        meta: &DecisionMeta,
        spec: &ReadSpec,
    ) -> Result<ReadOutcome, DecideError> {
        let (beginning, rest) = spec.suffix.split_at(spec.suffix.len() - REST_TOKENS);
        let spec = ReadSpec { suffix: rest.into(), ..spec.clone() };
        let mut session = self.actors.open(DecisionMeta {
            prefix: extended(&meta.prefix, beginning),
            first_reads: 1,
            first_tokens: rest.len() as u64,
            suffix_tokens_max: u32::try_from(rest.len()).unwrap_or(u32::MAX),
            ..meta.clone()
        })?;
        let outcome = session.read(vec![spec]).await?.pop().ok_or(ReadError::Unavailable)?;
        Ok(outcome?)
    }
}

/// The prefix with more tokens after its state.
fn extended(prefix: &Prefix, tokens: &[u32]) -> Prefix {
    Prefix { head: prefix.head.clone(), state: prefix.state.extended(SALT, tokens) }
}

#[cfg(test)]
mod tests {
    use actors::{SegmentKey, SegmentSpec};

    use super::*;

    #[test]
    fn an_extended_prefix_has_all_tokens_and_a_key_of_its_own() {
        let head = SegmentSpec::head(SegmentKey::root(b"model"), [1].into());
        let prefix = Prefix { state: SegmentSpec::state(&head, b"salt", [2, 3].into()), head };
        let longer = extended(&prefix, &[4, 5]);
        assert_eq!(*longer.state.tokens, [2, 3, 4, 5]);
        assert_ne!(longer.state.key, prefix.state.key);
        assert_ne!(longer.state.key, extended(&prefix, &[4, 6]).state.key);
    }
}
