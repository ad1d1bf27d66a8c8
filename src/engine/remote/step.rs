//! One step, run: its batches at the same time, in each the warming first and then its rows.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actors::{EngineError, Origin, RowOutcome, Step, StepOutcome};
use futures_util::future::join_all;
use tokio::sync::Notify;

use super::fleet::Fleet;
use super::latency::Latency;
use super::plan::{Batch, batches, prompt};
use super::protocol::{Ask, TOP};
use super::reading::{Read, read};
use super::segment::{RemoteSegment, ids_of};
use crate::telemetry::{RemoteCall, remote_aborted};

/// What a step runs on.
pub(super) struct Ground {
    pub(super) fleet: Arc<Fleet>,
    /// Longest prompt.
    pub(super) context_tokens: u32,
    /// Tokens of the model's vocabulary.
    pub(super) vocab: u32,
    /// Bytes that one position takes on a server.
    pub(super) kv_bytes_per_token: u64,
    /// A plain lock, since it is held for a comparison.
    pub(super) latency: Mutex<Latency>,
}

impl Ground {
    fn took(&self, request: Duration) {
        self.latency.lock().unwrap_or_else(PoisonError::into_inner).request(request);
    }

    fn computing(&self, elapsed: Duration) -> Duration {
        self.latency.lock().unwrap_or_else(PoisonError::into_inner).computing(elapsed)
    }
}

/// How one row ended.
enum RowEnd {
    Read(RowOutcome),
    Failed(EngineError),
    /// Nobody waits for it.
    Abandoned,
}

impl RowEnd {
    fn of(end: Result<RowOutcome, EngineError>) -> Self {
        end.map_or_else(Self::Failed, Self::Read)
    }
}

/// Runs a step.
///
/// * `abandoned`: `[rows]`, each rings when nobody waits for its row any more.
///
/// # Errors
/// [`EngineError::Unavailable`] where nothing came of it but that; what fails alone is in the outcome.
pub(super) async fn run(
    ground: &Ground,
    step: &Step<RemoteSegment>,
    abandoned: &[Arc<Notify>],
) -> Result<StepOutcome<RemoteSegment>, EngineError> {
    let started = Instant::now();
    let batches = batches(step).map_err(EngineError::Forward)?;
    let running = batches.iter().map(|batch| run_batch(ground, step, batch, abandoned));
    let ends = join_all(running).await;
    let mut tally = Tally::default();
    let mut rows: Vec<Option<RowEnd>> = step.rows.iter().map(|_| None).collect();
    for BatchEnd { warmed, rows: of_batch } in ends {
        if let Some(end) = warmed {
            tally.count(end.as_ref().err());
        }
        for (number, end) in of_batch {
            match &end {
                RowEnd::Read(_) => tally.count(None),
                RowEnd::Failed(error) => tally.count(Some(error)),
                RowEnd::Abandoned => {}
            }
            rows[number] = Some(end);
        }
    }
    if let Some(outage) = tally.outage() {
        return Err(outage);
    }
    let rows = rows.into_iter().map(ended).collect();
    let elapsed = ground.computing(started.elapsed());
    Ok(StepOutcome { chunks: segments(ground, step), rows, elapsed })
}

fn ended(end: Option<RowEnd>) -> Result<RowOutcome, EngineError> {
    match end {
        Some(RowEnd::Read(outcome)) => Ok(outcome),
        Some(RowEnd::Failed(error)) => Err(error),
        Some(RowEnd::Abandoned) => {
            Err(EngineError::Unavailable("it was given up, since nobody waits for it".to_owned()))
        }
        None => Err(EngineError::Forward("the row was in no batch".to_owned())),
    }
}

/// Whether anything came of a step.
#[derive(Default)]
struct Tally {
    something: bool,
    outage: Option<EngineError>,
}

