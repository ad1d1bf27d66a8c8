//! One connection from its acceptance to its end: TLS, what is spoken, hyper over it, and the reasons
//! to close it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tower::ServiceExt as _;

use crate::http::slots::{Leave, Slot};
use crate::http::wire::{Connection, Due, Version, Wire, WireLimits};
use crate::telemetry::{self, Ending};

use super::exchange::{Answering, Exchange};
use super::tls::Tls;
use super::{HEAD_BYTES_MAX, Http2Config, ServeConfig};

/// Most headers that are parsed on HTTP/1. The guard refuses far fewer, with an answer that says so;
/// beyond this one hyper answers by itself, with an empty 431.
const HEADERS_PARSED_MAX: usize = 1_000;

/// How long a connection that was asked to leave has for its farewell.
const FAREWELL: Duration = Duration::from_secs(1);

/// What all connections share.
pub(super) struct Host {
    pub(super) router: Router,
    pub(super) config: ServeConfig,
    pub(super) tls: Option<Arc<Tls>>,
}

/// Serves one connection to its end, which is near once `stop` is true.
pub(super) async fn serve_one(
    host: Arc<Host>,
    stream: TcpStream,
    slot: Slot,
    mut stop: watch::Receiver<bool>,
) {
    // Without it the second of two small writes waits for the client's delayed acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let Some(tls) = &host.tls else { return serve_stream(&host, stream, None, slot, stop).await };
    let limit = host.config.handshake_timeout;
    let leave = Arc::clone(slot.leave());
    let shaking = timeout(limit, tls.accept(stream));
    match until_left(shaking, &leave, &mut stop).await {
        Some(Ok(Ok((stream, version)))) => serve_stream(&host, stream, version, slot, stop).await,
        Some(Ok(Err(error))) => {
            telemetry::connection_ended(Ending::Handshake);
            tracing::debug!(%error, "TLS handshake failed");
        }
        Some(Err(_)) => {
            telemetry::connection_ended(Ending::Handshake);
            tracing::debug!("TLS handshake took longer than {limit:?}");
        }
        None => {}
    }
}

/// Serves what is behind TLS, or the connection itself.
async fn serve_stream<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    host: &Host,
    stream: S,
    version: Option<Version>,
    slot: Slot,
    mut stop: watch::Receiver<bool>,
) {
    let leave = Arc::clone(slot.leave());
    let connection = Arc::new(Connection::new(slot));
    let limits = WireLimits { head: host.config.head_timeout, write: host.config.write_timeout };
    let mut wire = Wire::new(stream, Arc::clone(&connection), limits);
    let version = match version {
        Some(Version::Http2) => {
            connection.speak_http2();
            Version::Http2
        }
        Some(Version::Http1) => Version::Http1,
        None => {
            let looking = timeout(host.config.idle_timeout, wire.version());
            match until_left(looking, &leave, &mut stop).await {
                Some(Ok(Ok(version))) => version,
                Some(Err(_)) => return telemetry::connection_ended(Ending::Idle),
                // Gone, or given up in the middle of a head.
                Some(Ok(Err(_))) | None => return,
            }
        }
    };
    let (io, router, on) = (TokioIo::new(wire), host.router.clone(), Arc::clone(&connection));
    let service =
        hyper::service::service_fn(move |request| answer(router.clone(), &on, version, request));
    match version {
        Version::Http1 => {
            let http = http1().serve_connection(io, service);
            drive(http, &connection, &host.config, stop).await;
        }
        Version::Http2 => {
            let _open = telemetry::http2_connection();
            let http = http2(&host.config.http2).serve_connection(io, service);
            drive(http, &connection, &host.config, stop).await;
        }
    }
}

fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        // The wire has a limit that begins with the head, and `drive` one between heads.
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_PARSED_MAX);
    builder
}

fn http2(config: &Http2Config) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(config.streams_max)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .initial_stream_window_size(config.stream_window_bytes)
        .initial_connection_window_size(config.connection_window_bytes)
        .keep_alive_interval(config.ping_interval)
        .keep_alive_timeout(config.ping_timeout)
        .max_pending_accept_reset_streams(config.pending_resets_max)
        .max_local_error_reset_streams(config.error_resets_max);
    builder
}

/// Answers a request. Called when its head is there, so that it counts from then.
fn answer(
    router: Router,
    connection: &Arc<Connection>,
    version: Version,
    request: hyper::Request<hyper::body::Incoming>,
) -> impl Future<Output = Result<Response, Infallible>> + use<> {
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Exchange::begin(connection));
    let answering = Answering::new(connection, version);
    async move {
        let response = router.oneshot(request).await?;
        Ok(response.map(|body| answering.respond(body)))
    }
}

/// A hyper connection that can be told to take no more requests.
trait Closing: Future<Output = hyper::Result<()>> {
    fn close(self: Pin<&mut Self>);
}

impl<I, B, S> Closing for http1::Connection<I, S>
where
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, B, S, E> Closing for http2::Connection<I, S, E>
where
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    E: hyper::rt::bounds::Http2ServerConnExec<S::Future, B>,
{
    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Runs a connection until it ends by itself, or there is a reason to end it.
async fn drive(
    http: impl Closing,
    connection: &Connection,
    config: &ServeConfig,
    mut stop: watch::Receiver<bool>,
) {
    let mut http = pin!(http);
    let due = || connection.due(config.idle_timeout, config.write_timeout);
    let mut look =
        pin!(sleep_until(Instant::now() + config.idle_timeout.min(config.write_timeout)));
    let why = loop {
        tokio::select! {
            biased;
            ended = http.as_mut() => return log(ended),
            () = stopped(&mut stop) => {
                http.as_mut().close();
                return log(http.await);
            }
            why = connection.leave().asked() => break why,
            () = look.as_mut() => match due() {
                Due::Now(why) => break why,
                Due::Later(at) => look.as_mut().reset(at),
            },
        }
    };
    telemetry::connection_ended(why);
    http.as_mut().close();
    loop {
        if let Ok(ended) = timeout(FAREWELL, http.as_mut()).await {
            return log(ended);
        }
        // What came at the last moment is answered, unless answers are the matter.
        if matches!(why, Ending::Unread | Ending::Cancels) || connection.is_idle() {
            return tracing::debug!(?why, "connection cut");
        }
    }
}

fn log(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        // A client that went away, or sent something that is not HTTP.
        tracing::debug!(%error, "connection ended");
    }
}

/// Runs `work` unless the connection is to end first.
async fn until_left<T>(
    work: impl Future<Output = T>,
    leave: &Leave,
    stop: &mut watch::Receiver<bool>,
) -> Option<T> {
    tokio::select! {
        biased;
        () = stopped(stop) => None,
        why = leave.asked() => {
            telemetry::connection_ended(why);
            None
        }
        done = work => Some(done),
    }
}

/// Done when the server stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The sender is gone only when all is over.
    let _ = stop.wait_for(|stop| *stop).await;
}
