//! Engines: what runs a model.

pub mod fake;
