//! The dialect of gmlx's server, as its letter readout speaks it.
//!
//! Source of the rules, messages and shapes: gmlx 0.5.3's reference of structured decisions and what its
//! validation was seen to answer (tests/conformance/data/gmlx). docs/API.md says where docket does
//! more or less.

pub(super) mod decode;
pub(super) mod encode;
mod profile;
mod questions;
mod repr;

#[cfg(test)]
mod tests;

/// The type of a failure that is a field's fault.
pub(super) const VALIDATION: &str = "validation_error";

/// The type of a failure that is the body's or the request's as a whole.
pub(super) const INVALID_REQUEST: &str = "invalid_request_error";

/// What is said of every image, wherever it stands.
pub(super) const NO_IMAGES: &str = "images are not supported: the served model is text-only";
