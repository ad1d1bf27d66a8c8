//! The dialect of `OpenAI`'s Decisions API: a list of questions, a list of answers in its order.
//!
//! Source: the types of the official client (openai-python, `decision_create_params.py` and
//! `decision.py`) and vLLM's server of the same form.

pub(super) mod decode;
pub(super) mod encode;
pub(super) mod models;
pub(super) mod questions;

#[cfg(test)]
mod tests;
