//! URLs of images that are to be fetched: what of them can be refused before anything is asked.
//!
//! A URL is read as browsers read it, so that `https://0x7f.1` is the loopback address that it would
//! be for the resolver, and what is fetched is the URL as it was understood, not as it was written.

use thiserror::Error;
use url::{Host, Url};

use crate::http::respond::excerpt;

use super::address::is_public;
use super::fetch::ImageFetching;

/// Longest URL in bytes: signed ones are long.
const URL_BYTES_MAX: usize = 8192;

/// An image that is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    /// Checked.
    pub(super) url: Url,
    /// What the request calls it.
    pub(super) name: Option<String>,
    /// What the request says of it.
    pub(super) description: Option<String>,
}

/// Why a URL is not fetched. No text has more of the URL than its scheme and host.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum UrlFault {
    /// Too long to be one.
    #[error("a URL of {bytes} bytes, at most {bytes_max} are accepted")]
    TooLong {
        /// As sent.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// No absolute URL with a host.
    #[error("no URL that can be fetched, expected https:// or data:image/TYPE;base64,DATA")]
    NotAUrl,
    /// Another scheme than those of the web.
    #[error("a URL of the scheme {scheme}, expected https")]
    Scheme {
        /// As sent, cut.
        scheme: String,
    },
    /// HTTP without TLS.
    #[error(
        "a URL of the scheme http, expected https (the server takes http with --allow-http-images)"
    )]
    PlainHttp,
    /// A user or a password.
    #[error("a URL with credentials, which are not sent")]
    Credentials,
    /// An address that is not public, or a name that stands for one.
    #[error("a URL whose host is not public (the server takes it with --allow-private-images)")]
    NotPublic,
}

/// The URL that `text` is.
///
/// # Errors
/// The first rule that it breaks.
pub(super) fn parse(text: &str, rules: ImageFetching) -> Result<Url, UrlFault> {
    let (bytes, bytes_max) = (text.len(), URL_BYTES_MAX);
    if bytes > bytes_max {
        return Err(UrlFault::TooLong { bytes, bytes_max });
    }
    check(Url::parse(text).map_err(|_| UrlFault::NotAUrl)?, rules)
}

/// Where `location`, the answer of `url`, leads to.
///
/// # Errors
/// The first rule that it breaks.
pub(super) fn redirected(url: &Url, location: &str, rules: ImageFetching) -> Result<Url, UrlFault> {
    let (bytes, bytes_max) = (location.len(), URL_BYTES_MAX);
    if bytes > bytes_max {
        return Err(UrlFault::TooLong { bytes, bytes_max });
    }
    check(url.join(location).map_err(|_| UrlFault::NotAUrl)?, rules)
}

fn check(mut url: Url, rules: ImageFetching) -> Result<Url, UrlFault> {
    match url.scheme() {
        "https" => {}
        "http" if rules.allow_http => {}
        "http" => return Err(UrlFault::PlainHttp),
        other => return Err(UrlFault::Scheme { scheme: excerpt(other) }),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlFault::Credentials);
    }
    let host = url.host().ok_or(UrlFault::NotAUrl)?;
    if !rules.allow_private && !may_be_public(&host) {
        return Err(UrlFault::NotPublic);
    }
    url.set_fragment(None);
    Ok(url)
}

/// Whether a host is not known to be private without asking; `localhost` is (RFC 6761).
fn may_be_public(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => is_public((*address).into()),
        Host::Ipv6(address) => is_public((*address).into()),
        Host::Domain(name) => {
            let last = name.trim_end_matches('.').rsplit('.').next();
            last.is_some_and(|label| label != "localhost")
        }
    }
}

