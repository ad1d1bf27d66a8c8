//! The body of an answer on its way through: passed on as it comes, and counted until it has ended.

use std::error::Error;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};

use super::pool::Place;
use crate::telemetry::{self, BackendEnd, Held};

/// What a request of a client holds until its answer has ended.
pub(super) struct UnderWay {
    _permit: OwnedSemaphorePermit,
    _shown: Held,
}

impl UnderWay {
    /// * `permit`: one of the gateway's requests.
    pub(super) fn new(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit, _shown: telemetry::under_way() }
    }
}

/// An answer's body. Dropped before its end, it ends the request at the backend too.
pub(super) struct AnswerBody {
    incoming: Incoming,
    place: Place,
    _under_way: UnderWay,
    /// Longest time between two pieces.
    limit: Duration,
    /// When that is over.
    due: Pin<Box<Sleep>>,
}

impl AnswerBody {
    pub(super) fn new(
        incoming: Incoming,
        mut place: Place,
        under_way: UnderWay,
        limit: Duration,
    ) -> Self {
        if incoming.is_end_stream() {
            place.ends(BackendEnd::Answered);
        }
        let due = Box::pin(tokio::time::sleep(limit));
        Self { incoming, place, _under_way: under_way, limit, due }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.incoming).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                this.due.as_mut().reset(Instant::now() + this.limit);
                if this.incoming.is_end_stream() {
                    this.place.ends(BackendEnd::Answered);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                this.place.ends(BackendEnd::Broken);
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) => {
                this.place.ends(BackendEnd::Answered);
                Poll::Ready(None)
            }
            Poll::Pending if this.due.as_mut().poll(context).is_ready() => {
                this.place.ends(BackendEnd::Timeout);
                Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::TimedOut).into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
