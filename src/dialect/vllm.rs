//! The dialect of vLLM's server: its structured decisions, errors in the shape of `OpenAI`'s API.

pub(super) mod decode;
pub(super) mod encode;
pub(super) mod faults;
pub(super) mod python;
mod questions;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
