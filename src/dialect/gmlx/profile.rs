//! Which profile a request of the `gmlx` dialect names.

use crate::json::Json;

use super::decode::{Faulty, invalid};

/// The profile that is named, in its own field or behind the model's name and `@`.
pub(super) fn profile_of(
    model: Option<&Json>,
    profile: Option<&Json>,
) -> Result<Option<String>, Faulty> {
    let named = match profile {
        Some(Json::String(name)) => Some(name.as_str()),
        Some(_) => return Err(invalid("profile: must be a string".to_owned())),
        None => None,
    };
    let inline = || Some(model?.as_str()?.rsplit_once('@')?.1);
    let named = named.filter(|name| !name.is_empty()).or_else(inline);
    Ok(named.filter(|name| !name.is_empty()).map(str::to_owned))
}
