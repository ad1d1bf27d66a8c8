//! Headers that a request may say once: of two different values none is taken.
//!
//! Which of two is read differs from server to server, so a proxy that checks one of them may have let
//! in the other: for another tenant, in a higher lane, beside another's states.

use axum::http::{HeaderMap, HeaderValue};

use crate::dialect::DECISIO_HEADERS;
use crate::dialect::problem::RequestFault;

use super::headers::{API_KEY, DIALECT, FAIRNESS_ID, OBJECTIVE, PRIORITY, SALT, TIMEOUT_MS};
use super::state_key::STATE_KEY;

pub(super) const AUTHORIZATION: &str = "authorization";
pub(super) const REQUEST_ID: &str = "x-request-id";

/// All headers of which one value is read, but those that say who asks ([`CREDENTIALS`]), `host`, of
/// which the guard takes no second, and `content-length`, of which hyper takes no other.
const NAMES: [&str; 9] = [
    DIALECT,
    PRIORITY,
    OBJECTIVE,
    TIMEOUT_MS,
    SALT,
    STATE_KEY,
    FAIRNESS_ID,
    REQUEST_ID,
    "content-type",
];

/// Headers with a key.
const CREDENTIALS: [&str; 2] = [AUTHORIZATION, API_KEY];

/// Refuses a header that is there with different values.
///
/// # Errors
/// [`RequestFault::Header`], which names it and repeats nothing of it.
pub(super) fn check(headers: &HeaderMap) -> Result<(), RequestFault> {
    let mut names = NAMES.into_iter().chain(DECISIO_HEADERS);
    names.try_for_each(|name| value(headers, name).map(drop))
}

/// The same of headers with a key.
///
/// # Errors
/// As [`check`].
pub(super) fn check_credentials(headers: &HeaderMap) -> Result<(), RequestFault> {
    CREDENTIALS.into_iter().try_for_each(|name| value(headers, name).map(drop))
}

/// The one value of a header, however often it is there.
///
/// # Errors
/// As [`check`].
pub(crate) fn value<'h>(
    headers: &'h HeaderMap,
    name: &'static str,
) -> Result<Option<&'h HeaderValue>, RequestFault> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.any(|further| Some(further) != first) {
        let message = "it is there more than once, with different values".to_owned();
        return Err(RequestFault::Header { name, message });
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn one_value_may_be_there_twice_and_two_may_not() {
        let headers = |values: [&str; 2]| {
            let pairs = values.map(|value| (SALT.parse().unwrap(), value.parse().unwrap()));
            pairs.into_iter().collect::<HeaderMap>()
        };
        assert_eq!(value(&headers(["a", "a"]), SALT).unwrap().unwrap(), "a");
        assert_eq!(value(&headers(["a", "a"]), PRIORITY), Ok(None));
        let told = value(&headers(["secret", "other"]), SALT).unwrap_err().to_string();
        assert_eq!(told, "header x-docket-salt: it is there more than once, with different values");
        assert!(check(&headers(["a", "b"])).is_err() && check(&headers(["a", "a"])).is_ok());
        assert!(check_credentials(&headers(["a", "b"])).is_ok());
    }

    /// What is asked of headers by `get` below `src/http`, which tells of the first value only.
    const FIRST_VALUES: [&str; 6] = [
        // Checked before: the names of wishes and those of a dialect, and the two lists above.
        "name",
        "FAIRNESS_ID",
        "OBJECTIVE",
        "header::CONTENT_TYPE",
        // Hyper takes no two that differ.
        "header::CONTENT_LENGTH",
        // Of a response.
        "LANE",
    ];

    /// All code below a folder, but for what reads headers of other servers' answers and of parts of
    /// forms. Pages are no code here: they read headers of answers.
    fn sources(folder: &Path) -> Vec<String> {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let below = paths.map(|path| {
            let is_code = path.extension().is_some_and(|kind| kind == "rs");
            if is_code {
                return vec![fs::read_to_string(&path).unwrap()];
            }
            if path.is_dir() && !path.ends_with("images") { sources(&path) } else { Vec::new() }
        });
        below.flatten().collect()
    }

    #[test]
    fn no_header_is_read_by_its_first_value_that_is_not_checked() {
        let mut read = Vec::new();
        for text in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http")) {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let asked = [concat!("headers", ".get("), concat!("headers()", ".get(")];
            let asked = asked.iter().flat_map(|asked| code.split(asked).skip(1));
            let names = asked.map(|rest| rest.split(')').next().unwrap_or_default());
            read.extend(names.map(str::to_owned));
        }
        assert!(read.len() >= FIRST_VALUES.len(), "{read:?}");
        let unknown = |name: &&String| !FIRST_VALUES.contains(&name.as_str());
        let unknown: Vec<&String> = read.iter().filter(unknown).collect();
        assert!(unknown.is_empty(), "to be read by `once::value`, or to be listed: {unknown:?}");
    }
}
