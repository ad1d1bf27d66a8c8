//! One request on a connection, from the moment its head is there to the end of its response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

use crate::http::wire::{Connection, Version};
use crate::service::Arrival;
use crate::telemetry;

/// Most bytes that hyper is handed at a time on HTTP/2, where it takes all it is offered as soon as the
/// client has room for one byte: what is taken no longer counts as waiting for the client. As large as
/// a frame may be by default.
const FRAME_BYTES_MAX: usize = 16 << 10;

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
    version: Version,
    response: Option<u64>,
    _stream: Option<telemetry::Held>,
}

impl Answering {
    pub(super) fn new(connection: &Arc<Connection>, version: Version) -> Self {
        Self {
            connection: Arc::clone(connection),
            version,
            response: None,
            _stream: (version == Version::Http2).then(telemetry::http2_stream),
        }
    }

    /// The head of the response is ready; the answer lasts as long as its body.
    pub(super) fn respond(mut self, body: Body) -> Body {
        self.response = Some(self.connection.begin_response());
        Body::new(AnswerBody { body, rest: Bytes::new(), answering: self })
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
    /// Of the frame that is handed over in parts.
    rest: Bytes,
    answering: Answering,
}

impl AnswerBody {
    /// As much of the rest as is handed over at a time.
    fn part(&mut self) -> Frame<Bytes> {
        let most = match self.answering.version {
            Version::Http1 => self.rest.len(),
            Version::Http2 => FRAME_BYTES_MAX.min(self.rest.len()),
        };
        Frame::data(self.rest.split_to(most))
    }

    fn handed(&self, frame: Frame<Bytes>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.answering.hand();
        Poll::Ready(Some(Ok(frame)))
    }
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.answering.take();
        if !self.rest.is_empty() {
            let part = self.part();
            return self.handed(part);
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    let part = self.part();
                    self.handed(part)
                }
                Err(trailers) => self.handed(trailers),
            },
            end @ (Poll::Ready(Some(Err(_)) | None) | Poll::Pending) => end,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(body.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use hyper::body::Body as _;

    use super::*;
    use crate::http::slots::tests::slot;

    #[tokio::test]
    async fn a_body_is_handed_over_in_frames_on_http2_and_at_once_on_http1() {
        let text: Vec<u8> = (0..100_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let parts = read(Version::Http1, &text).await;
        assert_eq!((parts.len(), parts.concat() == text), (1, true));
        let parts = read(Version::Http2, &text).await;
        assert_eq!((parts.len(), parts.concat() == text), (7, true));
        assert!(parts.iter().all(|part| part.len() <= FRAME_BYTES_MAX));
    }

    /// The parts of a body, which says after each how much is to come.
    async fn read(version: Version, text: &[u8]) -> Vec<Vec<u8>> {
        let connection = Arc::new(Connection::new(slot()));
        let mut body = Answering::new(&connection, version).respond(Body::from(text.to_vec()));
        let (mut parts, mut left) = (Vec::new(), text.len() as u64);
        assert_eq!(body.size_hint().exact(), Some(left));
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            left -= data.len() as u64;
            assert_eq!(body.size_hint().exact(), Some(left));
            assert_eq!(body.is_end_stream(), left == 0);
            parts.push(data.to_vec());
        }
        parts
    }
}
