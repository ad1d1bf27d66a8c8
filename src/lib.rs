//! docket: a decision server. The modules in data-flow order; arrows go one way (docs/ARCHITECTURE.md).

pub mod engine;
pub mod error;
pub mod files;
pub mod json;
pub mod prompt;
pub mod question;
