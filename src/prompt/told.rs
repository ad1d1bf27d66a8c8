//! What a prompt says ahead of its question: the state, and what stands before it.

use actors::Prefix;

use super::state;
use crate::json::Json;

/// What a prompt says ahead of its question.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Context ahead of the state, where there is some; part of the state's segment.
    pub context: Option<String>,
    /// The state.
    pub state: Json,
}

impl Told {
    /// A state without context.
    pub fn of(state: Json) -> Self {
        Self { context: None, state }
    }

    /// Most bytes of its text; of a string exactly its bytes.
    pub fn bytes(&self) -> usize {
        state::state_bytes(&self.state) + self.context.as_ref().map_or(0, |text| text.len() + 2)
    }
}

/// A state's prefix, ready for reads.
#[derive(Debug, Clone)]
pub struct StatePrefix {
    /// Head and state.
    pub prefix: Prefix,
    /// Tokens of the state's text alone, for usage.
    pub state_tokens: u32,
    /// Whether the state was tokenised for this call, and not found tokenised.
    pub tokenised: bool,
}
