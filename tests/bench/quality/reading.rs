//! Reading a case: its state once and all orders of its question, straight through the engine.
//!
//! No actors and no HTTP: the bench wants each order's own reading, and nothing waits for it.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use actors::{
    Chunk, Completion, Engine, EngineError, Origin, PathPart, Prefix, ReadSpec, Row, RowOutcome,
    Segment, Step, StepOutcome,
};

/// What all orders of one case gave and cost.
#[derive(Debug)]
pub(crate) struct CaseReading {
    /// One a read, in the order asked.
    pub(crate) rows: Vec<RowOutcome>,
    /// Tokens computed.
    pub(crate) tokens: u32,
    /// Time of the engine.
    pub(crate) elapsed: Duration,
}

/// Reads cases one after the other; keeps the head.
#[derive(Debug)]
pub(crate) struct Reader<'a, E: Engine> {
    engine: &'a E,
    head: Vec<E::Segment>,
    steps: u64,
    tokens: u32,
    elapsed: Duration,
}

impl<'a, E: Engine> Reader<'a, E> {
    /// Makes a reader whose head is not computed yet.
    pub(crate) fn new(engine: &'a E) -> Self {
        Self { engine, head: Vec::new(), steps: 0, tokens: 0, elapsed: Duration::ZERO }
    }

    /// Reads all of `reads` after `prefix`; its head must be the same at each call.
    ///
    /// # Errors
    /// What the engine says.
    pub(crate) fn read(
        &mut self,
        prefix: &Prefix,
        reads: &[ReadSpec],
    ) -> Result<CaseReading, EngineError> {
        if self.head.is_empty() && !prefix.head.tokens.is_empty() {
            self.head = self.segments(&[], &prefix.head.tokens)?;
        }
        (self.tokens, self.elapsed) = (0, Duration::ZERO);
        let head = self.head.clone();
        let rows = if self.fits_one_step(prefix, reads) {
            self.read_at_once(&head, &prefix.state.tokens, reads)?
        } else {
            let state = self.segments(&head, &prefix.state.tokens)?;
            self.read_in_groups(&[head, state].concat(), reads)?
        };
        Ok(CaseReading { rows, tokens: self.tokens, elapsed: self.elapsed })
    }

    fn fits_one_step(&self, prefix: &Prefix, reads: &[ReadSpec]) -> bool {
        let caps = self.engine.caps();
        let tokens =
            prefix.state.tokens.len() + reads.iter().map(|read| read.suffix.len()).sum::<usize>();
        tokens <= caps.step_tokens_max as usize && reads.len() <= caps.rows_max as usize
    }

    fn read_at_once(
        &mut self,
        head: &[E::Segment],
        state: &Arc<[u32]>,
        reads: &[ReadSpec],
    ) -> Result<Vec<RowOutcome>, EngineError> {
        let before = path(head);
        let behind = [before.clone(), vec![PathPart::Chunk(0)]].concat();
        let chunk = Chunk { origin: Origin::NONE, path: before, tokens: Arc::clone(state) };
        let outcome = self.step(vec![chunk], rows(&behind, reads))?;
        outcome.rows.into_iter().collect()
    }

    fn read_in_groups(
        &mut self,
        prefix: &[E::Segment],
        reads: &[ReadSpec],
    ) -> Result<Vec<RowOutcome>, EngineError> {
        let mut outcomes = Vec::new();
        for read in reads {
            let outcome = self.step(Vec::new(), rows(&path(prefix), std::slice::from_ref(read)))?;
            outcomes.extend(outcome.rows.into_iter().collect::<Result<Vec<_>, _>>()?);
        }
        Ok(outcomes)
    }

    /// Computes `tokens` after `before`, in chunks that a step can hold.
    fn segments(
        &mut self,
        before: &[E::Segment],
        tokens: &Arc<[u32]>,
    ) -> Result<Vec<E::Segment>, EngineError> {
        let most = self.engine.caps().step_tokens_max.max(1) as usize;
        let mut made: Vec<E::Segment> = Vec::new();
        for part in tokens.chunks(most) {
            let path = path(&[before, &made].concat());
            let chunk = Chunk { origin: Origin::NONE, path, tokens: part.into() };
            let outcome = self.step(vec![chunk], Vec::new())?;
            made.extend(outcome.chunks);
        }
        Ok(made)
    }

    fn step(
        &mut self,
        chunks: Vec<Chunk<E::Segment>>,
        rows: Vec<Row<E::Segment>>,
    ) -> Result<StepOutcome<E::Segment>, EngineError> {
        self.steps += 1;
        let step = Step { id: self.steps, epoch: 0, chunks, rows };
        self.tokens += step.tokens();
        let (sender, receiver) = mpsc::sync_channel(1);
        // The receiver waits right below, so that sending cannot fail.
        let report = move |outcome| drop(sender.send(outcome));
        self.engine.submit(step, Completion::new(report));
        let outcome = receiver.recv().map_err(|error| EngineError::Dead(error.to_string()))??;
        self.elapsed += outcome.elapsed;
        Ok(outcome)
    }
}

fn path<S: Segment>(segments: &[S]) -> Vec<PathPart<S>> {
    segments.iter().cloned().map(PathPart::Segment).collect()
}

fn rows<S: Segment>(path: &[PathPart<S>], reads: &[ReadSpec]) -> Vec<Row<S>> {
    let row = |read: &ReadSpec| Row {
        path: path.to_vec(),
        suffix: Arc::clone(&read.suffix),
        labels: Arc::clone(&read.labels),
        want_hidden: false,
        want_mass: false,
        origin: Origin::NONE,
    };
    reads.iter().map(row).collect()
}
