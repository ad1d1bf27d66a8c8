//! What a step gave: segments to the cache, outcomes to their reads.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::engine::{EngineError, Epoch, RowOutcome, Segment, StepOutcome};
use crate::plan::draft::DraftChunk;
use crate::plan::failures::Suspect;
use crate::plan::path::PathSegment;
use crate::plan::queue::{Asker, Group, Lease, QueuedRow};
use crate::plan::residency::Computed;
use crate::plan::running::{Running, RunningRow};
use crate::plan::scheduler::{SchedulerCore, SchedulerEffect};
use crate::plan::{DecisionId, ReadId};
use crate::read::{ReadOutcome, ReadTiming, SegmentKey};
use crate::snapshot::{ChunkLogEntry, StepLogEntry, Then};

impl<S: Segment> SchedulerCore<S> {
    /// The engine is done with a step; an answer to any other step than the running one is void.
    pub(super) fn done(
        &mut self,
        step: u64,
        epoch: Epoch,
        result: Result<StepOutcome<S>, EngineError>,
        now: Instant,
    ) {
        let is_current = self.running.as_ref().is_some_and(|running| running.step == step);
        if epoch != self.epoch || !is_current {
            return;
        }
        let Some(running) = self.running.take() else { return };
        self.steps += 1;
        self.last_progress = now;
        if running.is_probe {
            self.probed(result);
            return;
        }
        self.leave_step(&running);
        let result = result.and_then(|outcome| check_shape(&running, outcome));
        let failure = self.failure_of(&running, &result);
        let (then, succeeded) = (failure.as_ref().map(|failure| failure.then), result.is_ok());
        let entry = StepLogEntry { succeeded, failure, ..log_entry(&running, epoch, now) };
        self.effects.push(SchedulerEffect::Log(entry));
        let groups: Vec<_> = groups_of(&running).collect();
        match result {
            Ok(outcome) => self.succeed(running, outcome, now),
            Err(error) => self.fail(running, &error, then.unwrap_or(Then::GivenUp), now),
        }
        self.judge(now);
        for key in groups {
            self.release_if_unused(key);
        }
    }

    fn leave_step(&mut self, running: &Running) {
        for key in groups_of(running) {
            if let Some(group) = self.queue.group_mut(key) {
                group.in_step -= 1;
            }
        }
        for chunk in &running.chunks {
            if let Some(held) = self.segments.get_mut(chunk.key) {
                held.in_step = false;
            }
        }
    }

    fn succeed(&mut self, running: Running, outcome: StepOutcome<S>, now: Instant) {
        let is_outage =
            |end: &Result<RowOutcome, EngineError>| matches!(end, Err(e) if e.is_outage());
        if outcome.rows.is_empty() || outcome.rows.iter().any(Result::is_ok) {
            self.failures.succeeded();
        } else if !outcome.rows.iter().all(is_outage) {
            self.failures.gave_nothing(now);
        }
        self.relief.succeeded(self.limits);
        let elapsed = match outcome.elapsed {
            zero if zero.is_zero() => now.saturating_duration_since(running.since),
            elapsed => elapsed,
        };
        // What could not be reached, or was given up, took no time that says anything of tokens.
        if !outcome.rows.iter().any(is_outage) {
            self.pace.step(running.tokens, elapsed);
        }
        self.shares.step(running.tokens_by_lane(), elapsed, now);
        self.totals.computed_tokens += u64::from(self.computed(&running));
        self.account_step(&running);
        let mut sharers = Vec::new();
        for (chunk, segment) in running.chunks.iter().zip(outcome.chunks) {
            sharers.extend(self.take_chunk(chunk, segment));
        }
        self.count_state_time(&running, elapsed);
        let advanced = running.chunks.iter().map(|chunk| chunk.key).chain(sharers.iter().copied());
        for segment in advanced {
            for key in self.groups_on(segment) {
                let group = self.queue.group(key);
                let missing = group.map_or(0, |group| self.segments.remaining(&group.path));
                self.queue.set_missing(key, missing);
                self.settle_resident(key, now, true);
            }
        }
        let at = Ran { step: running.step, since: running.since, now };
        for (row, outcome) in running.rows.into_iter().zip(outcome.rows) {
            self.settle_row(row, outcome, at);
        }
        // What another state computed may have ended a want that was not in this step.
        for key in sharers.into_iter().flat_map(|sharer| self.groups_on(sharer)).collect::<Vec<_>>()
        {
            self.release_if_unused(key);
        }
    }

