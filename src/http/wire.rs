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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::advance;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn pair(capacity: usize) -> (DuplexStream, Wire<DuplexStream>, Arc<Connection>) {
        let (client, server) = duplex(capacity);
        let connection = Arc::new(Connection::new());
        (client, Wire::new(server, Arc::clone(&connection), 30 * MS), connection)
    }

    fn counted(count: &Arc<AtomicUsize>) -> Served {
        let count = Arc::clone(count);
        Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_counts_from_its_first_byte() {
        let (mut client, mut wire, connection) = pair(64);
        let mut buffer = [0; 8];
        advance(5 * MS).await;
        let first_byte = Instant::now();
        for _ in 0..2 {
            client.write_all(b"head").await.unwrap();
            wire.read_exact(&mut buffer[..4]).await.unwrap();
            advance(60 * MS).await;
        }
        assert_eq!(connection.begin_request().at, first_byte.into_std());
        // The body belongs to the same request, and the interim response ends nothing.
        client.write_all(b"body").await.unwrap();
        wire.flush().await.unwrap();
        wire.read_exact(&mut buffer[..4]).await.unwrap();
        connection.end_request();
        wire.flush().await.unwrap();
        advance(100 * MS).await;
        let next = Instant::now();
        client.write_all(b"next").await.unwrap();
        wire.read_exact(&mut buffer[..4]).await.unwrap();
        advance(MS).await;
        assert_eq!(connection.begin_request().at, next.into_std());
        // A request that was read together with the last one begins when it is its turn.
        connection.end_request();
        assert_eq!(connection.begin_request().at, Instant::now().into_std());
    }

    #[tokio::test(start_paused = true)]
    async fn served_runs_at_the_flush_and_never_without_one() {
        let count = Arc::new(AtomicUsize::new(0));
        let (_client, mut wire, connection) = pair(64);
        connection.after_flush(counted(&count));
        wire.write_all(b"body").await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 0);
        wire.flush().await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        connection.after_flush(counted(&count));
        drop((wire, connection));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_given_up() {
        let (_client, mut wire, _connection) = pair(4);
        let start = Instant::now();
        let error = wire.write_all(b"longer than what fits").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() >= 30 * MS);
    }
}
