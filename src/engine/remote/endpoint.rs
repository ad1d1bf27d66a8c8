//! One server: its wire, its window of requests, what it is believed to hold, and how it stands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actors::SegmentKey;
use hyper::StatusCode;
use thiserror::Error;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::hints::{Found, Hints};
use super::protocol::{Ask, Call, Introduction, Misread, Protocol, Reading};
use super::slots::Slots;
use super::standing::{Look, Standing};
use super::wire::{Answer, Wire, WireFault};
use crate::telemetry::{
    RemoteCall, RemoteEnd, RemoteFound, remote_call, remote_called, remote_found,
};

/// Where each of the three servers tells whether it is well.
const HEALTH: &str = "/health";

/// Longest time of a look at a server.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Why a server gave no reading.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Fault {
    /// Nothing was executed: another server, or this one later, may be asked.
    #[error("{why}")]
    NotExecuted {
        /// For the log.
        why: String,
        /// Whether the server is not to be asked until it was looked at.
        is_down: bool,
        /// When it says to come back.
        retry_after: Option<Duration>,
    },
    /// The server does not take the request itself.
    #[error("{0}")]
    Refused(String),
    /// The logits were not finite.
    #[error("the logits are not finite")]
    NonFinite,
    /// It may have been executed.
    #[error("{why}")]
    Lost {
        /// For the log.
        why: String,
        /// Whether the server is not to be asked until it was looked at.
        is_down: bool,
    },
}

/// A server.
pub(super) struct Endpoint {
    pub(super) wire: Wire,
    pub(super) protocol: Protocol,
    /// Requests that may be under way.
    window: Arc<Semaphore>,
    /// The rest is held for a look-up, so these are plain locks.
    standing: Mutex<Standing>,
    hints: Mutex<Hints>,
    board: Mutex<Board>,
    /// What it said of itself when it was checked last.
    introduction: Mutex<Introduction>,
    /// Has whoever looks after it look now.
    pub(super) wake: Notify,
}

/// The slots of a llama-server, and whose turn it is on each.
#[derive(Default)]
struct Board {
    slots: Slots,
    turns: Vec<Arc<Semaphore>>,
}

/// A place among the requests of a server; given back when dropped.
pub(super) struct Place<'a> {
    /// The slot to ask for.
    pub(super) slot: Option<usize>,
    _user: SlotUser<'a>,
    _turn: Option<OwnedSemaphorePermit>,
    _window: Option<OwnedSemaphorePermit>,
}

/// A user of a slot, also while it waits for its turn.
struct SlotUser<'a> {
    endpoint: &'a Endpoint,
    slot: Option<usize>,
}

impl Drop for SlotUser<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            held(&self.endpoint.board).slots.leave(slot);
        }
    }
}

