//! The name in a request's path of what it is about: a task, or the handle of a prewarm.
//!
//! It is read from the path as it was sent, since axum refuses a segment that is no text with a plain
//! text of its own, where every failure is to have the shape of the request's dialect.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

/// The segment at the route's last parameter, decoded; as it was sent where that is no text. Nothing
/// has a `%` in its name, so that it is then the name of nothing.
pub(super) struct PathName(pub(super) String);

impl<S: Sync> FromRequestParts<S> for PathName {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let place = route.split('/').position(|segment| matches!(segment, "{id}" | "{handle}"));
        let sent = place.and_then(|at| parts.uri.path().split('/').nth(at)).unwrap_or_default();
        let decoded = percent_decode_str(sent).decode_utf8();
        Ok(Self(decoded.map_or_else(|_| sent.to_owned(), String::from)))
    }
}
