//! Where a server is: the parts of its URL, checked once.

use std::fmt;

use hyper::Uri;
use hyper::header::HeaderValue;
use rustls::pki_types::ServerName;
use url::{Host, Url};

/// The address of a server, without anything secret in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// As it is shown, and told from others: scheme, host, port, path.
    shown: String,
    /// Name or address to connect to.
    pub(super) host: String,
    /// Port to connect to.
    pub(super) port: u16,
    /// Who the certificate must be of; without TLS none.
    pub(super) tls: Option<ServerName<'static>>,
    /// What the `Host` header says.
    pub(super) authority: HeaderValue,
    /// Path of the server's root, without a slash at its end.
    root: String,
}

impl Target {
    /// Understands `http://HOST[:PORT][/PATH]`, or the same with `https`.
    ///
    /// # Errors
    /// What is wrong with it. The text is not repeated, since it may have a password in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wanted = "write http://HOST:PORT or https://HOST";
        let url = Url::parse(text).map_err(|error| format!("it is no URL ({error}); {wanted}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "it has a user or password in it; give the server's key by --engine-key-file \
                        or DOCKET_ENGINE_KEY"
                    .to_owned(),
            );
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(format!("it has a query or fragment, which a server has not; {wanted}"));
        }
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(format!("its scheme is neither http nor https; {wanted}")),
        };
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(format!("it has no host; {wanted}")),
        };
        let port = url.port_or_known_default().unwrap_or(80);
        let named = url.host_str().unwrap_or_default();
        let authority =
            url.port().map_or_else(|| named.to_owned(), |port| format!("{named}:{port}"));
        let authority = HeaderValue::from_str(&authority)
            .map_err(|_| format!("its host cannot stand in a header; {wanted}"))?;
        let name =
            || ServerName::try_from(host.clone()).map_err(|_| "its host is no name".to_owned());
        let tls = is_tls.then(name).transpose()?;
        let root = url.path().trim_end_matches('/').to_owned();
        let shown = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { shown, host, port, tls, authority, root })
    }

    /// Where a path from the server's root is.
    ///
    /// # Errors
    /// A text for the log where it is no path.
    pub(super) fn uri(&self, path: &str) -> Result<Uri, String> {
        let uri = format!("{}{path}", self.root);
        uri.parse::<Uri>().map_err(|error| format!("{uri}: {error}"))
    }

    /// As it is shown, and told from others.
    pub fn as_str(&self) -> &str {
        &self.shown
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let target = Target::parse("http://gpu-1:8000/").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("gpu-1", 8000));
        assert_eq!((target.as_str(), target.tls.is_none()), ("http://gpu-1:8000", true));
        assert_eq!(target.authority, "gpu-1:8000");
        assert_eq!(target.uri("/health").unwrap(), "/health");
        let target = Target::parse("https://[::1]/vllm/").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("::1", 443));
        assert_eq!(target.authority, "[::1]");
        assert_eq!(target.uri("/v1/models").unwrap(), "/vllm/v1/models");
        assert!(target.tls.is_some());
    }

    #[test]
    fn what_is_no_address_of_a_server_is_refused_and_a_password_not_repeated() {
        for text in ["", "gpu-1:8000", "ftp://gpu-1", "http://", "http://h/?a=1", "unix:/run/x"] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
        for text in ["http://me:hidden@h", "http://h/?key=hidden", "http://hidden@h"] {
            let told = Target::parse(text).unwrap_err();
            assert!(!told.contains("hidden"), "{told}");
        }
    }
}
