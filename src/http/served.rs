//! A response body that reports when it has been handed over.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};

use super::wire::{Connection, Served};

/// One chunk of known length. Once it has been taken, `served` is run after the connection's next
/// flush (at once where there is no connection); dropped before, it is never run. On HTTP/1 the flush
/// is that of the response's last byte to the socket. On HTTP/2 hyper takes the chunk once the client
/// lets it send any of it: what the client's window holds back of it then leaves later.
pub(super) struct ServedBody {
    body: Full<Bytes>,
    served: Option<Served>,
    connection: Option<Arc<Connection>>,
}

impl ServedBody {
    pub(super) fn new(text: String, served: Served, connection: Option<Arc<Connection>>) -> Self {
        Self { body: Full::new(Bytes::from(text)), served: Some(served), connection }
    }
}

impl fmt::Debug for ServedBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServedBody").field("body", &self.body).finish_non_exhaustive()
    }
}

impl Body for ServedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match (self.served.take(), &self.connection) {
            (Some(served), Some(connection)) => connection.after_flush(served),
            (Some(served), None) => served(),
            (None, _) => {}
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
