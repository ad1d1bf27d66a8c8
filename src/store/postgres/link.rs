//! A connection to the database: how it is made, and statements that end in time.

use std::error::Error as _;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_postgres::{AsyncMessage, Client, Config, Connection};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::schema;
use crate::config::StoreConfig;
use crate::config::keys::Secret;
use crate::store::{Address, StoreError};
use crate::telemetry;

/// Longest file of a password or of certificates, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A statement gets a second more for so many bytes that it moves.
const BYTES_A_SECOND: usize = 1 << 20;

/// After what silence the other end of a connection is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// What connections are made with.
pub(super) struct Connecting {
    address: Address,
    tls: MakeRustlsConnect,
    password_file: Option<PathBuf>,
    password: Option<Secret>,
    timeout: Duration,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    /// To be told of changes and to read them.
    Following,
    /// To make them.
    Changing,
}

/// A connection. It is closed when this is dropped.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: Client,
    timeout: Timeout,
    driver: AbortHandle,
}

/// How long a statement may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeout(Duration);

impl Connecting {
    /// # Errors
    /// What is wrong with the certificates, in words.
    pub(super) fn new(address: &Address, config: &StoreConfig) -> Result<Self, String> {
        let roots = match &config.ca {
            Some(path) => roots(path).map_err(|why| format!("{}: {why}", path.display()))?,
            None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
        };
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            address: address.clone(),
            tls: MakeRustlsConnect::new(tls),
            password_file: config.password_file.clone(),
            password: config.password.clone(),
            timeout: config.timeout,
        })
    }

    /// Where it is.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Makes a connection to a database whose schema is known, or is brought up to what is.
    ///
    /// * `told`: woken by notifications, and when the connection ends.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::Schema`].
    pub(super) async fn open(
        &self,
        session: Session,
        told: &Arc<Notify>,
    ) -> Result<Link, StoreError> {
        let config = self.config()?;
        let connect = Box::pin(config.connect(self.tls.clone()));
        let connected = tokio::time::timeout(self.timeout, connect).await;
        let (client, connection) = connected
            .map_err(|_| {
                StoreError::Unavailable(format!("no connection within {:?}", self.timeout))
            })?
            .map_err(|error| lost(&error))?;
        let driver = tokio::spawn(drive(connection, Arc::clone(told))).abort_handle();
        let mut link = Link { client, timeout: Timeout(self.timeout), driver };
        let settings = match session {
            Session::Changing => bounds(self.timeout),
            Session::Following => "LISTEN docket_store".to_owned(),
        };
        link.timeout().of(0, link.client.batch_execute(&settings)).await?;
        schema::prepare(&mut link).await?;
        Ok(link)
    }

    fn config(&self) -> Result<Config, StoreError> {
        let mut config = self.address.config().clone();
        if config.get_application_name().is_none() {
            config.application_name("docket");
        }
        config.connect_timeout(self.timeout).tcp_user_timeout(self.timeout);
        config.keepalives_idle(KEEPALIVE);
        if config.get_password().is_some() {
            return Ok(config);
        }
        // Read each time: it may have been changed where the password was.
        if let Some(path) = &self.password_file {
            let password = password(path).map_err(|why| {
                StoreError::Unavailable(format!("--store-password-file {}: {why}", path.display()))
            })?;
            config.password(password);
        } else if let Some(password) = &self.password {
            config.password(password.reveal());
        }
        Ok(config)
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Connecting({})", self.address)
    }
}

impl Link {
    /// Whether it has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// How long its statements may take.
    pub(super) fn timeout(&self) -> Timeout {
        self.timeout
    }
}

impl Drop for Link {
    /// Ends it at once: a network that is gone would hold it open for long.
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Timeout {
    /// The result of a statement that moves about so many bytes.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where it fails or takes too long. The connection is to be given up
    /// then: what it was doing is not known.
    pub(super) async fn of<T>(
        self,
        bytes: usize,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        let limit = self.0 + Duration::from_secs((bytes / BYTES_A_SECOND) as u64);
        let began = Instant::now();
        let result = tokio::time::timeout(limit, statement).await;
        telemetry::store_statement(began.elapsed());
        match result {
            Ok(result) => result.map_err(|error| lost(&error)),
            Err(_) => Err(StoreError::Unavailable(format!("no answer within {limit:?}"))),
        }
    }
}

/// Moves what is sent and received until the connection ends.
async fn drive<S, T>(mut connection: Connection<S, T>, told: Arc<Notify>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let _open = telemetry::store_connection();
    loop {
        let message = poll_fn(|context| connection.poll_message(context)).await;
        if let Some(Ok(AsyncMessage::Notification(_))) = &message {
            told.notify_one();
        }
        if !matches!(message, Some(Ok(_))) {
            break;
        }
    }
    told.notify_one();
}

/// Limits that the database itself keeps, so that nothing of a server that is gone holds up others.
fn bounds(timeout: Duration) -> String {
    let ms = timeout.as_millis();
    format!(
        "SET statement_timeout = {ms}; SET lock_timeout = {ms}; \
         SET idle_in_transaction_session_timeout = {}",
        2 * ms
    )
}

/// An error and its causes, in a line.
pub(super) fn lost(error: &tokio_postgres::Error) -> StoreError {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !told.contains(&text) {
            told = format!("{told}: {text}");
        }
        cause = inner.source();
    }
    StoreError::Unavailable(told.replace('\n', " "))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("more than {FILE_BYTES_MAX} bytes, which are read at most"));
    }
    Ok(bytes)
}

/// The first line of a file.
fn password(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = read(path)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err("its first line is empty".to_owned());
    }
    Ok(line.to_vec())
}

/// The authorities of a PEM file.
fn roots(path: &Path) -> Result<RootCertStore, String> {
    let bytes = read(path)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| format!("it is no PEM: {error}"))?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("it has no certificate".to_owned());
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_password_is_the_first_line_of_its_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"s3c ret\r\nmore\n").unwrap();
        assert_eq!(password(file.path()), Ok(b"s3c ret".to_vec()));
        let empty = tempfile::NamedTempFile::new().unwrap();
        assert!(password(empty.path()).unwrap_err().contains("empty"));
        assert!(password(Path::new("/nowhere/at/all")).is_err());
    }

    #[test]
    fn a_file_without_certificates_vouches_for_nobody() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"no certificate\n").unwrap();
        assert!(roots(file.path()).unwrap_err().contains("no certificate"));
    }

    #[test]
    fn what_the_database_bounds_is_in_milliseconds() {
        let set = bounds(Duration::from_millis(1_500));
        assert!(set.contains("statement_timeout = 1500;"), "{set}");
        assert!(set.ends_with("idle_in_transaction_session_timeout = 3000"), "{set}");
    }
}
