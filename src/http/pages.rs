//! Pages for people, in the binary: the playground, the live view and the reference. They load nothing from anywhere
//! else, need no key, and know no more than any client does; what they ask the server for may need one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

use super::App;

/// What a page may do: its own scripts and styles, and questions to the server that it came from.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file as it is served.
struct File {
    media: &'static str,
    text: &'static str,
    /// A strong validator: it changes with the text and with nothing else.
    etag: HeaderValue,
}

/// A file of the folder of pages, under its path.
macro_rules! file {
    ($path:literal, $media:expr, $name:literal) => {
        ($path, File::new($media, include_str!(concat!("pages/", $name))))
    };
}

/// All files by their path.
static FILES: LazyLock<BTreeMap<&'static str, File>> = LazyLock::new(|| {
    BTreeMap::from([
        file!("/docs", HTML, "reference.html"),
        file!("/docs/reference.css", STYLE, "reference.css"),
        file!("/docs/reference.js", SCRIPT, "reference.js"),
        file!("/docs/try.js", SCRIPT, "try.js"),
        file!("/", HTML, "play/index.html"),
        file!("/live", HTML, "live/index.html"),
        file!("/live/live.css", STYLE, "live/live.css"),
        file!("/live/live.js", SCRIPT, "live/live.js"),
        file!("/live/draw.js", SCRIPT, "live/draw.js"),
        file!("/live/feed.js", SCRIPT, "live/feed.js"),
        file!("/live/inside.js", SCRIPT, "live/inside.js"),
        file!("/live/panels.js", SCRIPT, "live/panels.js"),
        file!("/play/page.css", STYLE, "play/page.css"),
        file!("/play/answer.css", STYLE, "play/answer.css"),
        file!("/play/answers.js", SCRIPT, "play/answers.js"),
        file!("/play/body.js", SCRIPT, "play/body.js"),
        file!("/play/code.js", SCRIPT, "play/code.js"),
        file!("/play/dialog.js", SCRIPT, "play/dialog.js"),
        file!("/play/dom.js", SCRIPT, "play/dom.js"),
        file!("/play/draw.js", SCRIPT, "play/draw.js"),
        file!("/play/examples.js", SCRIPT, "play/examples.js"),
        file!("/play/faults.js", SCRIPT, "play/faults.js"),
        file!("/play/main.js", SCRIPT, "play/main.js"),
        file!("/play/model.js", SCRIPT, "play/model.js"),
        file!("/play/options.js", SCRIPT, "play/options.js"),
        file!("/play/questions.js", SCRIPT, "play/questions.js"),
        file!("/play/residency.js", SCRIPT, "play/residency.js"),
        file!("/play/results.js", SCRIPT, "play/results.js"),
        file!("/play/schema.js", SCRIPT, "play/schema.js"),
        file!("/play/share.js", SCRIPT, "play/share.js"),
        file!("/play/stages.js", SCRIPT, "play/stages.js"),
        file!("/play/timing.js", SCRIPT, "play/timing.js"),
        file!("/play/wire.js", SCRIPT, "play/wire.js"),
    ])
});

impl File {
    fn new(media: &'static str, text: &'static str) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        let mut digits = String::with_capacity(34);
        digits.push('"');
        for byte in &hash[..16] {
            // Writing to a text cannot fail.
            let _ = write!(digits, "{byte:02x}");
        }
        digits.push('"');
        let etag = HeaderValue::try_from(digits).unwrap_or(HeaderValue::from_static("\"\""));
        Self { media, text, etag }
    }

    /// The file, or that what the client has is still it.
    fn serve(&self, asked: &HeaderMap) -> Response {
        let is_known =
            asked.get_all(header::IF_NONE_MATCH).iter().any(|known| self.is_one_of(known));
        let mut response = if is_known {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            Bytes::from_static(self.text.as_bytes()).into_response()
        };
        let fixed: [(HeaderName, &'static str); 5] = [
            (header::CONTENT_TYPE, self.media),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            // Asked for anew each time, so that files of two versions never meet.
            (header::CACHE_CONTROL, "no-cache"),
        ];
        for (name, value) in fixed {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response.headers_mut().insert(header::ETAG, self.etag.clone());
        response
    }

    /// Whether a list of validators, weak ones among them, has this file's or is `*` (RFC 9110, 13.1.2).
    fn is_one_of(&self, known: &HeaderValue) -> bool {
        let Ok(known) = known.to_str() else { return false };
        let own = self.etag.to_str().unwrap_or_default();
        known.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == own)
    }
}

/// `GET` of any page or of a file that belongs to one.
pub(super) async fn page(State(app): State<Arc<App>>, request: Request) -> Response {
    match FILES.get(request.uri().path()) {
        Some(file) => file.serve(request.headers()),
        None => super::not_found(State(app), request).await,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{FILES, HTML, SCRIPT, STYLE};

    /// Most bytes of the playground, and of all pages together.
    const PLAYGROUND_BYTES_MAX: usize = 150_000;
    const PAGES_BYTES_MAX: usize = 300_000;

    fn bytes(of: impl Fn(&str) -> bool) -> usize {
        FILES.iter().filter(|(path, _)| of(path)).map(|(_, file)| file.text.len()).sum()
    }

    #[test]
    fn pages_are_small() {
        let playground = bytes(|path| path == "/" || path.starts_with("/play/"));
        assert!(playground < PLAYGROUND_BYTES_MAX, "{playground} bytes");
        assert!(bytes(|_| true) < PAGES_BYTES_MAX);
        for (path, file) in FILES.iter() {
            let lines = file.text.lines().count();
            assert!(lines <= 400, "{path}: {lines} lines");
        }
    }

    /// The files of a page's folder, each with its path.
    fn in_folder(folder: &str, home: &str) -> Vec<(String, String)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/pages");
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let path = |name: &str| match name {
            "index.html" => home.to_owned(),
            _ => format!("/{folder}/{name}"),
        };
        names.map(|name| (name.clone(), path(&name))).collect()
    }

    #[test]
    fn every_file_of_the_folder_is_served_and_named_by_what_it_is() {
        for (name, path) in in_folder("play", "/").into_iter().chain(in_folder("live", "/live")) {
            let media = match name.rsplit('.').next().unwrap() {
                "html" => HTML,
                "css" => STYLE,
                _ => SCRIPT,
            };
            let file = FILES.get(path.as_str()).unwrap_or_else(|| panic!("{path} is not served"));
            assert_eq!(file.media, media, "{path}");
        }
    }

    #[test]
    fn what_a_page_loads_is_there() {
        let quoted = |text: &'static str| text.split('"').skip(1).step_by(2);
        for (path, file) in FILES.iter() {
            for name in quoted(file.text).filter(|name| name.starts_with("/play/")) {
                assert!(FILES.contains_key(name), "{path} loads {name}");
            }
            for name in quoted(file.text).filter_map(|name| name.strip_prefix("./")) {
                let name = format!("/play/{name}");
                assert!(FILES.contains_key(name.as_str()), "{path} loads {name}");
            }
        }
    }

    #[test]
    fn validators_tell_files_apart() {
        let etags: std::collections::HashSet<_> = FILES.values().map(|file| &file.etag).collect();
        assert_eq!(etags.len(), FILES.len());
    }
}
