//! What a connection's I/O, its requests and the server loop tell each other: when a request's first
//! byte came, when a response's last byte left, and since when nothing was asked.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::frames::Frames;
use crate::http::slots::{Leave, Slot};
use crate::service::Arrival;
use crate::telemetry::Ending;

/// What is to be done once a response has been handed to the socket.
pub(in crate::http) type Served = Box<dyn FnOnce() + Send>;

/// Most requests of one connection that are given up by its client at once, and how many more a
/// second: beyond that only an attack goes.
const CANCELS_MAX: f64 = 200.0;
const CANCELS_PER_SECOND: f64 = 20.0;

/// One connection, from its acceptance to its end.
pub(in crate::http) struct Connection {
    state: Mutex<State>,
    slot: Slot,
}

struct State {
    phase: Phase,
    /// When the first byte of the next request was read, on HTTP/1.
    first_byte: Option<Instant>,
    /// On HTTP/2.
    frames: Option<Frames>,
    /// For the responses that are being written.
    served: Vec<Served>,
    /// Requests that are being answered; at most 1 on HTTP/1.
    open: usize,
    idle_since: Instant,
    /// Responses of which hyper takes no more before the client has read, and since when; the oldest
    /// first.
    handed: Vec<(u64, Instant)>,
    cancels: Cancels,
    next_response: u64,
}

/// Of HTTP/1.
#[derive(Default, PartialEq, Eq)]
enum Phase {
    /// The next byte read begins a request.
    #[default]
    Idle,
    /// Bytes read belong to a request that is being answered.
    Answering,
    /// The response is taken; the flush that follows ends it.
    Responding,
}

/// Requests that were given up, less what is allowed since.
struct Cancels {
    level: f64,
    at: Instant,
}

/// Whether a connection has lasted too long.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) enum Due {
    /// For this reason.
    Now(Ending),
    /// Not before then.
    Later(Instant),
}

impl State {
    fn head_since(&self) -> Option<Instant> {
        match &self.frames {
            Some(frames) => frames.began(),
            None => self.first_byte,
        }
    }
}

