//! The server loop: connections in, one router behind them, and an orderly end.

mod accept;
mod exchange;
mod lifetime;
mod tls;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use accept::{Failures, accept};
pub(super) use exchange::Exchange;
use lifetime::{Host, serve_one};
pub use tls::{Pair, Tls, TlsFault};

use super::slots::{SlotLimits, Slots};
use crate::telemetry::{self, Ending};

/// Default of [`ServeConfig::connections_max`].
pub const CONNECTIONS_MAX: usize = 1_024;

/// Default of [`ServeConfig::handshake_timeout`].
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Default of [`ServeConfig::head_timeout`].
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Default of [`ServeConfig::idle_timeout`]: longer than the 60 s that load balancers keep a
/// connection by default, so that they close first.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

/// Default of [`ServeConfig::idle_min`].
pub const IDLE_MIN: Duration = Duration::from_secs(1);

/// Default of [`ServeConfig::write_timeout`].
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Default of [`ServeConfig::grace`].
pub const GRACE: Duration = Duration::from_secs(30);

/// Default of [`Http2Config::streams_max`].
pub const STREAMS_MAX: u32 = 128;

/// Most bytes of a request's head, and of what is read ahead of a body on HTTP/1. HTTP/2 counts 32 more
/// for each header, and answers a longer head with an empty 431.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Limits of the server loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeConfig {
    /// Most connections at one time; more wait in the listener's backlog.
    pub connections_max: usize,
    /// Of these, most from one address: an IPv4 address or an IPv6 network of 64 bits. What is more is
    /// closed at once. 0 is no limit; this machine's own addresses have none.
    pub connections_per_address: usize,
    /// Longest time for a TLS handshake.
    pub handshake_timeout: Duration,
    /// Longest time from the first byte of a request's head to its last.
    pub head_timeout: Duration,
    /// Longest time from a connection's last response to the first byte of its next request.
    pub idle_timeout: Duration,
    /// For how long nothing was asked at least on a connection that is closed to make room for others.
    pub idle_min: Duration,
    /// Longest time that a response may wait for its client to read.
    pub write_timeout: Duration,
    /// After the shutdown began: longest time for requests that are being answered.
    pub grace: Duration,
    /// What HTTP/2 has of its own.
    pub http2: Http2Config,
}

/// Limits of one connection of HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Config {
    /// Most requests at one time; more are refused (`REFUSED_STREAM`), and clients know the limit.
    pub streams_max: u32,
    /// Bytes of one request's body that may come before they are asked for. Default 256 KiB.
    pub stream_window_bytes: u32,
    /// The same of all together. Default 1 MiB.
    pub connection_window_bytes: u32,
    /// How often a client is asked whether it is there. Default 20 s.
    pub ping_interval: Duration,
    /// How long it has for an answer. Default 20 s.
    pub ping_timeout: Duration,
    /// Most requests that their client has given up before they were looked at; one more ends the
    /// connection (`ENHANCE_YOUR_CALM`). Default 20.
    pub pending_resets_max: usize,
    /// Most requests that were against the protocol; likewise. Default 256.
    pub error_resets_max: usize,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            connections_per_address: CONNECTIONS_MAX / 2,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            head_timeout: HEAD_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
            idle_min: IDLE_MIN,
            write_timeout: WRITE_TIMEOUT,
            grace: GRACE,
            http2: Http2Config::default(),
        }
    }
}

impl Default for Http2Config {
    fn default() -> Self {
        Self {
            streams_max: STREAMS_MAX,
            stream_window_bytes: 256 << 10,
            connection_window_bytes: 1 << 20,
            ping_interval: Duration::from_secs(20),
            ping_timeout: Duration::from_secs(20),
            pending_resets_max: 20,
            error_resets_max: 256,
        }
    }
}

/// Serves `router` on `listener`, HTTP/1.1 and HTTP/2, until `shutdown` is done; then takes no new
/// connection, answers what is under way and closes.
///
/// * `tls`: without it everything is in clear.
///
/// Returns the number of connections that were cut because they were not done within the grace.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    config: ServeConfig,
    tls: Option<Arc<Tls>>,
    shutdown: impl Future<Output = ()>,
) -> usize {
    let slots = Slots::new(SlotLimits {
        connections_max: config.connections_max,
        per_address: config.connections_per_address,
        idle_min: config.idle_min,
    });
    let host = Arc::new(Host { router, config, tls });
    let (stopping, stop) = watch::channel(false);
    let (mut connections, mut failures) = (JoinSet::new(), Failures::default());
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, from) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&slots, &mut failures, || listener.accept()) => accepted,
        };
        while connections.try_join_next().is_some() {}
        let Some(slot) = slots.take(from.ip()) else {
            telemetry::connection_ended(Ending::Address);
            tracing::debug!(address = %from.ip(), "too many connections from one address");
            continue;
        };
        let serving = serve_one(Arc::clone(&host), stream, slot, stop.clone());
        connections.spawn(async move {
            let _open = telemetry::connection();
            serving.await;
        });
    }
    drop(listener);
    stopping.send_replace(true);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(config.grace, all).await;
    let cut = connections.len();
    connections.shutdown().await;
    cut
}
