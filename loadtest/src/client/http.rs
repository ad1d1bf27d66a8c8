//! One HTTP request over a connection of the pool.

use std::fmt::{self, Display, Formatter};

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, StatusCode, Uri};
use rustix::io::Errno;

use super::pool::{Connection, Pool};
use crate::exchange::Denied;

/// Longest body of a response, bytes: a server that never ends one would fill the memory within its
/// client's patience.
const BODY_BYTES_MAX: usize = 32 << 20;
/// A new connection that ended before anything came over it.
#[derive(Debug)]
struct NewUnanswered;

impl Display for NewUnanswered {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("no response on a new connection")
    }
}

/// The way to one server.
#[derive(Debug)]
pub(crate) struct Http {
    pool: Pool,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Http {
    /// Over the connections of `pool`.
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Sends a body and waits for the whole response.
    ///
    /// # Errors
    /// When there is no connection, or it breaks.
    pub(crate) async fn post(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> anyhow::Result<Response> {
        self.send(Method::POST, uri, headers, body).await
    }

    /// Fetches what is at `uri`.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub(crate) async fn get(&self, uri: &Uri, headers: &HeaderMap) -> anyhow::Result<Response> {
        self.send(Method::GET, uri, headers, Bytes::new()).await
    }

    /// Whether an error of a request is for the number of connections.
    pub(super) fn denied(&self, error: &anyhow::Error) -> Option<Denied> {
        let of_system = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
        let mut of_system = of_system.filter_map(Errno::from_io_error);
        if of_system.any(|errno| [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL].contains(&errno))
        {
            return Some(Denied::Own);
        }
        error.is::<NewUnanswered>().then(|| Denied::Closed { open: self.pool.open_count() })
    }

    async fn send(
        &self,
        method: Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> anyhow::Result<Response> {
        let mut message = Request::new(Full::new(body));
        *message.method_mut() = method;
        *message.uri_mut() = uri.clone();
        message.headers_mut().clone_from(headers);

        let (response, connection) = self.respond(message).await?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|fault| {
            anyhow!("the response broke off, or is over {BODY_BYTES_MAX} bytes: {fault}")
        })?;
        self.pool.give(connection);
        Ok(Response { status: head.status, headers: head.headers, body: body.to_bytes() })
    }

    /// The response to a message, and its connection. A connection that was idle may have been
    /// closed meanwhile, as every server does in the end: what could not be sent on it goes over
    /// the next one, and is no fault of the server.
    async fn respond(
        &self,
        mut message: Request<Full<Bytes>>,
    ) -> anyhow::Result<(hyper::Response<Incoming>, Connection)> {
        while let Some(mut connection) = self.pool.idle().await {
            let mut fault = match connection.sender.try_send_request(message).await {
                Ok(response) => return Ok((response, connection)),
                Err(fault) => fault,
            };
            let Some(unsent) = fault.take_message() else {
                return Err(fault.into_error()).context("no response");
            };
            message = unsent;
        }
        let mut connection = self.pool.open().await?;
        let sent = connection.sender.send_request(message).await;
        Ok((sent.context(NewUnanswered)?, connection))
    }
}
