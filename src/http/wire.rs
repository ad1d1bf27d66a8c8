//! One connection as hyper reads and writes it: when a request's first byte came, when a response's
//! last byte left, and an end to clients that stop reading.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::service::Arrival;

/// What is to be done once a response has been handed to the socket.
pub(super) type Served = Box<dyn FnOnce() + Send>;

/// What a connection's I/O and its requests tell each other.
pub(super) struct Connection(Mutex<State>);

#[derive(Default)]
struct State {
    phase: Phase,
    /// When the first byte of the next request was read.
    first_byte: Option<Instant>,
    /// For the response that is being written.
    served: Vec<Served>,
}

#[derive(Default, PartialEq, Eq)]
enum Phase {
    /// The next byte read begins a request.
    #[default]
    Idle,
    /// Bytes read belong to a request that is being answered.
    Answering,
    /// The response is written; the flush that follows ends it.
    Responding,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State::default()))
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// When the request that begins now came; now, where it was read together with the last one.
    pub(super) fn begin_request(&self) -> Arrival {
        let first_byte = self.with(|state| {
            state.phase = Phase::Answering;
            state.first_byte.take()
        });
        Arrival { at: first_byte.unwrap_or_else(Instant::now).into_std() }
    }

    /// The response's head is ready.
    pub(super) fn end_request(&self) {
        self.with(|state| state.phase = Phase::Responding);
    }

    /// Runs `served` after the bytes that hyper holds now have been written.
    pub(super) fn after_flush(&self, served: Served) {
        self.with(|state| state.served.push(served));
    }

    fn has_read(&self) {
        self.with(|state| {
            if state.phase == Phase::Idle && state.first_byte.is_none() {
                state.first_byte = Some(Instant::now());
            }
        });
    }

    /// Everything that hyper held has been written: it flushes its socket only then.
    fn has_flushed(&self) {
        let served = self.with(|state| {
            if state.phase == Phase::Responding {
                state.phase = Phase::Idle;
            }
            std::mem::take(&mut state.served)
        });
        for served in served {
            served();
        }
    }
}

/// A stream that keeps its [`Connection`] informed.
pub(super) struct Wire<S> {
    stream: S,
    connection: Arc<Connection>,
    /// Longest time that a write may wait for the client to read.
    write_timeout: Duration,
    /// Runs while a write waits.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<S> Wire<S> {
    pub(super) fn new(stream: S, connection: Arc<Connection>, write_timeout: Duration) -> Self {
        Self { stream, connection, write_timeout, stall: None }
    }

    /// Ends a write that has waited too long.
    fn limit<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(self.write_timeout)));
        match stall.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.connection.has_read();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.limit(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.connection.has_flushed();
        }
        self.limit(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
