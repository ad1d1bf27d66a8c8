//! docket: a decision server. The modules in data-flow order; arrows go one way (docs/ARCHITECTURE.md).

pub mod cli;
pub mod config;
pub mod error;
pub mod files;
pub mod json;
pub mod models;
pub mod prompt;
pub mod question;
