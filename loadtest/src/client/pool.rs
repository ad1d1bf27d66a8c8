//! The pool of keep-alive connections to one server.

use std::cell::RefCell;
use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, spawn_local};

/// Most connections that a run may have open.
pub(crate) const CONNECTIONS_MAX: u32 = 16_384;

/// A server's address.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    address: SocketAddr,
    /// Host and port, as the `Host` header says them.
    pub(crate) host: String,
}

impl Target {
    /// Looks the host of an `http://` URL up.
    ///
    /// # Errors
    /// When it is no such URL, has a path, or its host is unknown.
    pub(crate) async fn resolve(url: &str) -> anyhow::Result<Self> {
        let uri: Uri = url.parse().with_context(|| format!("--url {url:?} is no URL"))?;
        ensure!(uri.scheme_str() == Some("http"), "--url {url:?} must begin with http://");
        ensure!(matches!(uri.path(), "" | "/"), "--url {url:?} must not have a path");
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let mut found = tokio::net::lookup_host((host, uri.port_u16().unwrap_or(80)))
            .await
            .with_context(|| format!("--url {url:?}: unknown host"))?;
        let address = found.next().with_context(|| format!("--url {url:?}: unknown host"))?;
        let host = uri.authority().map_or_else(|| host.to_owned(), ToString::to_string);
        Ok(Self { address, host })
    }
}

impl Target {
    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// One connection; closed when dropped, with whatever was on its way.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Idle connections; the number of open ones is bounded by whoever sends.
#[derive(Debug)]
pub(super) struct Pool {
    target: Target,
    idle: RefCell<Vec<Connection>>,
}

impl Pool {
    pub(super) fn new(target: Target) -> Self {
        Self { target, idle: RefCell::default() }
    }

    /// The connection that was used last and is still open, or a new one.
    pub(super) async fn take(&self) -> anyhow::Result<Connection> {
        loop {
            let Some(mut connection) = self.idle.borrow_mut().pop() else {
                return self.open().await;
            };
            if connection.sender.ready().await.is_ok() {
                return Ok(connection);
            }
        }
    }

    /// Keeps a connection whose response has been read.
    pub(super) fn give(&self, connection: Connection) {
        if !connection.sender.is_closed() {
            self.idle.borrow_mut().push(connection);
        }
    }

    async fn open(&self) -> anyhow::Result<Connection> {
        let address = self.target.address;
        let stream = TcpStream::connect(address).await.with_context(|| format!("{address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        let task = spawn_local(async move {
            // The request that was under way gets the error.
            let _ = connection.await;
        });
        Ok(Connection { sender, task: task.abort_handle() })
    }
}
