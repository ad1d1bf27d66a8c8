//! One HTTP request over a connection of the pool.

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Method, Request, StatusCode, Uri};

use super::pool::Pool;

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

        let mut connection = self.pool.take().await?;
        let response = connection.sender.send_request(message).await.context("no response")?;
        let (head, body) = response.into_parts();
        let body: Bytes = body.collect().await.context("the response broke off")?.to_bytes();
        self.pool.give(connection);
        Ok(Response { status: head.status, headers: head.headers, body })
    }
}
