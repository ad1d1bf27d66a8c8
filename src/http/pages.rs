//! Pages for people, in the binary: they load nothing from anywhere else.

use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

/// What a page may do: its own scripts and styles, and questions to the server that it came from.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /docs`: the routes and their fields, drawn from `/openapi.json`.
pub(super) async fn reference() -> Response {
    page("text/html; charset=utf-8", include_str!("pages/reference.html"))
}

/// Its style.
pub(super) async fn reference_style() -> Response {
    page("text/css; charset=utf-8", include_str!("pages/reference.css"))
}

/// Its script.
pub(super) async fn reference_script() -> Response {
    page("text/javascript; charset=utf-8", include_str!("pages/reference.js"))
}

fn page(media: &'static str, text: &'static str) -> Response {
    let mut response = Bytes::from_static(text.as_bytes()).into_response();
    let fixed: [(HeaderName, &str); 5] = [
        (header::CONTENT_TYPE, media),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
