//! The dialect of self's server: strict about fields, values to four decimals, no legend.
//!
//! Source: self's documents and its server (github.com/K0IN/self).

pub(super) mod decode;
pub(super) mod encode;
pub(super) mod models;
mod questions;

#[cfg(test)]
mod tests;