    /// Adds a step's time to each group that had a chunk in it, once.
    fn count_state_time(&mut self, running: &Running, elapsed: Duration) {
        let segments = running.chunks.iter().map(|chunk| chunk.key);
        let groups: BTreeSet<_> = segments.flat_map(|segment| self.groups_on(segment)).collect();
        for key in groups {
            if let Some(group) = self.queue.group_mut(key) {
                group.state_time += elapsed;
            }
        }
    }

    /// Tokens that the engine ran in a step.
    fn computed(&self, running: &Running) -> u32 {
        if self.keeps_segments {
            return running.tokens;
        }
        let prompt = |running: &RunningRow| {
            let path = self.queue.group(running.group).map(|group| group.path.as_slice());
            let prefix: u32 = path.unwrap_or_default().iter().map(PathSegment::len).sum();
            prefix + running.row.tokens()
        };
        running.rows.iter().map(prompt).sum()
    }

    /// Takes in a chunk; returns the other segments that have its blocks in common.
    fn take_chunk(&mut self, chunk: &DraftChunk, segment: S) -> Vec<SegmentKey> {
        match chunk.charged {
            _ if !self.keeps_segments => {}
            Some(read) => *self.charges.entry(read).or_insert(0) += chunk.tokens,
            None => self.charge_want(chunk),
        }
        self.clear(|| Suspect::Chunk(chunk.key));
        let sharers = self.segments.computed(chunk.key, segment.clone());
        self.commit((chunk.key, chunk.from), segment, false);
        self.commit_adopted();
        sharers
    }

    /// A chunk was computed because of a want.
    fn charge_want(&mut self, chunk: &DraftChunk) {
        self.totals.want_tokens += u64::from(chunk.tokens);
        let group = self.queue.group_mut(chunk.group);
        if let Some(want) = group.and_then(|group| group.want.as_mut()) {
            want.computed += chunk.tokens;
        }
    }

    fn commit(&mut self, (key, from): (SegmentKey, u32), segment: S, is_adopted: bool) {
        let computed = Computed { key, from, segment, is_adopted, epoch: self.epoch };
        self.effects.push(SchedulerEffect::Commit(computed));
    }

    /// Tells the cache what segments have taken over from each other.
    fn commit_adopted(&mut self) {
        for adopted in self.segments.take_adopted() {
            self.commit((adopted.key, adopted.from), adopted.segment, true);
        }
    }

    /// If the state of a group is resident: ends its want and, when it was computed just now, notes
    /// that its reads are ready.
    pub(super) fn settle_resident(&mut self, key: SegmentKey, now: Instant, was_computed: bool) {
        self.commit_adopted();
        let Some(group) = self.queue.group_mut(key) else { return };
        if self.segments.remaining(&group.path) > 0 {
            return;
        }
        if was_computed {
            let state_time = group.state_time;
            for asker in group.rows.values_mut().flat_map(|row| &mut row.askers) {
                asker.is_ready(now, state_time);
            }
        }
        self.end_want(key, Ok(()));
    }

    /// Leased groups whose path has `segment`: one for a state, any number for a head.
    pub(super) fn groups_on(&self, segment: SegmentKey) -> Vec<SegmentKey> {
        if self.queue.group(segment).is_some_and(|group| group.lease == Lease::Granted) {
            return vec![segment];
        }
        let on = |group: &Group| group.path.iter().any(|part| part.key == segment);
        self.queue.leased().filter(|(_, group)| on(group)).map(|(key, _)| key).collect()
    }

    fn settle_row(
        &mut self,
        running: RunningRow,
        result: Result<RowOutcome, EngineError>,
        at: Ran,
    ) {
        match result {
            Ok(outcome) => {
                self.clear(|| Suspect::row(&running));
                self.answer(running.row, &outcome, at);
            }
            Err(EngineError::Dead(why)) => {
                self.fail_row(running.row, &EngineError::Dead(why.clone()));
                self.die(&why);
            }
            Err(error @ EngineError::Unavailable(_)) => self.fail_row(running.row, &error),
            Err(
                error @ (EngineError::NonFinite
                | EngineError::Forward(_)
                | EngineError::Panic(_)
                | EngineError::OutOfMemory(_)),
            ) => self.retry_row(running, &error),
        }
    }

