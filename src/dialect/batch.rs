//! The body of a batch: states, and what all of them are asked.
//!
//! `http/batch.rs` answers it; what is read of the body is here, where no HTTP is.

use crate::error::{DecideError, Problem};
use crate::json::Json;

/// Most states of one batch.
pub const STATES_MAX: usize = 1_024;

/// A JSON object's members.
pub type Members = Vec<(String, Json)>;

/// The state of a decision whose questions are looked at before there is one.
pub fn blank() -> Json {
    Json::String(String::new())
}

/// The body of a decision on one state.
pub fn with_state(rest: &[(String, Json)], state: Json) -> Json {
    Json::Object(rest.iter().cloned().chain([("state".to_owned(), state)]).collect())
}

/// The states, and all other members of the body.
///
/// # Errors
/// A body that is no object, has images, or has not 1 to [`STATES_MAX`] states.
pub fn split(json: Json) -> Result<(Vec<Json>, Members), DecideError> {
    let invalid = |code, message: String| {
        DecideError::Invalid(vec![Problem::new(vec!["states".into()], code, message)])
    };
    let Json::Object(mut members) = json else {
        let message = format!("a batch must be an object, not {}", json.type_name());
        let fault = Problem::new(Vec::new(), "wrong_type", message);
        return Err(DecideError::Invalid(vec![fault]));
    };
    let has_images = |(name, value): &(String, Json)| name == "images" && *value != Json::Null;
    if members.iter().any(has_images) {
        return Err(DecideError::Unsupported("a batch takes no images".to_owned()));
    }
    let Some(at) = members.iter().position(|(name, _)| name == "states") else {
        let message = "states is missing: a batch has a list of one or more states".to_owned();
        return Err(invalid("missing", message));
    };
    if members.iter().any(|(name, _)| name == "state") {
        let message = "state and states are both given, a batch has states".to_owned();
        return Err(invalid("duplicate_key", message));
    }
    let (_, states) = members.remove(at);
    let Json::Array(states) = states else {
        let message = format!("states must be a list of one or more, not {}", states.type_name());
        return Err(invalid("wrong_type", message));
    };
    let count = states.len();
    match count {
        0 => return Err(invalid("too_few", "states is empty, expected one or more".to_owned())),
        1..=STATES_MAX => {}
        _ => {
            let message = format!("states has {count} elements, at most {STATES_MAX} are answered");
            return Err(invalid("too_many", message));
        }
    }
    Ok((states, members))
}
