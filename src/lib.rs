//! docket: a decision server. The modules in data-flow order; arrows go one way (docs/ARCHITECTURE.md).

pub mod cli;
pub mod config;
pub mod decide;
pub mod dialect;
pub mod engine;
pub mod error;
pub mod extract;
pub mod files;
pub mod gateway;
pub mod http;
pub mod json;
pub mod models;
pub mod openapi;
pub mod prompt;
pub mod question;
pub mod readout;
pub mod service;
pub mod start;
pub mod state_key;
pub mod tasks;
pub mod telemetry;
pub mod tenants;
pub mod traces;
pub mod usage;
pub mod version;
pub mod watched;
