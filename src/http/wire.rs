//! One connection as hyper reads and writes it: what comes and goes is told to its [`Connection`], the
//! first bytes say which HTTP it is, and clients that stop in a head or stop reading are given up.

mod connection;
mod frames;

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep, sleep_until};

pub(super) use connection::{Connection, Due, Served};
use frames::PREFACE;

use crate::telemetry::{self, Ending};

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// Limits of a connection's reading and writing.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireLimits {
    /// Longest time from a head's first byte to its last.
    pub(super) head: Duration,
    /// Longest time that a write may wait for the client to read.
    pub(super) write: Duration,
}

/// A stream that keeps its [`Connection`] informed.
pub(super) struct Wire<S> {
    stream: S,
    connection: Arc<Connection>,
    limits: WireLimits,
    /// Bytes that were looked at and that hyper has not had yet.
    ahead: [u8; PREFACE.len()],
    ahead_bytes: usize,
    /// Runs while a read waits for the rest of a head.
    slow: Option<Pin<Box<Sleep>>>,
    /// Runs while a write waits.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<S> Wire<S> {
    pub(super) fn new(stream: S, connection: Arc<Connection>, limits: WireLimits) -> Self {
        let (ahead, ahead_bytes) = ([0; PREFACE.len()], 0);
        Self { stream, connection, limits, ahead, ahead_bytes, slow: None, stall: None }
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
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(self.limits.write)));
        ready!(stall.as_mut().poll(context));
        telemetry::connection_ended(Ending::Unread);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Ends the wait for the rest of a head that has lasted too long.
    fn await_rest(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(since) = self.connection.head_since() else {
            self.slow = None;
            return Poll::Pending;
        };
        let until = since + self.limits.head;
        let slow = self.slow.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if slow.deadline() != until {
            slow.as_mut().reset(until);
        }
        ready!(slow.as_mut().poll(context));
        telemetry::connection_ended(Ending::Head);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> Wire<S> {
    /// What is spoken, by the first bytes: HTTP/2 begins with all of its preface. `PRI` alone may be
    /// a method of HTTP/1, which is for the router to refuse; a stream that ends before it is known
    /// speaks HTTP/1 too.
    pub(super) async fn version(&mut self) -> io::Result<Version> {
        while self.ahead_bytes < PREFACE.len()
            && self.ahead[..self.ahead_bytes] == PREFACE[..self.ahead_bytes]
        {
            if poll_fn(|context| self.poll_ahead(context)).await? == 0 {
                break;
            }
        }
        let is_http2 = self.ahead == PREFACE;
        if is_http2 {
            self.connection.speak_http2();
        }
        Ok(if is_http2 { Version::Http2 } else { Version::Http1 })
    }

    fn poll_ahead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(&mut self.ahead[self.ahead_bytes..]);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
        if read.is_pending() {
            return self.await_rest(context).map_ok(|()| 0);
        }
        let bytes = buffer.filled();
        if !bytes.is_empty() {
            self.connection.has_read(bytes);
        }
        let count = bytes.len();
        self.ahead_bytes += count;
        read.map_ok(|()| count)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.ahead_bytes > 0 {
            let given = self.ahead_bytes.min(buffer.remaining());
            buffer.put_slice(&self.ahead[..given]);
            let left = given..self.ahead_bytes;
            self.ahead.copy_within(left, 0);
            self.ahead_bytes -= given;
            self.connection.has_read(&buffer.filled()[before..]);
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() {
            return self.await_rest(context);
        }
        if buffer.filled().len() > before {
            self.connection.has_read(&buffer.filled()[before..]);
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
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limit(context, shut)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::BufMut as _;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::{Instant, advance};

    use super::*;
    use crate::http::slots::tests::slot;

    const MS: Duration = Duration::from_millis(1);

    fn pair(capacity: usize) -> (DuplexStream, Wire<DuplexStream>, Arc<Connection>) {
        let (client, server) = duplex(capacity);
        let connection = Arc::new(Connection::new(slot()));
        let limits = WireLimits { head: 200 * MS, write: 30 * MS };
        (client, Wire::new(server, Arc::clone(&connection), limits), connection)
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
        let response = connection.begin_response();
        wire.flush().await.unwrap();
        assert!(!connection.is_idle(), "more of the response may come");
        connection.end_response(response);
        wire.flush().await.unwrap();
        assert!(connection.is_idle());
        advance(100 * MS).await;
        let next = Instant::now();
        client.write_all(b"next").await.unwrap();
        wire.read_exact(&mut buffer[..4]).await.unwrap();
        advance(MS).await;
        assert_eq!(connection.begin_request().at, next.into_std());
        // A request that was read together with the last one begins when it is its turn.
        let response = connection.begin_response();
        connection.end_response(response);
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

    #[tokio::test(start_paused = true)]
    async fn the_first_bytes_say_what_is_spoken_and_nothing_of_them_is_lost() {
        let said = [
            (PREFACE, Version::Http2),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0", Version::Http2),
            (b"PRI * HTTP/2.0\r\n", Version::Http1),
            (b"PRI * HTTP/1.1\r\nhost: localhost\r\n\r\n", Version::Http1),
            (b"PRIX / HTTP/1.1\r\n", Version::Http1),
            (b"PROPFIND / HTTP/1.1\r\n", Version::Http1),
            (b"GET / HTTP/1.1\r\n", Version::Http1),
            (b"PR", Version::Http1),
            (b"", Version::Http1),
        ];
        let each = said.into_iter().flat_map(|(sent, version)| {
            [1, 3, sent.len().max(1)].map(|at_once| (sent, version, at_once))
        });
        for (sent, version, at_once) in each {
            let (client, mut wire, _connection) = pair(64);
            let (found, ()) = tokio::join!(wire.version(), in_parts(client, sent, at_once));
            assert_eq!(found.unwrap(), version, "{sent:?}");
            assert_eq!(read_in_small_parts(&mut wire).await, sent);
        }
    }

    /// All that comes, which must not be put out of order.
    async fn read_in_small_parts(wire: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
        let mut read = Vec::new();
        while wire.read_buf(&mut (&mut read).limit(5)).await.unwrap() > 0 {}
        read
    }

    async fn in_parts(mut client: impl AsyncWrite + Unpin, sent: &[u8], at_once: usize) {
        for part in sent.chunks(at_once) {
            client.write_all(part).await.unwrap();
            tokio::task::yield_now().await;
        }
    }

    /// What was read of a connection until it was given up, and why it was.
    async fn given_up<S: AsyncRead + Unpin>(mut wire: Wire<S>) -> (io::ErrorKind, Vec<u8>) {
        wire.version().await.unwrap();
        let mut read = Vec::new();
        (wire.read_to_end(&mut read).await.unwrap_err().kind(), read)
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_end_is_given_up_and_an_idle_wait_is_not() {
        for first in [&b"GET"[..], b"PRI * HT"] {
            let (mut client, wire, _connection) = pair(64);
            let reading = tokio::spawn(given_up(wire));
            advance(10_000 * MS).await;
            assert!(!reading.is_finished());
            let start = Instant::now();
            client.write_all(first).await.unwrap();
            tokio::task::yield_now().await;
            advance(100 * MS).await;
            client.write_all(b"x").await.unwrap();
            let (kind, read) = reading.await.unwrap();
            assert_eq!((kind, start.elapsed()), (io::ErrorKind::TimedOut, 200 * MS));
            assert_eq!(read, [first, b"x"].concat());
        }
    }
}
