//! HTTP to one server: keep-alive connections, limits of time and size, and for each failure whether
//! the server can have begun on the request.
//!
//! That last point is why this is not a ready-made client: a request may be sent again only where
//! nothing was executed. Dropping a call closes its connection, by which all three servers notice that
//! nobody waits and stop computing.

mod tls;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::protocol::Call;
use super::target::Target;
pub(super) use tls::connector;

/// Longest body of an answer that is read: the whole of a large vocabulary, as a llama-server lists it,
/// has a third of that.
pub(super) const ANSWER_BYTES_MAX: usize = 64 << 20;

/// After what time an idle connection is not used again: the servers close theirs after 5 s, and a
/// request that meets the close is lost.
const IDLE_MAX: Duration = Duration::from_secs(2);

/// Most idle connections that are kept: as many as the largest window has requests.
const IDLE_CONNECTIONS_MAX: usize = 1024;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum WireFault {
    /// Nothing was sent, so nothing was executed.
    #[error("{0}")]
    NotSent(String),
    /// The connection broke after the request was sent, at least in part.
    #[error("the connection broke: {0}")]
    Lost(String),
    /// No whole answer in time.
    #[error("no whole answer within {} s", .0.as_secs_f64())]
    Slow(Duration),
    /// The answer is too long.
    #[error("the answer is over {ANSWER_BYTES_MAX} bytes")]
    TooLarge,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    /// `Retry-After` in seconds.
    pub(super) retry_after: Option<Duration>,
}

/// Limits of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WireLimits {
    /// Longest time to connect.
    pub(super) connect: Duration,
    /// Longest time of a request, the connecting included.
    pub(super) request: Duration,
}

/// One connection; closed when dropped, with whatever is on its way.
#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: AbortHandle,
    /// Since when nothing is asked on it.
    idle_since: Instant,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The way to one server.
pub(super) struct Wire {
    target: Target,
    tls: Option<TlsConnector>,
    /// What is said to be let in.
    authorization: Option<HeaderValue>,
    limits: WireLimits,
    /// A plain lock, since it is held for a push or a pop.
    idle: Mutex<Vec<Connection>>,
}

impl Wire {
    pub(super) fn new(
        target: Target,
        tls: Option<TlsConnector>,
        authorization: Option<HeaderValue>,
        limits: WireLimits,
    ) -> Self {
        Self { target, tls, authorization, limits, idle: Mutex::default() }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Sends a call and reads the whole answer, whatever its status.
    ///
    /// # Errors
    /// [`WireFault`], which says whether the server may have begun on it.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, WireFault> {
        self.send_within(call, self.limits.request).await
    }

    /// The same with a time limit of its own.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub(super) async fn send_within(
        &self,
        call: &Call,
        limit: Duration,
    ) -> Result<Answer, WireFault> {
        let answer = timeout(limit, self.exchange(call)).await;
        answer.unwrap_or(Err(WireFault::Slow(limit)))
    }

    async fn exchange(&self, call: &Call) -> Result<Answer, WireFault> {
        let mut message = self.message(call).map_err(WireFault::NotSent)?;
        while let Some(mut connection) = self.take_idle() {
            if connection.sender.ready().await.is_err() {
                continue;
            }
            match connection.sender.try_send_request(message).await {
                Ok(response) => return self.read(response, connection).await,
                Err(mut fault) => match fault.take_message() {
                    Some(unsent) => message = unsent,
                    None => return Err(WireFault::Lost(told(&fault.into_error()))),
                },
            }
        }
        let mut connection = self.connect().await?;
        match connection.sender.try_send_request(message).await {
            Ok(response) => self.read(response, connection).await,
            Err(mut fault) => {
                let was_sent = fault.take_message().is_none();
                let told = told(&fault.into_error());
                Err(if was_sent { WireFault::Lost(told) } else { WireFault::NotSent(told) })
            }
        }
    }

    fn message(&self, call: &Call) -> Result<Request<Full<Bytes>>, String> {
        let body = call.body.clone();
        let is_post = body.is_some();
        let mut message = Request::new(Full::new(body.unwrap_or_default()));
        *message.uri_mut() = self.target.uri(call.path)?;
        *message.method_mut() = if is_post { Method::POST } else { Method::GET };
        let headers = message.headers_mut();
        headers.insert(header::HOST, self.target.authority.clone());
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if is_post {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(authorization) = &self.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        Ok(message)
    }

    /// The idle connection that was used last, if it is fresh enough.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| {
            connection.idle_since.elapsed() < IDLE_MAX && !connection.sender.is_closed()
        });
        idle.pop()
    }

    fn keep(&self, mut connection: Connection) {
        connection.idle_since = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !connection.sender.is_closed() && idle.len() < IDLE_CONNECTIONS_MAX {
            idle.push(connection);
        }
    }

    async fn connect(&self) -> Result<Connection, WireFault> {
        let limit = self.limits.connect;
        match timeout(limit, self.open()).await {
            Ok(opened) => opened.map_err(WireFault::NotSent),
            Err(_) => {
                Err(WireFault::NotSent(format!("no connection within {} s", limit.as_secs_f64())))
            }
        }
    }

    async fn open(&self) -> Result<Connection, String> {
        let address = (self.target.host.as_str(), self.target.port);
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        // One write a request: there is nothing to wait for.
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        match (&self.target.tls, &self.tls) {
            (Some(name), Some(tls)) => {
                let stream = tls.connect(name.clone(), stream).await;
                shake_hands(stream.map_err(|error| format!("TLS: {error}"))?).await
            }
            (None, _) => shake_hands(stream).await,
            (Some(_), None) => Err("there is nothing to make TLS with".to_owned()),
        }
    }

    async fn read(
        &self,
        response: Response<Incoming>,
        connection: Connection,
    ) -> Result<Answer, WireFault> {
        let (head, body) = response.into_parts();
        let read = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = read.map_err(|error| {
            if error.is::<LengthLimitError>() {
                WireFault::TooLarge
            } else {
                WireFault::Lost(error.to_string())
            }
        })?;
        let retry_after = head.headers.get(header::RETRY_AFTER).and_then(|value| {
            let seconds = value.to_str().ok()?.trim().parse().ok()?;
            Some(Duration::from_secs(seconds))
        });
        self.keep(connection);
        Ok(Answer { status: head.status, body: body.to_bytes(), retry_after })
    }
}

async fn shake_hands<S>(stream: S) -> Result<Connection, String>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let task = tokio::spawn(async move {
        // The request that is under way gets the error.
        let _ = connection.await;
    });
    Ok(Connection { sender, task: task.abort_handle(), idle_since: Instant::now() })
}

/// An error with what caused it.
fn told(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}
