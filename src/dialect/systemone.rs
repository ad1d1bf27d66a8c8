//! The `systemone` dialect: the official System One contract and docket's extensions to it.
//!
//! In responses every field outside the official contract begins with `x_`; in requests an extension
//! has a plain name and is accepted with `x_` too. Source of the shapes: the official clients
//! (typesafe-sdk 0.7.5, `@typesafe-ai/sdk` 0.6.0) and jevcompat 0.1.1.

pub(super) mod decode;
pub(super) mod encode;
pub(super) mod fields;
pub(super) mod finding;
mod questions;
mod staging;

#[cfg(test)]
mod tests;
