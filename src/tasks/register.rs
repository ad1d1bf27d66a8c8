//! Registering: examples are read like any decisions, in the batch lane, then fitted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actors::{Lane, ReadError, TenantId};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};

use super::apply::{append, best, distribution, top};
use super::desk::{Desk, Refused};
use super::fit::certify;
use super::fit::{abstention, folds, head};
use super::fitted::{Scored, fitted, stage};
use super::order::{
    AbstainOption, AbstentionOrder, CertifyOrder, Example, Match, TaskOrder, question,
};
use super::record::{ABSTENTION, AbstentionTask, Fitted, Task};
use crate::error::{DecideError, Problem};
use crate::prompt::identity;
use crate::prompt::layout::PerKind;
use crate::question::answer::Answer;
use crate::question::{Decision, Kind, Manner, Question};

/// Examples that are read at one time: enough to fill steps, and few enough to leave room.
const READ_AT_ONCE: usize = 8;

/// Longest time of a registration; examples that are refused for want of room are asked again.
pub(super) const REGISTRATION_MAX: Duration = Duration::from_hours(1);

/// Seed of folds and of what is held out.
const SEED: u64 = 0;

/// Least log-probability that is recorded of an option.
const LOG_P_MIN: f64 = -700.0;

/// What reads examples.
pub trait Reader: Send + Sync {
    /// Reads a decision, its tasks applied where it says so, abstention never.
    fn read(
        &self,
        tenant: TenantId,
        decision: Decision,
    ) -> BoxFuture<'_, Result<Vec<Answer>, DecideError>>;

    /// Temperatures in a manner.
    fn temperatures(&self, manner: Manner) -> PerKind<f64>;

    /// Most options of a question that is read in one list.
    fn labels_max(&self, manner: Manner, kind: &Kind) -> usize;
}

/// How far a registration is.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicUsize,
}

impl Progress {
    /// Examples that have been read.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }
}

/// Registers a task and gives its record.
///
/// # Errors
/// [`DecideError`] of an example, of the fit, or where the tenant has too many tasks.
pub async fn task(
    (desk, reader): (&Desk, &dyn Reader),
    tenant: TenantId,
    order: TaskOrder,
    progress: &Progress,
) -> Result<Value, DecideError> {
    // What others make of it while its examples are read is not undone.
    let base = desk.base().await.map_err(refused)?;
    let first = &order.examples[0];
    let (manner, kind) = (first.decision.manner, question(first).kind.clone());
    let (options, labels_max) = (kind.options(), reader.labels_max(manner, &kind));
    if options > labels_max {
        let message = format!(
            "the question has {options} options, and a task's has at most as many as the model has \
             labels, {labels_max}"
        );
        return Err(DecideError::Unsupported(message));
    }
    let rendering = desk.rendering(manner).clone();
    let task_key = identity::task_key(&rendering.layout, question(first));
    let (fitted_to, certified_by) = split(order.examples, order.certify.as_ref());
    let scored = scores(reader, &tenant, fitted_to, progress).await?;
    let held = scores(reader, &tenant, certified_by, progress).await?;
    let temperature = reader.temperatures(manner).of(&kind);
    let (id, certify) = (order.id, order.certify);
    let examples_min = certify.as_ref().and_then(|order| order.examples_min).unwrap_or(0);
    let fit = move || fitted(&scored, &held, manner, temperature, certify.as_ref());
    let fit = alone(fit).await?;
    let fit = fit.map_err(|malformed| internal(&malformed.to_string()))?;
    let record = Task::of(&Fitted {
        id: &id,
        kind: kind.name(),
        task_key: &task_key,
        fingerprint: &rendering.fingerprint,
        keys: &keys(&kind),
        stage: stage(manner),
        calibration: &fit.calibration,
        head: fit.head.as_ref(),
        certificate: fit.certificate.as_ref(),
        examples_min,
        counts: &fit.counts,
        confidences: &fit.confidences,
        created_at: now(),
    });
    let task = record.map_err(|why| internal(&why))?;
    let shown = task.shown(false);
    desk.keep_based(&tenant, task, base).await.map_err(refused)?;
    Ok(shown)
}

