//! One decision from end to end: render, submit, read out, answer.
//!
//! This is the one place that joins `prompt`, the actors and `readout`. It knows neither the wire nor
//! a tensor.

use std::sync::Arc;
use std::time::Duration;

use actors::{DecisionHandle, DecisionMeta, Handle, Lane, ReadError, ReadOutcome, TenantId};
use tokio::time::Instant;

use crate::error::DecideError;
use crate::prompt::{Prompter, StatePrefix};
use crate::question::answer::{Answer, Cost};
use crate::question::{Decision, Question, Samples};
use crate::readout::{LabelReading, Reading, Shown};

/// Limits of a decision that the server sets.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time from a request's first byte to its answer, where the caller names none.
    pub timeout: Duration,
    /// Longest time that a caller may name.
    pub timeout_max: Duration,
    /// Most orders of a question that are read.
    pub samples_max: u32,
}
