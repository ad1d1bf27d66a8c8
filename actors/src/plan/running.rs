//! The step that runs: what was put into it, and for whom.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::{Chunk, Origin, PathPart, Row, Segment, Step};
use crate::plan::DecisionId;
use crate::plan::draft::{Draft, DraftChunk};
use crate::plan::path::PathSegment;
use crate::plan::queue::{Asker, QueuedRow};
use crate::plan::scheduler::{SchedulerCore, SchedulerEffect};
use crate::plan::segments::Segments;
use crate::read::{Lane, SegmentKey, TenantId};

/// A row of the running step.
#[derive(Debug)]
pub(crate) struct RunningRow {
    pub(crate) group: SegmentKey,
    pub(crate) row: QueuedRow,
}

/// The running step.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) step: u64,
    pub(crate) since: Instant,
    pub(crate) tokens: u32,
    pub(crate) chunks: Vec<DraftChunk>,
    pub(crate) rows: Vec<RunningRow>,
    /// Who is served how many of its tokens; one entry a chunk and tenant, and a row.
    pub(crate) served: Vec<(TenantId, u32)>,
    /// Whose reads were taken out while it ran; one entry a read.
    pub(crate) left: Vec<TenantId>,
    /// Whether it computes a state for a registration.
    pub(crate) is_registration: bool,
    /// Whether it only tells whether the engine works.
    pub(crate) is_probe: bool,
}

impl Running {
    /// Takes the reads of a decision out. The rows run on; returned too are the numbers of those for
    /// which nobody waits any more.
    pub(crate) fn take_decision(&mut self, decision: DecisionId) -> (Vec<Asker>, Vec<usize>) {
        let is_theirs = |asker: &mut Asker| asker.read.decision == decision;
        let (mut askers, mut abandoned) = (Vec::new(), Vec::new());
        for (number, running) in self.rows.iter_mut().enumerate() {
            let before = askers.len();
            askers.extend(running.row.askers.extract_if(.., is_theirs));
            if askers.len() > before && running.row.askers.is_empty() {
                abandoned.push(number);
            }
        }
        self.left.extend(askers.iter().map(|asker| asker.tenant.clone()));
        (askers, abandoned)
    }

    pub(crate) fn reads(&self) -> usize {
        self.rows.iter().map(|running| running.row.askers.len()).sum()
    }

    /// Its tokens, by the lane in which they were taken.
    pub(crate) fn tokens_by_lane(&self) -> [u64; 4] {
        let mut tokens = [0; 4];
        for chunk in &self.chunks {
            tokens[chunk.lane as usize] += u64::from(chunk.tokens);
        }
        for row in self.rows.iter().map(|running| &running.row) {
            // A row whose askers have all left runs on, for nobody.
            let lane = row.place().map_or(Lane::Idle, |place| place.0);
            tokens[lane as usize] += u64::from(row.tokens());
        }
        tokens
    }

    /// Whether it has one item only.
    pub(crate) fn is_alone(&self) -> bool {
        self.chunks.len() + self.rows.len() == 1
    }
}

impl<S: Segment> SchedulerCore<S> {
    /// Starts the step that was drafted.
    pub(super) fn start(&mut self, draft: Draft, now: Instant) {
        let is_registration = draft.chunks.iter().any(|chunk| chunk.is_registration);
        let served = self.charge(&draft);
        let chunks = self.start_chunks(&draft.chunks, now);
        let (mut rows, mut running_rows) = (Vec::new(), Vec::new());
        for (key, place) in draft.rows {
            let Some(mut row) = self.queue.take(key, place) else { continue };
            let Some(group) = self.queue.group_mut(key) else { continue };
            for asker in &mut row.askers {
                asker.is_ready(now, group.state_time);
            }
            group.in_step += 1;
            let path = path_before(&group.path, None, &self.segments, &draft.chunks);
            rows.push(row_of(origin_of(key, &group.path), path, &row));
            running_rows.push(RunningRow { group: key, row });
        }
        let step = Step { id: self.next_step, epoch: self.epoch, chunks, rows };
        self.next_step += 1;
        self.last_progress = now;
        let running = Running {
            step: step.id,
            since: now,
            tokens: step.tokens(),
            chunks: draft.chunks,
            rows: running_rows,
            served,
            left: Vec::new(),
            is_registration,
            is_probe: false,
        };
        self.note_touched(&running);
        self.running = Some(running);
        self.effects.push(SchedulerEffect::Run(step));
    }

    fn start_chunks(&mut self, chunks: &[DraftChunk], now: Instant) -> Vec<Chunk<S>> {
        let mut made = Vec::new();
        for chunk in chunks {
            self.mark_started(chunk.key, now);
            let Some(group) = self.queue.group_mut(chunk.group) else { continue };
            group.in_step += 1;
            let first =
                group.want.as_mut().filter(|want| !want.started).map(|want| want.started = true);
            if first.is_some() {
                self.effects.push(SchedulerEffect::WantStarted { key: chunk.group });
            }
            let path = path_before(&group.path, Some(chunk.key), &self.segments, chunks);
            let origin = origin_of(chunk.group, &group.path);
            let Some(held) = self.segments.get_mut(chunk.key) else { continue };
            held.in_step = true;
            let range = chunk.from as usize..(chunk.from + chunk.tokens) as usize;
            let whole = range.len() == held.tokens.len();
            let tokens =
                if whole { Arc::clone(&held.tokens) } else { Arc::from(&held.tokens[range]) };
            made.push(Chunk { origin, path, tokens });
        }
        made
    }

    /// Work on every read that waits for `segment` begins now, unless it has begun.
    fn mark_started(&mut self, segment: SegmentKey, now: Instant) {
        for key in self.groups_on(segment) {
            let Some(group) = self.queue.group_mut(key) else { continue };
            for asker in group.rows.values_mut().flat_map(|row| &mut row.askers) {
                asker.started.get_or_insert(now);
            }
        }
    }
}

/// What lies before a chunk of `until`, or with `None` before a suffix: parts that are held, and
/// chunks of this step.
fn path_before<S: Segment>(
    path: &[PathSegment],
    until: Option<SegmentKey>,
    segments: &Segments<S>,
    chunks: &[DraftChunk],
) -> Vec<PathPart<S>> {
    let mut parts = Vec::new();
    for segment in path {
        let held = segments.get(segment.key).map(|held| held.parts.as_slice()).unwrap_or_default();
        parts.extend(held.iter().cloned().map(PathPart::Segment));
        if until == Some(segment.key) {
            return parts;
        }
        let chunk = chunks.iter().position(|chunk| chunk.key == segment.key);
        parts.extend(chunk.map(PathPart::Chunk));
    }
    parts
}

/// Whose the items of a group are.
fn origin_of(state: SegmentKey, path: &[PathSegment]) -> Origin {
    Origin { state, salt: path.last().map_or(state, |segment| segment.blocks.root()) }
}

fn row_of<S>(origin: Origin, path: Vec<PathPart<S>>, row: &QueuedRow) -> Row<S> {
    Row {
        origin,
        path,
        suffix: Arc::clone(&row.spec.suffix),
        labels: Arc::clone(&row.spec.labels),
        want_hidden: row.spec.want_hidden,
        want_mass: row.spec.want_mass,
    }
}
