//! Headers on their way through: what is for one connection only stays there.

use axum::http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::http::{harmless, new_id, one_value};

/// Headers of one connection (RFC 9110, section 7.6.1), and two that never were standard.
static HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

const REQUEST_ID: &str = "x-request-id";

/// How a gateway calls itself on the way.
const OWN_NAME: HeaderValue = HeaderValue::from_static("1.1 docket-gateway");

/// Removes what is for this connection only.
pub(super) fn pass_on(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in listed.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers.append(VIA, OWN_NAME);
}

/// Makes the headers of a request those that a backend is sent: whom the client asked stays in them,
/// so that a backend which answers to certain hosts only decides by that.
///
/// * Returns the request's name for itself; one that has none is given one.
pub(super) fn prepare(parts: &mut Parts) -> String {
    let headers = &mut parts.headers;
    pass_on(headers);
    // The body is whole: its length is said anew, and nobody waits to be asked for it.
    headers.remove(CONTENT_LENGTH);
    headers.remove(EXPECT);
    // Of two the target is the one that counts (RFC 9112, section 3.2.2).
    let asked = parts.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = asked {
        headers.insert(HOST, host);
    }
    let sent = one_value(headers, REQUEST_ID);
    match sent.map(|sent| sent.and_then(|id| harmless(id.as_bytes()))) {
        Ok(Some(id)) => id,
        // Of two the backend will take none, and says so.
        Err(_) => new_id(),
        Ok(None) => {
            let id = new_id();
            if let Ok(value) = HeaderValue::from_str(&id) {
                headers.insert(REQUEST_ID, value);
            }
            id
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let parsed = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        };
        pairs.iter().map(parsed).collect()
    }

    #[test]
    fn what_is_for_one_connection_is_not_passed_on() {
        let mut sent = headers(&[
            ("connection", "close, x-own"),
            ("connection", "X-Other"),
            ("x-own", "1"),
            ("x-other", "1"),
            ("x-kept", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "secret"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("via", "1.1 other"),
        ]);
        pass_on(&mut sent);
        let left: Vec<(&str, &str)> =
            sent.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        let kept = [("x-kept", "1"), ("via", "1.1 other"), ("via", "1.1 docket-gateway")];
        assert_eq!(left.len(), kept.len(), "{left:?}");
        assert!(kept.iter().all(|header| left.contains(header)), "{left:?}");
    }

    #[test]
    fn a_request_keeps_whom_it_asked_and_has_a_name() {
        let parts = |target: &str, pairs: &[(&str, &str)]| {
            let (mut parts, ()) = Request::builder().uri(target).body(()).unwrap().into_parts();
            parts.headers = headers(pairs);
            let id = prepare(&mut parts);
            (id, parts.headers)
        };
        let (id, sent) = parts(
            "/v1/models",
            &[
                ("host", "gateway:1"),
                ("x-request-id", "mine <1>"),
                ("content-length", "3"),
                ("expect", "100-continue"),
            ],
        );
        assert_eq!(
            (id.as_str(), &sent["host"], &sent["x-request-id"]),
            (
                "mine1",
                &HeaderValue::from_static("gateway:1"),
                &HeaderValue::from_static("mine <1>")
            )
        );
        assert!(!sent.contains_key(CONTENT_LENGTH) && !sent.contains_key(EXPECT));
        let (id, sent) = parts("http://target:2/v1/models", &[("host", "other:1")]);
        assert_eq!(sent["host"], "target:2");
        assert_eq!(sent["x-request-id"], id.as_str());
        assert_eq!(id.len(), 36);
        let (_, sent) = parts("/", &[("x-request-id", "a"), ("x-request-id", "b")]);
        assert_eq!(sent.get_all("x-request-id").iter().count(), 2, "for the backend to refuse");
    }
}
