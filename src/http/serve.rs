//! The server loop: connections in, one router behind them, and an orderly end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::telemetry;

use super::wire::{Connection, Wire};

/// Default of [`ServeConfig::connections_max`].
pub const CONNECTIONS_MAX: usize = 1_024;

/// Default of [`ServeConfig::header_timeout`]: longer than the 60 s that load balancers keep a
/// connection by default, so that they close first.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(75);

/// Default of [`ServeConfig::write_timeout`].
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Default of [`ServeConfig::grace`].
pub const GRACE: Duration = Duration::from_secs(30);

/// Most bytes of a request's head, and of what is read ahead of a body.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Most headers that are parsed. The guard refuses far fewer, with an answer that says so; beyond
/// this one hyper answers by itself, with an empty 431.
const HEADERS_PARSED_MAX: usize = 1_000;

/// Pause after a failed accept: the process is out of file descriptors, mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Limits of the server loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeConfig {
    /// Most connections at one time; more wait in the listener's backlog.
    pub connections_max: usize,
    /// Longest time from a connection's last response to the end of its next request's head.
    pub header_timeout: Duration,
    /// Longest time that a response may wait for its client to read.
    pub write_timeout: Duration,
    /// After the shutdown began: longest time for requests that are being answered.
    pub grace: Duration,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            header_timeout: HEADER_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
            grace: GRACE,
        }
    }
}

/// Serves `router` on `listener` until `shutdown` is done; then takes no new connection, answers
/// what is under way with `Connection: close`, and returns.
///
/// Returns the number of connections that were cut because they were not done within the grace.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    config: ServeConfig,
    shutdown: impl Future<Output = ()>,
) -> usize {
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(config.connections_max));
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        while connections.try_join_next().is_some() {}
        let (stream, slot) = accepted;
        let connection = connect(stream, router.clone(), &config);
        let watched = graceful.watch(connection);
        connections.spawn(async move {
            let _open = telemetry::connection();
            if let Err(error) = watched.await {
                // A client that went away, or sent something that is not HTTP.
                tracing::debug!(%error, "connection ended");
            }
            drop(slot);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(config.grace, graceful.shutdown()).await;
    while connections.try_join_next().is_some() {}
    let cut = connections.len();
    connections.shutdown().await;
    cut
}

/// Waits for a free slot and then for a connection.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let slot = Arc::clone(slots).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, slot),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// One connection's hyper state machine over `router`.
fn connect(
    stream: TcpStream,
    router: Router,
    config: &ServeConfig,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + 'static {
    // Without it the second of two small writes waits for the client's delayed acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let connection = Arc::new(Connection::new());
    let io = Wire::new(stream, Arc::clone(&connection), config.write_timeout);
    let service = hyper::service::service_fn(move |request: hyper::Request<_>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Arc::clone(&connection));
        router.clone().oneshot(request)
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_buf_size(BUFFER_BYTES_MAX)
        .max_headers(HEADERS_PARSED_MAX)
        .serve_connection(TokioIo::new(io), service)
}