    fn answer(&mut self, row: QueuedRow, outcome: &RowOutcome, at: Ran) {
        let suffix = row.tokens();
        for (rank, asker) in row.askers.into_iter().enumerate() {
            let charged = self.charges.remove(&asker.read).unwrap_or(0);
            self.count_lookup(asker.read.decision, charged);
            let prefix = self.decisions.get(&asker.read.decision);
            let prompt = prefix.map_or(0, |decision| decision.prefix_tokens) + suffix;
            if let Some(held) = prefix.and_then(|decision| self.segments.get_mut(decision.key)) {
                held.note_served(asker.read.decision, asker.place.0);
            }
            let computed_tokens = match (self.keeps_segments, rank) {
                (true, 0) => charged + suffix,
                (true, _) => charged,
                (false, 0) => prompt,
                (false, _) => 0,
            };
            let outcome = ReadOutcome {
                row: outcome.clone(),
                timing: timing(&asker, at),
                computed_tokens,
                cached_tokens: prompt.saturating_sub(computed_tokens),
            };
            self.account_read(&asker.tenant, outcome.cached_tokens);
            self.end(asker.read, asker.place.0, Ok(outcome));
        }
    }

    /// Counts what a decision found of its prefix, when its first read is answered; `charged` was
    /// computed on that read's account.
    fn count_lookup(&mut self, decision: DecisionId, charged: u32) {
        let Some(entry) = self.decisions.get_mut(&decision) else { return };
        let Some(missing) = entry.missing.take() else { return };
        let reads = ReadId { decision, index: 0 }..=ReadId { decision, index: u32::MAX };
        let others: u32 = self.charges.range(reads).map(|(_, tokens)| tokens).sum();
        let (tokens, charged) = (entry.prefix_tokens, charged + others);
        // An engine that keeps nothing computes all of it for each read.
        let (missing, charged) =
            if self.keeps_segments { (missing, charged) } else { (tokens, tokens) };
        self.counts.looked_up(tokens, missing, charged);
    }
}

/// The groups of a step's items, once for each item.
fn groups_of(running: &Running) -> impl Iterator<Item = SegmentKey> {
    let chunks = running.chunks.iter().map(|chunk| chunk.group);
    chunks.chain(running.rows.iter().map(|row| row.group))
}

fn check_shape<S: Segment>(
    running: &Running,
    outcome: StepOutcome<S>,
) -> Result<StepOutcome<S>, EngineError> {
    let lengths = outcome.chunks.iter().map(Segment::tokens);
    let fits = lengths.eq(running.chunks.iter().map(|chunk| chunk.tokens))
        && outcome.rows.len() == running.rows.len();
    if fits {
        Ok(outcome)
    } else {
        Err(EngineError::Forward("the outcome does not have the step's shape".to_owned()))
    }
}

/// A step that has run.
#[derive(Clone, Copy)]
struct Ran {
    step: u64,
    since: Instant,
    now: Instant,
}

fn timing(asker: &Asker, Ran { step, since, now }: Ran) -> ReadTiming {
    let started = asker.started.unwrap_or(since);
    let ready = asker.ready.unwrap_or(since);
    let state_wait = ready.saturating_duration_since(started);
    ReadTiming {
        queue_wait: started.saturating_duration_since(asker.admitted),
        state_wait,
        state_time: asker.state_time.min(state_wait),
        engine_wait: since.saturating_duration_since(ready),
        engine_time: now.saturating_duration_since(since),
        step,
        behind_registration: asker.behind_registration,
    }
}

/// The entry of a step that went well.
fn log_entry(running: &Running, epoch: Epoch, now: Instant) -> StepLogEntry {
    let reads = |running: &RunningRow| {
        running.row.askers.iter().map(|asker| asker.read).collect::<Vec<_>>()
    };
    let mut states: Vec<_> = groups_of(running).collect();
    states.sort_unstable();
    states.dedup();
    let chunk = |chunk: &DraftChunk| ChunkLogEntry {
        key: chunk.key,
        from: chunk.from,
        tokens: chunk.tokens,
        lane: chunk.lane,
    };
    StepLogEntry {
        step: running.step,
        epoch,
        rows: running.rows.iter().map(reads).collect(),
        chunks: running.chunks.iter().map(chunk).collect(),
        tokens: running.tokens,
        states: states.len(),
        elapsed: now.saturating_duration_since(running.since),
        succeeded: true,
        failure: None,
    }
}
