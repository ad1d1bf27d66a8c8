//! Pages for people, in the binary: they load nothing from anywhere else.

use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

/// What a page may do: its own scripts and styles, and questions to the server that it came from.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    /// Where it is.
    pub(super) path: &'static str,
    media: &'static str,
    text: &'static str,
}

/// All of them: the playground at `/`, and the reference at `/docs`, drawn from `/openapi.json`.
pub(super) const FILES: [File; 15] = [
    document("/", include_str!("pages/play/play.html")),
    style("/play/play.css", include_str!("pages/play/play.css")),
    script("/play/main.js", include_str!("pages/play/main.js")),
    script("/play/answers.js", include_str!("pages/play/answers.js")),
    script("/play/dom.js", include_str!("pages/play/dom.js")),
    script("/play/draft.js", include_str!("pages/play/draft.js")),
    script("/play/editor.js", include_str!("pages/play/editor.js")),
    script("/play/examples.js", include_str!("pages/play/examples.js")),
    script("/play/share.js", include_str!("pages/play/share.js")),
    script("/play/snippets.js", include_str!("pages/play/snippets.js")),
    script("/play/wire.js", include_str!("pages/play/wire.js")),
    document("/docs", include_str!("pages/reference.html")),
    style("/docs/reference.css", include_str!("pages/reference.css")),
    script("/docs/reference.js", include_str!("pages/reference.js")),
    script("/docs/try.js", include_str!("pages/try.js")),
];

const fn document(path: &'static str, text: &'static str) -> File {
    File { path, media: "text/html; charset=utf-8", text }
}

const fn style(path: &'static str, text: &'static str) -> File {
    File { path, media: "text/css; charset=utf-8", text }
}

const fn script(path: &'static str, text: &'static str) -> File {
    File { path, media: "text/javascript; charset=utf-8", text }
}

/// The answer to `GET` of a file.
pub(super) fn page(File { media, text, .. }: File) -> Response {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// They are to load at once over slow lines too.
    const BYTES_MAX: usize = 300 << 10;

    #[test]
    fn all_pages_together_are_small() {
        let bytes: usize = FILES.iter().map(|file| file.text.len()).sum();
        assert!(bytes < BYTES_MAX, "{bytes}");
    }

    #[test]
    fn what_a_page_asks_for_is_there() {
        let paths = FILES.map(|file| file.path);
        let is_file = |part: &&str| {
            Path::new(part).extension().is_some_and(|kind| kind == "js" || kind == "css")
        };
        for file in FILES {
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            for part in file.text.split('"').filter(is_file) {
                let beside = part.strip_prefix("./").map(|name| format!("{folder}/{name}"));
                let path = beside.unwrap_or_else(|| part.to_owned());
                assert!(paths.contains(&path.as_str()), "{} asks for {part}", file.path);
            }
        }
    }
}
