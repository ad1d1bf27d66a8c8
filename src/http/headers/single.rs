//! Headers that say one thing.

use axum::http::{HeaderMap, HeaderValue};

use crate::dialect::problem::RequestFault;

/// The value of a header that says one thing: one that is there again has to say the same, since a
/// proxy and this server could take different ones.
pub(in crate::http) fn once<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> Result<Option<&'a HeaderValue>, RequestFault> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.any(|other| Some(other) != first) {
        let message = "is there twice, with different values".to_owned();
        return Err(RequestFault::Header { name, message });
    }
    Ok(first)
}

/// The same as text.
pub(super) fn text<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> Result<Option<&'a str>, RequestFault> {
    match once(headers, name)?.map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(_)) => {
            let message = "must be visible ASCII characters".to_owned();
            Err(RequestFault::Header { name, message })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_may_be_there_again_only_to_say_the_same() {
        let mut headers = HeaderMap::new();
        assert!(once(&headers, "x-one").unwrap().is_none());
        for (value, right) in [("250", Some("250")), ("250", Some("250")), ("300", None)] {
            headers.append("x-one", value.parse().unwrap());
            assert_eq!(text(&headers, "x-one").ok().flatten(), right, "{headers:?}");
        }
    }
}