/// Registers an abstention task and gives its record.
///
/// # Errors
/// As [`task`].
pub async fn abstaining(
    (desk, reader): (&Desk, &dyn Reader),
    tenant: TenantId,
    order: AbstentionOrder,
    progress: &Progress,
) -> Result<Value, DecideError> {
    let base = desk.base().await.map_err(refused)?;
    let manner = order.examples[0].decision.manner;
    let temperature = reader.temperatures(manner);
    let option = order.option.clone();
    let kind = question(&order.examples[0]).kind.clone();
    let one =
        |example: Example| evidence(reader, &tenant, (example, &option, &temperature), progress);
    let seen: Vec<Seen> =
        stream::iter(order.examples).map(one).buffered(READ_AT_ONCE).try_collect().await?;
    let column = |of: fn(&Seen) -> bool| seen.iter().map(of).collect::<Vec<bool>>();
    let found = abstention::fit(&abstention::Evidence {
        p_abs: &seen.iter().map(|seen| seen.p_abs).collect::<Vec<f64>>(),
        unanswerable: &column(|seen| seen.unanswerable),
        answer_ok: &column(|seen| seen.answer_ok),
        plain_right: &column(|seen| seen.plain_right),
        plain_false: &column(|seen| seen.plain_false),
    });
    let found = found.map_err(|malformed| internal(&malformed.to_string()))?;
    let rendering = desk.rendering(manner);
    let identity = match order.matches {
        Match::OptionSet => identity::option_set(&rendering.layout, &kind),
        Match::OptionKeys => identity::option_keys(&kind),
        Match::ImajevExtension => String::new(),
    };
    let record = json!({
        "format": ABSTENTION[0],
        "id": order.id,
        "option": match &order.option {
            AbstainOption::Key(key) => json!({"key": key}),
            AbstainOption::Append(text) => json!({"append": text}),
        },
        "match": order.matches.as_str(),
        "identity": identity,
        "fingerprint": rendering.fingerprint,
        "n": found.n,
        "n_unanswerable": found.n_unanswerable,
        "applied": found.applied,
        "threshold": found.threshold,
        "fitted_threshold": found.fitted_threshold,
        "loo_right_threshold": found.loo_right,
        "loo_false_threshold": found.loo_false,
        "right_plain": found.right_plain,
        "false_plain": found.false_plain,
        "reason": found.reason.to_string(),
        "created_at": now(),
    });
    let task = AbstentionTask::read(&record).map_err(|why| internal(&why))?;
    desk.keep_abstention_based(&tenant, task, base).await.map_err(refused)?;
    Ok(record)
}

/// Runs `work` on a thread of its own, one at a time: a fit may take many seconds, and goes on where
/// nobody waits for it any more.
async fn alone<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, DecideError> {
    static TURN: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(1)));
    // The semaphore is never closed.
    let turn = Arc::clone(&TURN).acquire_owned().await;
    let (done, result) = oneshot::channel();
    let work = move || {
        // The receiver is gone where nobody waits for the fit any more.
        let _ = done.send(work());
        drop(turn);
    };
    let thread = std::thread::Builder::new().name("fit".to_owned()).spawn(work);
    thread.map_err(|error| internal(&format!("no thread for a fit: {error}")))?;
    result.await.map_err(|_| internal("a fit panicked"))
}

/// What one example says of an option for not knowing.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of the fit, one a field")]
struct Seen {
    p_abs: f64,
    unanswerable: bool,
    answer_ok: bool,
    plain_right: bool,
    plain_false: bool,
}

async fn evidence(
    reader: &dyn Reader,
    tenant: &TenantId,
    (example, option, temperature): (Example, &AbstainOption, &PerKind<f64>),
    progress: &Progress,
) -> Result<Seen, DecideError> {
    let gold = example.gold;
    let asked = question(&example).clone();
    let plain = read(reader, tenant, with(&example.decision, asked.clone(), true)).await?;
    let mut offered = asked.clone();
    let (answer, option_at) = match option {
        AbstainOption::Key(key) => {
            let at = keys(&asked.kind).iter().position(|known| known == key).unwrap_or(0);
            (plain.clone(), at)
        }
        AbstainOption::Append(text) => {
            append(&mut offered, text, temperature).ok_or_else(|| {
                let message = "an option is appended to nouls and choices only";
                DecideError::Unsupported(message.to_owned())
            })?;
            let answer =
                read(reader, tenant, with(&example.decision, offered.clone(), true)).await?;
            (answer, offered.kind.options() - 1)
        }
    };
    progress.done.fetch_add(1, Ordering::Relaxed);
    let (shown_keys, p) = (keys_of(&offered.kind), distribution(&answer.value));
    let other = best(&shown_keys, &p, Some(option_at));
    // A noul is shown as yes, no where an option is appended to it.
    let is_noul = matches!(asked.kind, Kind::Noul { .. });
    let gold_shown = gold.map(|gold| if is_noul { 1 - gold } else { gold });
    let plain_top = top(&plain.value).map(|(at, _)| at);
    let declared = matches!(option, AbstainOption::Key(_));
    let plain_abstains = declared && plain_top == Some(option_at);
    let unanswerable = gold.is_none() || declared && gold == Some(option_at);
    Ok(Seen {
        p_abs: p[option_at],
        unanswerable,
        answer_ok: gold_shown == Some(other),
        plain_right: if unanswerable { plain_abstains } else { plain_top == gold },
        plain_false: plain_abstains && !unanswerable,
    })
}

