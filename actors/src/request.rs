//! The request actor: one decision, its stages and their outcomes.
//!
//! It splits a stage into reads, hands them to the scheduler and collects what comes back; it
//! touches neither the queue nor a segment. When it ends, for whatever reason, its guard closes the
//! decision.

use std::sync::Arc;
use std::time::Instant;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

use crate::error::ReadError;
use crate::links::{DecisionGuard, Entry, Permit, Shared};
use crate::read::{Prefix, ReadOutcome, ReadSpec};
use crate::registration::RegistrationMessage;
use crate::scheduler::SchedulerAsk;

/// How one read ended.
pub(crate) type ReadResult = Result<ReadOutcome, ReadError>;

/// What a request actor is told.
pub(crate) enum RequestMessage {
    /// Read these and answer when all are done.
    Read { reads: Vec<ReadSpec>, at: Instant, reply: oneshot::Sender<Vec<ReadResult>> },
    /// Read number `index` ended.
    Outcome { index: u32, result: ReadResult },
    /// The scheduler went away with the stage that starts at read `first`.
    Lost { first: u32 },
    /// Nobody waits for the current stage any more.
    Withdraw,
    /// The response is out.
    Responded,
    /// The caller went away.
    Gone,
}

/// Where the scheduler sends a stage's outcomes; dropping it unfinished tells the request actor so.
pub(crate) struct ReadPort {
    request: ActorRef<RequestMessage>,
    first: u32,
    missing: usize,
}

impl ReadPort {
    /// Sends one outcome; returns whether it was the last.
    pub(crate) fn send(&mut self, index: u32, result: ReadResult) -> bool {
        self.missing = self.missing.saturating_sub(1);
        // The decision may have ended meanwhile; then nobody waits for the outcome.
        let _ = self.request.cast(RequestMessage::Outcome { index, result });
        self.missing == 0
    }
}

impl Drop for ReadPort {
    fn drop(&mut self) {
        if self.missing > 0 {
            // As above.
            let _ = self.request.cast(RequestMessage::Lost { first: self.first });
        }
    }
}

/// What a request actor starts with.
pub(crate) struct RequestArguments {
    pub(crate) shared: Arc<Shared>,
    pub(crate) prefix: Prefix,
    pub(crate) entry: Entry,
}

/// One decision under way.
pub(crate) struct Request {
    shared: Arc<Shared>,
    prefix: Prefix,
    guard: DecisionGuard,
    /// Until the first stage is queued.
    permit: Option<Permit>,
    next_index: u32,
    stage: Option<Stage>,
}

/// The reads that are waited for.
struct Stage {
    first: u32,
    results: Vec<Option<ReadResult>>,
    missing: usize,
    reply: oneshot::Sender<Vec<ReadResult>>,
}

impl Stage {
    /// Takes an outcome; the first one for an index counts.
    fn set(&mut self, index: u32, result: ReadResult) {
        let Some(offset) = index.checked_sub(self.first) else { return };
        if let Some(slot @ None) = self.results.get_mut(offset as usize) {
            *slot = Some(result);
            self.missing -= 1;
        }
    }

    fn answer(self, absent: &ReadError) {
        let absent = || Err(absent.clone());
        let results = self.results.into_iter().map(|slot| slot.unwrap_or_else(absent)).collect();
        // The caller may have stopped waiting.
        let _ = self.reply.send(results);
    }
}

impl Request {
    fn submit(
        &mut self,
        myself: &ActorRef<RequestMessage>,
        reads: Vec<ReadSpec>,
        at: Instant,
        reply: oneshot::Sender<Vec<ReadResult>>,
    ) {
        let (first, count) = (self.next_index, reads.len());
        self.next_index += u32::try_from(count).unwrap_or(u32::MAX);
        let results = vec![None; count];
        self.stage = Some(Stage { first, results, missing: count, reply });
        let port = ReadPort { request: myself.clone(), first, missing: count };
        let decision = self.guard.decision;
        let permit = self.permit.take();
        self.shared.scheduler(SchedulerAsk::Submit { decision, first, reads, at, port, permit });
    }

    fn outcome(&mut self, index: u32, result: ReadResult) {
        let Some(stage) = &mut self.stage else { return };
        stage.set(index, result);
        if stage.missing == 0 {
            self.end_stage(&ReadError::Unavailable);
        }
    }

    fn lost(&mut self, first: u32) {
        if self.stage.as_ref().is_some_and(|stage| stage.first == first) {
            self.end_stage(&ReadError::Unavailable);
        }
    }

    fn withdraw(&mut self) {
        self.end_stage(&ReadError::Cancelled);
        self.shared.scheduler(SchedulerAsk::Withdraw { decision: self.guard.decision });
    }

    fn end_stage(&mut self, absent: &ReadError) {
        if let Some(stage) = self.stage.take() {
            stage.answer(absent);
        }
    }
}

/// The request actor.
pub(crate) struct RequestActor;

impl Actor for RequestActor {
    type Msg = RequestMessage;
    /// `None` once the decision was handed to the registration actor.
    type State = Option<Request>;
    type Arguments = RequestArguments;

    async fn pre_start(
        &self,
        _: ActorRef<RequestMessage>,
        arguments: RequestArguments,
    ) -> Result<Option<Request>, ActorProcessingErr> {
        let RequestArguments { shared, prefix, entry: Entry { permit, guard, .. } } = arguments;
        let permit = Some(permit);
        Ok(Some(Request { shared, prefix, guard, permit, next_index: 0, stage: None }))
    }

    async fn handle(
        &self,
        myself: ActorRef<RequestMessage>,
        message: RequestMessage,
        state: &mut Option<Request>,
    ) -> Result<(), ActorProcessingErr> {
        let Some(request) = state else { return Ok(()) };
        match message {
            RequestMessage::Read { reads, at, reply } => request.submit(&myself, reads, at, reply),
            RequestMessage::Outcome { index, result } => request.outcome(index, result),
            RequestMessage::Lost { first } => request.lost(first),
            RequestMessage::Withdraw => request.withdraw(),
            RequestMessage::Responded => {
                if let Some(Request { shared, prefix, guard, .. }) = state.take() {
                    shared.registration(RegistrationMessage::Responded { prefix, guard });
                }
                myself.stop(None);
            }
            RequestMessage::Gone => {
                *state = None;
                myself.stop(None);
            }
        }
        Ok(())
    }
}
