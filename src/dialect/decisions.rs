//! `POST /v1/decisions`: `OpenAI`'s route, whose answers need more of the request than what is read of
//! it: names, which need not differ, and values, which need not be texts.

use super::openai;
use super::{RequestLimits, Undecoded};
use crate::error::DecideError;
use crate::json::Json;
use crate::service::Decided;

pub use openai::decode::Asked;
pub use openai::questions::Wanted;

/// Reads a request.
///
/// # Errors
/// All faults found.
pub fn decode(body: Json, limits: &RequestLimits) -> Result<Asked, Undecoded> {
    openai::decode::asked(body, limits)
}

/// The response; what is wanted of each answer, in their order.
///
/// # Errors
/// [`DecideError::Internal`] where a number is not finite.
pub fn encode(wanted: &[Wanted], decided: &Decided) -> Result<String, DecideError> {
    openai::encode::answered(wanted, decided)
}