impl Cancels {
    /// Whether one more is too many.
    fn add(&mut self, now: Instant) -> bool {
        let allowed = now.duration_since(self.at).as_secs_f64() * CANCELS_PER_SECOND;
        self.level = (self.level - allowed).max(0.0) + 1.0;
        self.at = now;
        self.level > CANCELS_MAX
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// On whose slot nothing was read yet.
    pub(in crate::http) fn new(slot: Slot) -> Self {
        let now = Instant::now();
        let state = State {
            phase: Phase::default(),
            first_byte: None,
            frames: None,
            served: Vec::new(),
            open: 0,
            idle_since: now,
            handed: Vec::new(),
            cancels: Cancels { level: 0.0, at: now },
            next_response: 0,
        };
        Self { state: Mutex::new(state), slot }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What asks this connection to end.
    pub(in crate::http) fn leave(&self) -> &Leave {
        self.slot.leave()
    }

    /// From here on the bytes read are frames.
    pub(in crate::http) fn speak_http2(&self) {
        self.with(|state| state.frames = Some(Frames::new()));
    }

    /// When the request that begins now came: its first byte. On HTTP/1 it is now where it was read
    /// together with the last one; on HTTP/2, where several heads ended within one turn of the
    /// connection, the time of the last of them goes for all.
    pub(in crate::http) fn begin_request(&self) -> Arrival {
        let first_byte = self.with(|state| {
            let first_byte = if let Some(frames) = &state.frames {
                state.open += 1;
                frames.last_head()
            } else {
                state.phase = Phase::Answering;
                state.open = 1;
                state.first_byte.take()
            };
            self.slot.busy();
            first_byte
        });
        Arrival { at: first_byte.unwrap_or_else(Instant::now).into_std() }
    }

    /// The head of a response is ready; its name until [`Connection::end_response`].
    pub(in crate::http) fn begin_response(&self) -> u64 {
        let response = self.with(|state| {
            state.next_response += 1;
            state.next_response
        });
        self.hand(response);
        response
    }

    /// A part of the response was handed to hyper, which takes the next when it may send it.
    pub(in crate::http) fn hand(&self, response: u64) {
        self.with(|state| state.handed.push((response, Instant::now())));
    }

    /// Hyper takes the next part: waiting for it is not waiting for the client.
    pub(in crate::http) fn take(&self, response: u64) {
        self.with(|state| state.handed.retain(|(handed, _)| *handed != response));
    }

    /// A response has been taken whole, or will not be.
    pub(in crate::http) fn end_response(&self, response: u64) {
        self.take(response);
        self.with(|state| match state.frames {
            Some(_) => self.end_stream(state),
            None => state.phase = Phase::Responding,
        });
    }

    /// A request was given up before it had a response. On HTTP/1 the connection ends with it.
    pub(in crate::http) fn cancel_request(&self) {
        let is_too_many = self.with(|state| {
            self.end_stream(state);
            state.frames.is_some() && state.cancels.add(Instant::now())
        });
        if is_too_many {
            self.leave().ask(Ending::Cancels);
        }
    }

    fn end_stream(&self, state: &mut State) {
        state.open = state.open.saturating_sub(1);
        if state.open == 0 {
            self.rest(state);
        }
    }

    /// Nothing is asked on it any more. The slot is told under the lock: what it knows must not be
    /// older than what is known here.
    fn rest(&self, state: &mut State) {
        state.open = 0;
        state.idle_since = Instant::now();
        self.slot.idle(state.idle_since);
    }

    /// Runs `served` after the bytes that hyper holds now have been written. On HTTP/2 the peer's
    /// flow control can hold some back still.
    pub(in crate::http) fn after_flush(&self, served: Served) {
        self.with(|state| state.served.push(served));
    }

    /// Bytes were read.
    pub(super) fn has_read(&self, bytes: &[u8]) {
        let now = Instant::now();
        self.with(|state| match &mut state.frames {
            Some(frames) => frames.follow(bytes, now),
            None if state.phase == Phase::Idle => {
                state.first_byte.get_or_insert(now);
            }
            None => {}
        });
    }

    /// Everything that hyper held has been written: it flushes its socket only then.
    pub(super) fn has_flushed(&self) {
        let served = self.with(|state| {
            if state.phase == Phase::Responding {
                state.phase = Phase::Idle;
                self.rest(state);
            }
            std::mem::take(&mut state.served)
        });
        for served in served {
            served();
        }
    }

    /// Since when a head is half there.
    pub(super) fn head_since(&self) -> Option<Instant> {
        self.with(|state| state.head_since())
    }

    /// Whether nothing is being answered on it.
    pub(in crate::http) fn is_idle(&self) -> bool {
        self.with(|state| state.open == 0)
    }

    /// Whether nothing was asked for `idle`, or no more of a response was taken for `taken`.
    pub(in crate::http) fn due(&self, idle: Duration, taken: Duration) -> Due {
        let now = Instant::now();
        self.with(|state| {
            let (ending, at) = match (state.handed.first(), state.open, state.head_since()) {
                (Some((_, since)), ..) => (Ending::Unread, *since + taken),
                // A head that is half there has a limit of its own.
                (None, 0, None) => (Ending::Idle, state.idle_since + idle),
                (None, ..) => return Due::Later(now + idle.min(taken)),
            };
            if at <= now { Due::Now(ending) } else { Due::Later(at.min(now + idle.min(taken))) }
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::http::slots::tests::slot;
    use crate::http::wire::frames::PREFACE;

    const MS: Duration = Duration::from_millis(1);

    fn http2() -> Connection {
        let connection = Connection::new(slot());
        connection.speak_http2();
        connection.has_read(PREFACE);
        connection
    }

    /// HEADERS of this many bytes, of which none is there yet.
    fn head(length: u8) -> [u8; 9] {
        [0, 0, length, 1, 4, 0, 0, 0, 1]
    }

    #[tokio::test(start_paused = true)]
    async fn streams_of_one_connection_count_each_from_its_own_first_byte() {
        let connection = http2();
        let mut expected = Vec::new();
        let mut found = Vec::new();
        for _ in 0..3 {
            expected.push(Instant::now().into_std());
            connection.has_read(&head(2));
            advance(20 * MS).await;
            connection.has_read(&[1, 2]);
            found.push(connection.begin_request().at);
            // The body of another one changes nothing.
            advance(MS).await;
            connection.has_read(&[0, 0, 1, 0, 0, 0, 0, 0, 1, 9]);
        }
        assert_eq!(found, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_when_its_last_stream_has_ended() {
        let connection = http2();
        let limits = (100 * MS, 30 * MS);
        let due = || connection.due(limits.0, limits.1);
        connection.begin_request();
        connection.begin_request();
        advance(500 * MS).await;
        assert_eq!(due(), Due::Later(Instant::now() + limits.1));
        let first = connection.begin_response();
        connection.take(first);
        advance(500 * MS).await;
        assert_eq!(due(), Due::Later(Instant::now() + limits.1), "it waits for more from here");
        connection.hand(first);
        connection.end_response(first);
        assert!(!connection.is_idle());
        let second = connection.begin_response();
        advance(30 * MS).await;
        assert_eq!(due(), Due::Now(Ending::Unread));
        connection.end_response(second);
        assert!(connection.is_idle());
        advance(99 * MS).await;
        assert_eq!(due(), Due::Later(Instant::now() + MS));
        advance(MS).await;
        assert_eq!(due(), Due::Now(Ending::Idle));
        connection.has_read(&head(9));
        assert_eq!(due(), Due::Later(Instant::now() + limits.1));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_are_given_up_again_and_again_end_the_connection() {
        let connection = http2();
        let cancel = || {
            connection.begin_request();
            connection.cancel_request();
        };
        // As many as are allowed, for any time.
        for _ in 0..300 {
            advance(50 * MS).await;
            cancel();
        }
        for _ in 0..199 {
            cancel();
        }
        assert_eq!(connection.leave().why(), None);
        cancel();
        assert_eq!(connection.leave().why(), Some(Ending::Cancels));
    }
}