impl Tally {
    /// Counts a request that ended with this error, or well.
    fn count(&mut self, error: Option<&EngineError>) {
        match error {
            Some(error) if error.is_outage() => {
                self.outage.get_or_insert_with(|| error.clone());
            }
            Some(_) | None => self.something = true,
        }
    }

    fn outage(self) -> Option<EngineError> {
        self.outage.filter(|_| !self.something)
    }
}

/// How a batch ended.
struct BatchEnd {
    /// How its warming ended, if there was one.
    warmed: Option<Result<(), EngineError>>,
    /// Its rows, by number.
    rows: Vec<(usize, RowEnd)>,
}

async fn run_batch(
    ground: &Ground,
    step: &Step<RemoteSegment>,
    batch: &Batch,
    abandoned: &[Arc<Notify>],
) -> BatchEnd {
    let fleet = &ground.fleet;
    let salted = salt_of(batch.origin);
    let salt = salted.as_str();
    let is_held = fleet.holds(batch.origin, batch.prefix_tokens());
    let warmed = if batch.needs_warming(is_held) {
        let ask = Ask {
            model: "",
            ids: &batch.prefix,
            labels: &[],
            salt,
            slot: None,
            top: TOP,
            bias: None,
        };
        let place = (batch.origin, batch.prefix_tokens());
        Some(fleet.ask(RemoteCall::Warm, place, ask).await.map(drop))
    } else {
        None
    };
    // A prefix that could not be warmed is no reason not to read: then each row has it computed.
    let rows = batch.rows.iter().map(|number| async move {
        let reading = run_row(ground, step, (*number, batch), salt);
        let end = match abandoned.get(*number) {
            Some(abandoned) => unless(abandoned, reading).await,
            None => RowEnd::of(reading.await),
        };
        (*number, end)
    });
    BatchEnd { warmed, rows: join_all(rows).await }
}

/// The end of a reading, which is dropped, and with it its request, when nobody waits for it.
async fn unless(
    abandoned: &Notify,
    reading: impl Future<Output = Result<RowOutcome, EngineError>>,
) -> RowEnd {
    tokio::select! {
        biased;
        () = abandoned.notified() => {
            remote_aborted();
            RowEnd::Abandoned
        }
        end = reading => RowEnd::of(end),
    }
}

async fn run_row(
    ground: &Ground,
    step: &Step<RemoteSegment>,
    (number, batch): (usize, &Batch),
    salt: &str,
) -> Result<RowOutcome, EngineError> {
    let foreign =
        || EngineError::Forward("a path names a chunk that is not of this step".to_owned());
    let ids = prompt(step, number).ok_or_else(foreign)?;
    let row = &step.rows[number];
    if ids.len() > ground.context_tokens as usize {
        let (tokens, most) = (ids.len(), ground.context_tokens);
        let message = format!("the prompt is {tokens} tokens, at most {most} fit");
        return Err(EngineError::Forward(message));
    }
    let prefix_tokens = batch.prefix_tokens();
    let (labels, vocab, began) = (&*row.labels, ground.vocab, Instant::now());
    let read_of = Read { origin: row.origin, ids: &ids, prefix_tokens, labels, salt, vocab };
    let outcome = read(&ground.fleet, read_of).await?;
    ground.took(began.elapsed());
    Ok(outcome)
}

/// What a server's cache is salted with: nothing for what belongs to no request.
fn salt_of(origin: Origin) -> String {
    if origin == Origin::NONE {
        return String::new();
    }
    origin.salt.0.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What is remembered of the chunks.
fn segments(ground: &Ground, step: &Step<RemoteSegment>) -> Vec<RemoteSegment> {
    let segment = |chunk: &actors::Chunk<RemoteSegment>| {
        let before = ids_of(step, &chunk.path).map_or(0, |ids| ids.len());
        let start = u32::try_from(before).unwrap_or(u32::MAX);
        RemoteSegment::new(Arc::clone(&chunk.tokens), start, ground.kv_bytes_per_token)
    };
    step.chunks.iter().map(segment).collect()
}