/// What of a URL may be told and logged: path and query can be keys to what is behind them.
pub(super) fn origin(url: &Url) -> String {
    excerpt(&url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict() -> ImageFetching {
        ImageFetching::default()
    }

    fn open() -> ImageFetching {
        ImageFetching { allow_http: true, allow_private: true, ..ImageFetching::default() }
    }

    #[test]
    fn case_53_what_is_not_a_public_https_url_is_refused_unasked() {
        let scheme = |scheme: &str| UrlFault::Scheme { scheme: scheme.to_owned() };
        for (url, expected) in [
            ("http://127.0.0.1/a.png", UrlFault::PlainHttp),
            ("http://example.com/a.png", UrlFault::PlainHttp),
            ("https://127.0.0.1/a.png", UrlFault::NotPublic),
            ("https://2130706433/a.png", UrlFault::NotPublic),
            ("https://0x7f.1/a.png", UrlFault::NotPublic),
            ("https://0177.0.0.1/a.png", UrlFault::NotPublic),
            ("https://%31%32%37.0.0.1/", UrlFault::NotPublic),
            ("https://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", UrlFault::NotPublic),
            ("https:\\\\127.1\\", UrlFault::NotPublic),
            ("https://[::1]/a.png", UrlFault::NotPublic),
            ("https://[::ffff:10.0.0.1]/a.png", UrlFault::NotPublic),
            ("https://169.254.169.254/latest/meta-data", UrlFault::NotPublic),
            ("https://localhost/", UrlFault::NotPublic),
            ("https://a.LOCALHOST./", UrlFault::NotPublic),
            ("/etc/passwd", UrlFault::NotAUrl),
            ("a.png", UrlFault::NotAUrl),
            ("//example.com/a.png", UrlFault::NotAUrl),
            ("https://", UrlFault::NotAUrl),
            ("file:///etc/passwd", scheme("file")),
            ("ftp://example.com/a.png", scheme("ftp")),
            ("gopher://example.com/", scheme("gopher")),
            ("javascript:alert(1)", scheme("javascript")),
            ("https://user:pw@example.com/a.png", UrlFault::Credentials),
            ("https://user@example.com/a.png", UrlFault::Credentials),
            ("https://:pw@example.com/a.png", UrlFault::Credentials),
        ] {
            assert_eq!(parse(url, strict()), Err(expected), "{url}");
        }
        let long = format!("https://example.com/{}", "a".repeat(8192));
        assert!(matches!(parse(&long, strict()), Err(UrlFault::TooLong { bytes: 8212, .. })));
    }

    #[test]
    fn a_public_https_url_is_taken_without_its_fragment() {
        let url = parse("https://example.com:8443/a%20b.png?x=1#part", strict()).unwrap();
        assert_eq!(url.as_str(), "https://example.com:8443/a%20b.png?x=1");
        assert_eq!(origin(&url), "https://example.com:8443");
    }

    #[test]
    fn the_server_may_allow_http_and_private_hosts() {
        assert_eq!(parse("http://0x7f.1:80/", open()).unwrap().as_str(), "http://127.0.0.1/");
        assert_eq!(parse("http://u@127.0.0.1/", open()), Err(UrlFault::Credentials));
        assert!(matches!(parse("ftp://127.0.0.1/", open()), Err(UrlFault::Scheme { .. })));
    }

    #[test]
    fn a_redirect_is_checked_like_the_first_url() {
        let from = parse("https://example.com/a/b.png", strict()).unwrap();
        let to = |location: &str| redirected(&from, location, strict()).map(String::from);
        assert_eq!(to("../c.png"), Ok("https://example.com/c.png".to_owned()));
        assert_eq!(to("//cdn.example.org/"), Ok("https://cdn.example.org/".to_owned()));
        assert_eq!(to("http://example.com/"), Err(UrlFault::PlainHttp));
        assert_eq!(to("https://169.254.169.254/"), Err(UrlFault::NotPublic));
        assert_eq!(to("//[::1]/"), Err(UrlFault::NotPublic));
        assert_eq!(to("https://u:p@example.com/"), Err(UrlFault::Credentials));
        assert!(matches!(to("file:///etc/passwd"), Err(UrlFault::Scheme { .. })));
    }
}
