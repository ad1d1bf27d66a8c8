//! The pool of keep-alive connections to one server.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

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
/// Most that an open loop has where nothing else is said: below the 512 that docket lets one address
/// have (but its own machine's), and below the 1,024 open files that many shells allow.
pub(crate) const CONNECTIONS_DEFAULT: u32 = 500;

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
    /// How many there are.
    open: Rc<Cell<u32>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
        self.open.set(self.open.get().saturating_sub(1));
    }
}

/// Idle connections; the number of open ones is bounded by whoever sends.
#[derive(Debug)]
pub(super) struct Pool {
    target: Target,
    idle: RefCell<Vec<Connection>>,
    open: Rc<Cell<u32>>,
}

impl Pool {
    pub(super) fn new(target: Target) -> Self {
        Self { target, idle: RefCell::default(), open: Rc::default() }
    }

    /// The idle connection that was used last and is still open; none where there is none.
    pub(super) async fn idle(&self) -> Option<Connection> {
        loop {
            let mut connection = self.idle.borrow_mut().pop()?;
            if connection.sender.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose response has been read.
    pub(super) fn give(&self, connection: Connection) {
        if !connection.sender.is_closed() {
            self.idle.borrow_mut().push(connection);
        }
    }

    /// A new connection.
    ///
    /// # Errors
    /// When there is none to be had.
    pub(super) async fn open(&self) -> anyhow::Result<Connection> {
        let address = self.target.address;
        let stream = TcpStream::connect(address).await.with_context(|| format!("{address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        let task = spawn_local(async move {
            // The request that was under way gets the error.
            let _ = connection.await;
        });
        self.open.set(self.open.get() + 1);
        Ok(Connection { sender, task: task.abort_handle(), open: Rc::clone(&self.open) })
    }

    /// How many connections are open, the idle ones included.
    pub(super) fn open_count(&self) -> u32 {
        self.open.get()
    }
}
