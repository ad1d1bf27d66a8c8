//! The client: sends one request over a keep-alive connection and says how it ended.

mod pool;

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request as HttpRequest, Uri};
use tokio::time::{Instant, timeout};

use crate::exchange::{Exchange, Outcome, Reply, is_complete};
use crate::workload::{Request, Route};
use pool::Pool;
pub(crate) use pool::{CONNECTIONS_MAX, Target};

/// Most characters of a fault that are kept.
const FAULT_CHARS_MAX: usize = 300;

/// Whatever answers requests: a server, or a test's model of one.
pub(crate) trait Driver {
    /// Sends a request and waits for its end.
    async fn send(&self, request: Request) -> Exchange;
}

/// A driver of docket, or of any other server of its wire format.
#[derive(Debug)]
pub(crate) struct Client {
    pool: Pool,
    decide: Uri,
    prewarm: Uri,
}

impl Client {
    /// A client without connections yet.
    pub(crate) fn new(target: Target) -> Self {
        let decide = Uri::from_static("/v1/systemone");
        Self { pool: Pool::new(target), decide, prewarm: Uri::from_static("/v1/prewarm") }
    }

    /// The response's outcome, reply and fault.
    async fn ask(&self, request: Request) -> anyhow::Result<(Outcome, Reply, Option<String>)> {
        let uri = match request.route {
            Route::Decide => self.decide.clone(),
            Route::Prewarm => self.prewarm.clone(),
        };
        let mut message = HttpRequest::new(Full::new(request.body));
        *message.method_mut() = Method::POST;
        *message.uri_mut() = uri;
        message.headers_mut().clone_from(&request.headers);

        let mut connection = self.pool.take().await?;
        let response = connection.sender.send_request(message).await.context("no response")?;
        let (head, body) = response.into_parts();
        let body: Bytes = body.collect().await.context("the response broke off")?.to_bytes();
        self.pool.give(connection);

        let outcome =
            Outcome::of(head.status, is_complete(request.route, request.questions, &body));
        let fault = (outcome == Outcome::Failed).then(|| {
            let text = String::from_utf8_lossy(&body);
            format!("{}: {}", head.status, text.chars().take(FAULT_CHARS_MAX).collect::<String>())
        });
        Ok((outcome, Reply::of(head.status, &head.headers), fault))
    }
}

impl Driver for Client {
    /// A connection whose request is given up is closed: dropping the wait drops it.
    async fn send(&self, request: Request) -> Exchange {
        let sent = Instant::now();
        let (patience, impatient) = match request.leaves_after {
            Some(after) if after < request.patience => (after, Outcome::Disconnected),
            _ => (request.patience, Outcome::TimedOut),
        };
        let end = timeout(patience, self.ask(request)).await;
        let (outcome, reply, fault) = match end {
            Ok(Ok((outcome, reply, fault))) => (outcome, Some(reply), fault),
            Ok(Err(error)) => (Outcome::ConnectionError, None, Some(format!("{error:#}"))),
            Err(_) => (impatient, None, None),
        };
        Exchange { outcome, sent, ended: Instant::now(), reply, fault }
    }
}

#[cfg(test)]
mod tests;
