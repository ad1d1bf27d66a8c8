//! TLS in front of a connection: a certificate that can be replaced while the server runs, and an
//! end to handshakes that do not come to one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::http::wire::Version;

/// Longest file of a certificate or key, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What is spoken behind TLS, as ALPN names it; what comes first is preferred.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// What one who speaks HTTP in clear is told.
const IN_CLEAR: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain\r\n\
    content-length: 33\r\n\r\nthis port speaks TLS: use https:\n";

/// For how long what it sends is read then, so that it sees the answer, and how much.
const IN_CLEAR_TIMEOUT: Duration = Duration::from_secs(1);
const IN_CLEAR_BYTES_MAX: u64 = 64 << 10;

/// Why a file cannot be used. Says nothing of what is in it.
#[derive(Debug, Error)]
#[error("{}: {why}", path.display())]
pub struct TlsFault {
    /// The file.
    pub path: PathBuf,
    /// What is the matter.
    pub why: String,
    /// Whether it may be gone without anybody changing the file: the system would not let it be read.
    pub passes: bool,
}

/// A certificate with its chain, and its key.
#[derive(Debug, Clone)]
pub struct Pair(Arc<CertifiedKey>);

/// What TLS connections begin with.
pub struct Tls {
    acceptor: TlsAcceptor,
    current: Arc<Current>,
}

/// The certificate in force.
#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl TlsFault {
    fn of_file(path: &Path, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into(), passes: false }
    }
}

impl Pair {
    /// Reads both files: PEM, at most 1 MiB each. `certificate` has the server's own first and those
    /// that vouch for it behind it; `key` one in PKCS#8, PKCS#1 or SEC1, without a passphrase.
    ///
    /// # Errors
    /// The first file that cannot be used, and why.
    pub async fn read(certificate: &Path, key: &Path) -> Result<Self, TlsFault> {
        let fault = |path: &Path, why: &str| TlsFault::of_file(path, why);
        let bytes = read(certificate).await?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        let chain = chain.map_err(|_| fault(certificate, "it is no PEM that can be read"))?;
        if chain.is_empty() {
            return Err(fault(certificate, "it has no certificate in PEM"));
        }
        let bytes = read(key).await?;
        let is_encrypted = bytes.windows(9).any(|window| window == b"ENCRYPTED");
        let private = PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
            let why = if is_encrypted {
                "the key has a passphrase; only keys without one are read"
            } else {
                "it has no private key in PEM (PKCS#8, PKCS#1 or SEC1)"
            };
            fault(key, why)
        })?;
        let joined = CertifiedKey::from_der(chain, private, &ring::default_provider());
        let joined = joined.map_err(|error| {
            if error == rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) {
                return fault(key, "it is not the key of the certificate");
            }
            if matches!(error, rustls::Error::InvalidCertificate(_)) {
                let why = "its first certificate is damaged, or of no kind that is known";
                return fault(certificate, why);
            }
            fault(key, "the key is damaged, or of a kind that is not known")
        })?;
        Ok(Self(Arc::new(joined)))
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, TlsFault> {
    let of_system =
        |error: io::Error| TlsFault { passes: true, ..TlsFault::of_file(path, error.to_string()) };
    let found = tokio::fs::metadata(path).await.map_err(of_system)?;
    if !found.is_file() {
        return Err(TlsFault::of_file(path, "it is no file"));
    }
    if found.len() > FILE_BYTES_MAX {
        let why = format!("it has {} bytes, over {FILE_BYTES_MAX}", found.len());
        return Err(TlsFault::of_file(path, why));
    }
    tokio::fs::read(path).await.map_err(of_system)
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// TLS 1.2 and 1.3 under this certificate, with HTTP/2 and HTTP/1.1 behind it.
    ///
    /// # Errors
    /// When the cryptography at hand serves neither version.
    pub fn new(pair: Pair) -> Result<Self, rustls::Error> {
        let current = Arc::new(Current(ArcSwap::new(pair.0)));
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as _);
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(Self { acceptor: Arc::new(config).into(), current })
    }

    /// From here on new connections get this certificate.
    pub fn replace(&self, pair: Pair) {
        self.current.0.store(pair.0);
    }

    /// Shakes hands. What is spoken behind it is known where the client named it.
    pub(super) async fn accept(
        &self,
        mut stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<Version>)> {
        let mut first = [0];
        // A handshake begins with 22, a method with a letter.
        if stream.peek(&mut first).await? == 1 && first[0].is_ascii_alphabetic() {
            let _ = tokio::time::timeout(IN_CLEAR_TIMEOUT, answer_in_clear(&mut stream)).await;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "HTTP in clear"));
        }
        let stream = self.acceptor.accept(stream).await?;
        let version = match stream.get_ref().1.alpn_protocol() {
            Some(HTTP2) => Some(Version::Http2),
            Some(_) => Some(Version::Http1),
            None => None,
        };
        Ok((stream, version))
    }
}

async fn answer_in_clear(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(IN_CLEAR).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(IN_CLEAR_BYTES_MAX);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map(drop)
}
