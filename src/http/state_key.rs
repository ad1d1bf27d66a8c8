//! The key of a state on the wire: told with what is about one state, and looked at for its form only
//! where it comes back.

use axum::http::HeaderMap;

use crate::dialect::problem::RequestFault;
use crate::state_key::{HEADER, StateKey};

use super::headers::{insert, text};
use super::respond::excerpt;

pub(super) const STATE_KEY: &str = HEADER;

/// Refuses what is no key; one that is was a router's to read.
pub(super) fn check(headers: &HeaderMap) -> Result<(), RequestFault> {
    let Some(value) = text(headers, STATE_KEY)? else { return Ok(()) };
    value.parse::<StateKey>().map(drop).map_err(|no_key| RequestFault::Header {
        name: STATE_KEY,
        message: format!("{no_key}, not {:?}", excerpt(value)),
    })
}

/// Adds the key of the state that was asked about or prewarmed, where there is one.
pub(super) fn add(headers: &mut HeaderMap, key: Option<StateKey>) {
    if let Some(key) = key {
        insert(headers, STATE_KEY, &key.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_form_of_a_key_is_looked_at() {
        let checked = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(STATE_KEY, value.parse().unwrap());
            check(&headers)
        };
        assert_eq!(check(&HeaderMap::new()), Ok(()));
        assert_eq!(checked("00112233445566ff"), Ok(()));
        for value in ["", "00112233445566778", "00112233445566GG"] {
            let fault = checked(value).unwrap_err();
            assert!(matches!(fault, RequestFault::Header { name: STATE_KEY, .. }), "{value}");
        }
    }

    #[test]
    fn a_key_that_is_told_can_be_sent_back() {
        let mut headers = HeaderMap::new();
        add(&mut headers, None);
        assert!(headers.is_empty());
        add(&mut headers, Some(StateKey(7)));
        assert_eq!(
            (headers[STATE_KEY].to_str().unwrap(), check(&headers)),
            ("0000000000000007", Ok(()))
        );
    }
}
