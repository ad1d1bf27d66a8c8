//! Second tries for what failed, and the end of an engine that fails too often.
//!
//! A step that fails as a whole is taken apart: each of its items runs once more, alone, and what
//! fails alone as well is given up; its neighbours are not harmed. Where memory was short, half of
//! the step is tried first.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::{EngineError, Origin, Row, Segment, Step, StepOutcome};
use crate::error::ReadError;
use crate::plan::draft::DraftChunk;
use crate::plan::failures::{Suspect, Verdict};
use crate::plan::queue::QueuedRow;
use crate::plan::running::{Running, RunningRow};
use crate::plan::scheduler::{SchedulerCore, SchedulerEffect};
use crate::snapshot::{StepFailure, Then};

/// How often an item may fail before it is given up: once in company, once alone.
const ATTEMPTS_MAX: u8 = 2;

impl<S: Segment> SchedulerCore<S> {
    /// What went wrong in a step, and what is done about it.
    pub(super) fn failure_of(
        &mut self,
        running: &Running,
        result: &Result<StepOutcome<S>, EngineError>,
    ) -> Option<StepFailure> {
        let (error, items, then) = match result {
            Ok(outcome) => {
                // A row that was abandoned may end as it likes.
                let failed = running.rows.iter().zip(&outcome.rows);
                let failed = failed.filter(|(row, _)| !row.row.askers.is_empty());
                let mut failed = failed.filter_map(|(row, end)| Some((row, end.as_ref().err()?)));
                let (row, error) = failed.next()?;
                let then =
                    if error.is_outage() { Then::GivenUp } else { then_for(row.row.attempts) };
                (error, 1 + failed.count(), then)
            }
            Err(error) => {
                let items = running.chunks.len() + running.rows.len();
                (error, items, self.then_of(running, error))
            }
        };
        self.last_failure = Some(error.clone());
        Some(StepFailure { error: error.clone(), items, then })
    }

    /// What becomes of the items of a step that failed as a whole.
    fn then_of(&mut self, running: &Running, error: &EngineError) -> Then {
        if matches!(error, EngineError::Dead(_)) || error.is_outage() {
            return Then::GivenUp;
        }
        if matches!(error, EngineError::OutOfMemory(_)) && self.relief.halve(running) {
            return Then::Halved;
        }
        let held = running.chunks.iter().filter_map(|chunk| self.segments.get(chunk.key));
        let rows = running.rows.iter().map(|running| running.row.attempts);
        // What failed before runs alone.
        then_for(held.map(|held| held.attempts).chain(rows).max().unwrap_or(0))
    }

    pub(super) fn fail(&mut self, running: Running, error: &EngineError, then: Then, now: Instant) {
        self.totals.step_failures += u64::from(!error.is_outage());
        let items = Suspect::all_of(&running);
        match then {
            Then::Halved => {}
            Then::Alone => self.failures.failed(items, now),
            // What cannot be reached says nothing of what it was asked.
            Then::GivenUp if error.is_outage() => {}
            Then::GivenUp => {
                for item in &items {
                    self.failures.blamed(item, now);
                }
            }
        }
        for chunk in &running.chunks {
            self.retry_chunk(chunk, then, error);
        }
        for row in running.rows {
            match then {
                Then::Halved => self.queue.put_back(row.group, row.row),
                Then::GivenUp if error.is_outage() => self.fail_row(row.row, error),
                Then::Alone | Then::GivenUp => self.retry_row(row, error),
            }
        }
        if let EngineError::Dead(why) = error {
            self.die(why);
        }
    }

    fn retry_chunk(&mut self, chunk: &DraftChunk, then: Then, error: &EngineError) {
        let Some(held) = self.segments.get_mut(chunk.key) else { return };
        match then {
            Then::Halved => {}
            Then::Alone => held.attempts += 1,
            Then::GivenUp => {
                held.attempts = 0;
                for key in self.groups_on(chunk.key) {
                    self.fail_group(key, &ReadError::Engine(error.clone()));
                }
            }
        }
    }

    /// Lets a row run once more, alone, if it has not had that chance yet.
    pub(super) fn retry_row(&mut self, running: RunningRow, error: &EngineError) {
        let RunningRow { group, mut row } = running;
        row.attempts += 1;
        if row.attempts < ATTEMPTS_MAX {
            self.queue.put_back(group, row);
        } else {
            self.fail_row(row, error);
        }
    }

    pub(super) fn fail_row(&mut self, row: QueuedRow, error: &EngineError) {
        for asker in row.askers {
            self.end(asker.read, asker.place.0, Err(ReadError::Engine(error.clone())));
        }
    }

    /// An item succeeded; if steps failed with it, it was not the reason.
    pub(super) fn clear(&mut self, item: impl FnOnce() -> Suspect) {
        if self.failures.has_suspects() {
            self.failures.cleared(&item());
        }
    }

    /// Looks at the failures so far: gives the engine up, or asks for a probe.
    pub(super) fn judge(&mut self, now: Instant) {
        let Some(last) = &self.last_failure else { return };
        match self.failures.verdict(now) {
            Verdict::Sound => {}
            Verdict::Doubtful(steps) => self.doubt = Some(steps),
            Verdict::Dead(steps) => {
                let window = self.failures.window().as_secs();
                let why = format!(
                    "{steps} steps failed within {window} s though their items succeeded alone, \
                     the last one: {last}"
                );
                self.die(&why);
            }
        }
    }

    /// Runs one token that no request has a part in.
    pub(super) fn start_probe(&mut self, now: Instant) {
        let row = Row {
            origin: Origin::NONE,
            path: Vec::new(),
            suffix: Arc::from([0]),
            labels: Arc::from([0, 1]),
            want_hidden: false,
            want_mass: false,
        };
        let id = self.next_step;
        let step = Step { id, epoch: self.epoch, chunks: Vec::new(), rows: vec![row] };
        self.next_step += 1;
        self.last_progress = now;
        self.running = Some(Running {
            step: id,
            since: now,
            tokens: step.tokens(),
            chunks: Vec::new(),
            rows: Vec::new(),
            served: Vec::new(),
            left: Vec::new(),
            is_registration: false,
            is_probe: true,
        });
        self.effects.push(SchedulerEffect::Run(step));
    }

    /// The probe ended: the engine works, or it is dead.
    pub(super) fn probed(&mut self, result: Result<StepOutcome<S>, EngineError>) {
        let steps = self.doubt.take().unwrap_or(0);
        let row = result.and_then(|outcome| {
            let none = || Err(EngineError::Forward("it gave nothing".to_owned()));
            outcome.rows.into_iter().next().unwrap_or_else(none)
        });
        match row {
            Ok(_) => self.failures.succeeded(),
            // It works as far as anybody can tell; the next failures will have it asked again.
            Err(error) if error.is_outage() => self.failures.succeeded(),
            Err(error) => {
                let why =
                    format!("{steps} steps in a row failed, then a probe of one token: {error}");
                self.die(&why);
            }
        }
    }

    /// Gives the engine up: everything that waits fails.
    pub(super) fn die(&mut self, why: &str) {
        if self.dead.is_none() {
            self.dead = Some(why.to_owned());
            self.fail_waiting(&ReadError::Engine(EngineError::Dead(why.to_owned())));
        }
    }
}

/// What becomes of an item that has failed so often before.
fn then_for(attempts: u8) -> Then {
    if attempts + 1 < ATTEMPTS_MAX { Then::Alone } else { Then::GivenUp }
}
