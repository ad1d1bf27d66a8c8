//! One request on a connection, from the moment its head is there to the end of its response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

use crate::http::wire::{Connection, Version};
use crate::service::Arrival;
use crate::telemetry;

/// What a request's handlers know of its connection; among its extensions.
#[derive(Debug, Clone)]
pub(in crate::http) struct Exchange {
    pub(in crate::http) connection: Arc<Connection>,
    pub(in crate::http) arrival: Arrival,
}

impl Exchange {
    /// The head of a request is there.
    pub(super) fn begin(connection: &Arc<Connection>) -> Self {
        let arrival = connection.begin_request();
        Self { connection: Arc::clone(connection), arrival }
    }
}

/// An answer in the making, on which its connection keeps count. Hyper drops it when the client has gone
/// or, on HTTP/2, has given up this request.
pub(super) struct Answering {
    connection: Arc<Connection>,
    response: Option<u64>,
    _stream: Option<telemetry::Held>,
}

impl Answering {
    pub(super) fn new(connection: &Arc<Connection>, version: Version) -> Self {
        Self {
            connection: Arc::clone(connection),
            response: None,
            _stream: (version == Version::Http2).then(telemetry::http2_stream),
        }
    }

    /// The head of the response is ready; the answer lasts as long as its body.
    pub(super) fn respond(mut self, body: Body) -> Body {
        self.response = Some(self.connection.begin_response());
        Body::new(AnswerBody { body, answering: self })
    }

    fn hand(&self) {
        if let Some(response) = self.response {
            self.connection.hand(response);
        }
    }

    fn take(&self) {
        if let Some(response) = self.response {
            self.connection.take(response);
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        match self.response {
            Some(response) => self.connection.end_response(response),
            None => self.connection.cancel_request(),
        }
    }
}

/// A response's body, whose end is that of the answer.
struct AnswerBody {
    body: Body,
    answering: Answering,
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.answering.take();
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(Some(Ok(_)))) {
            self.answering.hand();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