async fn scores(
    reader: &dyn Reader,
    tenant: &TenantId,
    examples: Vec<Example>,
    progress: &Progress,
) -> Result<Vec<Scored>, DecideError> {
    let one = |example: Example| async move {
        let mut asked = question(&example).clone();
        asked.wants_hidden = asked.kind.options() >= head::OPTIONS_MIN;
        let answer = read(reader, tenant, with(&example.decision, asked, false)).await?;
        progress.done.fetch_add(1, Ordering::Relaxed);
        let log_p = answer.raw.iter().map(|p| p.ln().max(LOG_P_MIN)).collect();
        Ok::<_, DecideError>(Scored {
            log_p,
            hidden: answer.hidden,
            gold: example.gold.unwrap_or_default(),
        })
    };
    stream::iter(examples).map(one).buffered(READ_AT_ONCE).try_collect().await
}

/// The decision of an example, with another question.
///
/// It is read in the batch lane, or below, whatever it asks for, and in the orders that the fingerprint
/// names.
fn with(decision: &Decision, mut asked: Question, applies_tasks: bool) -> Decision {
    asked.samples = None;
    Decision {
        questions: vec![asked],
        samples: None,
        lane: Some(decision.lane.unwrap_or(Lane::Batch).max(Lane::Batch)),
        timeout: None,
        timeout_default: Some(REGISTRATION_MAX),
        applies_tasks,
        ..decision.clone()
    }
}

/// Reads one decision; where there is no room for it, it is asked again when there may be.
async fn read(
    reader: &dyn Reader,
    tenant: &TenantId,
    decision: Decision,
) -> Result<Answer, DecideError> {
    let began = tokio::time::Instant::now();
    loop {
        let answers = reader.read(tenant.clone(), decision.clone()).await;
        let wait = match &answers {
            Err(DecideError::Read(ReadError::Rejected(reason))) => reason.retry_after(),
            Ok(_) | Err(_) => None,
        };
        let Some(wait) =
            wait.filter(|wait| began.elapsed().saturating_add(*wait) <= REGISTRATION_MAX)
        else {
            let mut answers = answers?;
            return answers.pop().ok_or_else(|| internal("a question without an answer"));
        };
        tokio::time::sleep(wait).await;
    }
}

/// Examples to fit to, and those to certify by.
fn split(examples: Vec<Example>, certify: Option<&CertifyOrder>) -> (Vec<Example>, Vec<Example>) {
    let Some(certify) = certify else { return (examples, Vec::new()) };
    if !certify.examples.is_empty() {
        return (examples, certify.examples.clone());
    }
    let order = folds::permutation(examples.len(), SEED);
    let (kept, held) = certify::split_holdout(&order, certify.holdout);
    let pick = |places: Vec<usize>| places.into_iter().map(|at| examples[at].clone()).collect();
    (pick(kept), pick(held))
}

/// The answers' keys in the order of a record: a noul's are yes, no.
fn keys(kind: &Kind) -> Vec<String> {
    match kind {
        Kind::Noul { .. } => vec!["yes".to_owned(), "no".to_owned()],
        Kind::Choice { .. } | Kind::Score { .. } => keys_of(kind),
    }
}

/// The same in the order of the options.
fn keys_of(kind: &Kind) -> Vec<String> {
    match kind {
        Kind::Noul { .. } => vec!["no".to_owned(), "yes".to_owned()],
        Kind::Choice { options } => options.iter().map(|option| option.key.clone()).collect(),
        Kind::Score { levels } => (0..levels.len()).map(|level| level.to_string()).collect(),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn internal(detail: &str) -> DecideError {
    DecideError::Internal { detail: detail.to_owned() }
}

pub(crate) fn refused(refused: Refused) -> DecideError {
    match refused {
        Refused::Full(message) => {
            DecideError::Invalid(vec![Problem::new(vec!["id".into()], "tasks_full", message)])
        }
        Refused::Conflict(conflict) => DecideError::Conflict(conflict),
        Refused::Unavailable(detail) => DecideError::StoreLost { detail },
        Refused::Disk(detail) => DecideError::Internal { detail },
    }
}
