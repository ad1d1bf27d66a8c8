//! The `decisio` dialect: its request rules, answer and error shapes, and its headers.
//!
//! Facts are from decisio's public documents; what a pydantic model says of a faulty body is said in the
//! same words, since clients and tests compare them.

pub(super) mod answer;
pub(super) mod decode;
pub(super) mod encode;
pub(super) mod headers;
mod questions;

#[cfg(test)]
mod tests;
