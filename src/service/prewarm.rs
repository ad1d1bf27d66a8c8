//! What a prewarm asks for and what it did, as dialects read and write it.

use std::time::Duration;

use actors::{Lane, Tier};

use crate::error::DecideError;
use crate::json::Json;
use crate::question::Manner;
use crate::question::answer::Cost;
use crate::state_key::StateKey;

/// States to be read before their questions come.
#[derive(Debug, Clone, PartialEq)]
pub struct Prewarm {
    /// Which.
    pub states: States,
    /// The lane asked for.
    pub lane: Option<Lane>,
    /// Longest time from the request's first byte to its answer, where the caller set one.
    pub timeout: Option<Duration>,
    /// How long each state stays pinned without a hit, where the caller set it; cut to the server's
    /// limit.
    pub ttl: Option<Duration>,
    /// Whether to answer only when they are resident.
    pub wait: bool,
    /// By which of the server's settings they are shown.
    pub manner: Manner,
    /// The settings to show them by, where the request names some of the operator's.
    pub profile: Option<String>,
    /// What the prompts say ahead of the states, where the request says something.
    pub context: Option<String>,
    /// What the request gives the model's chat template beside the turns.
    pub template: Vec<(String, Json)>,
}

/// One state or a list of them; each a string, or any JSON but null.
#[derive(Debug, Clone, PartialEq)]
pub enum States {
    /// One: what fails it fails the request.
    One(Json),
    /// Several, at least one: each has an answer of its own.
    Many(Vec<Json>),
}

/// What a prewarm did.
#[derive(Debug, Clone, PartialEq)]
pub struct Prewarmed {
    /// The served model's name.
    pub model: String,
    /// What was read.
    pub prefixes: Prefixes,
    /// What it cost and waited for, all states together.
    pub cost: Cost,
    /// By what a router finds the server that holds the state, where it is one.
    pub state_key: Option<StateKey>,
}

/// What became of the states, as they were given.
#[derive(Debug, Clone, PartialEq)]
pub enum Prefixes {
    /// Of the one.
    One(Warmed),
    /// Of each, in order.
    Many(Vec<Result<Warmed, DecideError>>),
}

/// How the prefix of a state is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Warmed {
    /// Length of the prefix (head and state) in tokens.
    pub prompt_tokens: u64,
    /// Whether the prefix was resident already.
    pub reused: bool,
    /// Whether it has been made resident now.
    pub stored: bool,
    /// How it is kept.
    pub tier: Tier,
    /// When its pin ends without a hit, in seconds since 1970; `None` where it is not pinned.
    pub expires_at: Option<u64>,
    /// By what the pin is given up; `None` where there is nothing to give up.
    pub handle: Option<String>,
}

impl Warmed {
    /// Whether the prefix is resident, or will be.
    pub fn is_ok(&self) -> bool {
        self.reused || self.stored || self.tier == Tier::Pending
    }
}
