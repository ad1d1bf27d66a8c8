//! `GET /v1/model`: what self's server says of the model that it serves, a route of its own.

use super::selfserve::models;
use crate::service::ModelEntry;

/// The body.
pub fn encode(entry: &ModelEntry) -> String {
    models::model(entry).to_string()
}