/// No thread panics with one of these locks; if one did, what they hold is whole all the same.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Endpoint {
    pub(super) fn new(wire: Wire, protocol: Protocol, window: usize) -> Self {
        Self {
            wire,
            protocol,
            window: Arc::new(Semaphore::new(window)),
            standing: Mutex::new(Standing::unknown(Instant::now())),
            hints: Mutex::new(Hints::new()),
            board: Mutex::default(),
            introduction: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// Its address, as it is shown.
    pub(super) fn name(&self) -> &str {
        self.wire.target().as_str()
    }

    pub(super) fn standing(&self) -> Standing {
        held(&self.standing).clone()
    }

    pub(super) fn is_up(&self) -> bool {
        held(&self.standing).is_up()
    }

    /// It is not asked until it was looked at.
    pub(super) fn put_down(&self, why: &str) {
        if held(&self.standing).put_down(why.to_owned(), Instant::now()) {
            tracing::warn!(server = self.name(), why, "a server of the remote engine is not asked");
            self.wake.notify_one();
        }
    }

    /// It was checked, said this of itself, and is asked from now on. What it held is gone if it was
    /// down.
    pub(super) fn put_up(&self, introduction: Introduction) {
        let slots = introduction.slots.unwrap_or(0);
        *held(&self.introduction) = introduction;
        {
            let mut board = held(&self.board);
            if board.turns.len() != slots {
                let turns = (0..slots).map(|_| Arc::new(Semaphore::new(1))).collect();
                *board = Board { slots: Slots::new(slots), turns };
            }
        }
        if held(&self.standing).put_up(Instant::now()) {
            held(&self.hints).clear();
            tracing::info!(server = self.name(), "a server of the remote engine is asked");
        }
    }

    pub(super) fn introduction(&self) -> Introduction {
        held(&self.introduction).clone()
    }

    /// When to look at it next.
    pub(super) fn next_look(&self) -> Duration {
        held(&self.standing).next_look()
    }

    /// Takes in a look at a server that is asked.
    pub(super) fn looked(&self, look: Look) {
        let why = held(&self.standing).looked(look);
        if let Some(why) = why {
            self.put_down(&why);
        }
    }

    /// Asks whether it is well.
    pub(super) async fn look(&self) -> Look {
        match self.wire.send_within(&Call::get(HEALTH), LOOK_MAX).await {
            Ok(answer) if answer.status.is_success() => Look::Well,
            Ok(answer) => {
                Look::Away(format!("it answers {} when asked whether it is well", answer.status))
            }
            Err(fault @ WireFault::NotSent(_)) => Look::Away(fault.to_string()),
            Err(fault @ (WireFault::Lost(_) | WireFault::Slow(_) | WireFault::TooLarge)) => {
                Look::Silent(fault.to_string())
            }
        }
    }

    /// Whether it is believed to hold the first `tokens` of a state's prompts.
    pub(super) fn holds(&self, state: SegmentKey, tokens: u32) -> bool {
        held(&self.hints).holds(state, tokens)
    }

    /// Notes that it read the first `tokens` of a state's prompts.
    pub(super) fn note_read(&self, state: SegmentKey, tokens: u32, cached: Option<u32>) {
        let found = held(&self.hints).read(state, tokens, cached);
        match found {
            Found::Confirmed => remote_found(RemoteFound::Confirmed),
            Found::Missed => remote_found(RemoteFound::Missed),
            Found::Unknown => {}
        }
    }

    /// States that it is believed to hold.
    pub(super) fn states_held(&self) -> usize {
        held(&self.hints).len()
    }

    /// Waits for a place among its requests, and for the state's slot where there are slots.
    pub(super) async fn enter(&self, state: SegmentKey) -> Place<'_> {
        let (slot, turn) = {
            let mut board = held(&self.board);
            let slot = board.slots.enter(state);
            (slot, slot.and_then(|slot| board.turns.get(slot).cloned()))
        };
        let user = SlotUser { endpoint: self, slot };
        // Neither is ever closed; without a permit a request would still be right.
        let turn = match turn {
            Some(turn) => turn.acquire_owned().await.ok(),
            None => None,
        };
        let window = Arc::clone(&self.window).acquire_owned().await.ok();
        Place { slot, _user: user, _turn: turn, _window: window }
    }

    /// Asks for a reading. To be called with a [`Place`].
    ///
    /// # Errors
    /// [`Fault`], which says whether it may be asked again.
    pub(super) async fn ask(&self, kind: RemoteCall, ask: &Ask<'_>) -> Result<Reading, Fault> {
        let call = self.protocol.ask(ask);
        let begun = remote_call();
        let from = Instant::now();
        let end = match self.wire.send(&call).await {
            Ok(answer) => self.understand(ask, &answer),
            Err(fault) => Err(of_wire(&fault)),
        };
        drop(begun);
        remote_called(kind, end_of(&end), from.elapsed());
        end
    }

    fn understand(&self, ask: &Ask<'_>, answer: &Answer) -> Result<Reading, Fault> {
        if answer.status != StatusCode::OK {
            return Err(of_status(answer));
        }
        self.protocol.read(ask, &answer.body).map_err(|misread| match misread {
            Misread::NotFinite { .. } => Fault::NonFinite,
            misread @ (Misread::Form(_) | Misread::Missing { .. } | Misread::Length { .. }) => {
                Fault::Lost { why: misread.to_string(), is_down: true }
            }
        })
    }

    /// Sends a call of the check, whose texts are docket's own.
    ///
    /// # Errors
    /// As [`WireFault`].
    pub(super) async fn call(&self, call: &Call) -> Result<Answer, WireFault> {
        self.wire.send(call).await
    }
}

fn of_wire(fault: &WireFault) -> Fault {
    let why = fault.to_string();
    match fault {
        WireFault::NotSent(_) => Fault::NotExecuted { why, is_down: true, retry_after: None },
        WireFault::Lost(_) | WireFault::TooLarge => Fault::Lost { why, is_down: true },
        // It may only be busy: looks tell.
        WireFault::Slow(_) => Fault::Lost { why, is_down: false },
    }
}

/// What a status means. The body is not told: it may repeat the prompt.
fn of_status(answer: &Answer) -> Fault {
    let status = answer.status;
    let retry_after = answer.retry_after;
    let not_executed = |why: &str, is_down| Fault::NotExecuted {
        why: format!("it answers {status}{why}"),
        is_down,
        retry_after,
    };
    match status.as_u16() {
        401 | 403 => not_executed(": it does not let docket in, see --engine-key-file", true),
        404 | 405 => not_executed(": it has no such model or route", true),
        408 | 429 | 503 => not_executed("", false),
        400..=499 => Fault::Refused(format!("the server answers {status}")),
        _ => Fault::Lost { why: format!("it answers {status}"), is_down: false },
    }
}

fn end_of(end: &Result<Reading, Fault>) -> RemoteEnd {
    match end {
        Ok(_) => RemoteEnd::Done,
        Err(Fault::NotExecuted { is_down: true, .. }) => RemoteEnd::NotSent,
        Err(Fault::NotExecuted { is_down: false, .. }) => RemoteEnd::Busy,
        Err(Fault::Refused(_)) => RemoteEnd::Refused,
        Err(Fault::NonFinite) => RemoteEnd::NonFinite,
        Err(Fault::Lost { .. }) => RemoteEnd::Lost,
    }
}
