//! One run: actors, engine and clients of a seed, from the first arrival to silence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{
    DecisionMeta, Handle, PrewarmSpec, ReadError, ReadOutcome, RejectReason, StepLogEntry,
    TenantId, start,
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::fake::{Accounts, FakeEngine, accounted, expected, meta};
use crate::workload::{Client, Dice, Plan};
use crate::{faults, invariants, workload};

/// Virtual time after which a client without an answer is a hang.
const PATIENCE: Duration = Duration::from_hours(1);

/// What a client saw.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Seen {
    Refused(ReadError),
    Read(Vec<Result<ReadOutcome, ReadError>>),
    GaveUp,
    /// Whether it was stored, and how many tokens were computed for it.
    Prewarmed(bool, u32),
}

/// What a run gave.
#[derive(Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) seen: Vec<Vec<Seen>>,
    pub(crate) steps: Vec<StepLogEntry>,
}

/// Runs a seed and checks every promise.
pub(crate) fn run(seed: u64) -> Record {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(live(seed))
}

async fn live(seed: u64) -> Record {
    let mut dice = Dice::new(seed);
    let plan = workload::draw(&mut dice);
    let rows_max = dice.one_of(&[5, 64]);
    let engine = FakeEngine::new().with_caps(|caps| caps.rows_max = rows_max);
    let has_faults = faults::draw(&mut dice, &engine, plan.is_calm);
    if !plan.is_calm {
        // Drawn apart, so that all else of a seed stays what it was.
        faults::draw_losses(&mut Dice::new(!seed), &engine);
    }
    let engine = Arc::new(engine);
    let handle = start(Arc::clone(&engine), plan.config.clone()).await.unwrap();
    let accounts = Arc::<Accounts>::default();
    handle.account_to(Arc::clone(&accounts) as _);
    let watch = tokio::spawn(invariants::watch(handle.clone(), plan.config.cache.kv_bytes));
    let limits = tokio::spawn(change_limits(handle.clone(), Dice::new(seed << 1), plan.is_calm));
    let clients: Vec<_> = plan
        .clients
        .iter()
        .map(|client| tokio::spawn(behave(handle.clone(), client.clone())))
        .collect();
    let report = drain(&handle, &plan).await;
    let mut seen = Vec::new();
    for client in clients {
        let ended = timeout(PATIENCE, client).await;
        let ended = ended.unwrap_or_else(|_| panic!("a client hangs: {:?}", handle.snapshot()));
        seen.push(ended.unwrap());
    }
    watch.abort();
    limits.abort();
    handle.limit(BTreeMap::new());
    // Registrations, pins and prewarms without a waiter end too.
    sleep(Duration::from_secs(40)).await;
    invariants::at_the_end(&handle, &engine, &plan, report.is_some());
    let ran = engine.tokens.load(Ordering::SeqCst);
    assert!(accounts.computed() <= ran, "{accounts:?} of {ran}: something is accounted twice");
    if plan.is_calm && !has_faults {
        invariants::of_a_calm_run(&handle, &engine, &seen);
        assert_eq!(accounts.computed(), ran, "{accounts:?}");
    }
    // The log is a ring; what it lost does not matter for telling two runs apart.
    Record { seen, steps: handle.step_log() }
}

/// Replaces the limits of tenants again and again, in half of the runs.
async fn change_limits(handle: Handle, mut dice: Dice, is_calm: bool) {
    if dice.chance(50) {
        return;
    }
    loop {
        handle.limit(workload::draw_limits(&mut dice, is_calm));
        sleep(dice.millis(1_500)).await;
    }
}

async fn drain(handle: &Handle, plan: &Plan) -> Option<actors::DrainReport> {
    sleep(plan.drain_at?).await;
    let at = Instant::now();
    let report = handle.drain().await;
    let limit = plan.config.scheduler.drain_timeout + Duration::from_secs(1);
    assert!(at.elapsed() <= limit, "a drain took {:?}", at.elapsed());
    Some(report)
}

async fn behave(handle: Handle, client: Client) -> Vec<Seen> {
    sleep(client.at).await;
    let mut seen = Vec::new();
    let acts = async {
        if client.prewarms {
            seen.push(prewarm(&handle, &client).await);
        }
        decide(&handle, &client, &mut seen).await;
    };
    match client.gives_up {
        None => acts.await,
        Some(patience) => {
            if timeout(patience, acts).await.is_err() {
                seen.push(Seen::GaveUp);
            }
        }
    }
    seen
}

async fn prewarm(handle: &Handle, client: &Client) -> Seen {
    let spec = PrewarmSpec {
        tenant: tenant_of(client),
        prefix: client.prefix.clone(),
        lane: client.lane,
        ttl: None,
        wait: client.waits,
        deadline: client.deadline.map(|deadline| Instant::now() + deadline),
        deadline_is_asked: client.waits,
    };
    match handle.prewarm(spec).await {
        Ok(outcome) => Seen::Prewarmed(outcome.stored, outcome.computed),
        Err(error) => Seen::Refused(error),
    }
}

async fn decide(handle: &Handle, client: &Client, seen: &mut Vec<Seen>) {
    let reads = client.stages[0].len();
    let deadline = client.deadline.map(|deadline| Instant::now() + deadline);
    let (tenant, deadline_is_asked) = (tenant_of(client), client.waits);
    let meta = meta(&client.prefix, client.lane, reads);
    let meta = DecisionMeta { tenant, deadline, deadline_is_asked, ..meta };
    let mut decision = match handle.open(meta) {
        Ok(decision) => decision,
        Err(error) => return seen.push(Seen::Refused(error)),
    };
    for stage in &client.stages {
        let at = Instant::now();
        let outcomes = match decision.read(stage.clone()).await {
            Ok(outcomes) => outcomes,
            Err(error) => return seen.push(Seen::Refused(error)),
        };
        assert_eq!(outcomes.len(), stage.len());
        for (spec, outcome) in stage.iter().zip(&outcomes) {
            if let Ok(outcome) = outcome {
                let difference = accounted(outcome).saturating_sub(at.elapsed());
                assert!(difference < Duration::from_millis(1), "time is counted twice");
                assert_eq!(outcome.row, expected(&client.prefix, spec), "a mixed-up answer");
            }
        }
        let is_displaced = |outcome: &Result<_, ReadError>| {
            matches!(outcome, Err(ReadError::Rejected(RejectReason::Displaced { .. })))
        };
        let displaced = outcomes.iter().filter(|outcome| is_displaced(outcome)).count();
        assert!(displaced == 0 || displaced == outcomes.len(), "displaced in part");
        seen.push(Seen::Read(outcomes));
        sleep_until(Instant::now() + client.pause).await;
    }
    if client.responds {
        decision.responded();
    }
}

fn tenant_of(client: &Client) -> TenantId {
    TenantId(client.tenant.to_string().into())
}
