//! What is published of waits, states and refusals while decisions wait and when none is left.

use std::time::Duration;

use actors::{Lane, ReadError, RejectReason, StateCounts, StepKind};
use tokio::time::sleep;

use crate::fake::{meta, prefix, spec};
use crate::support::{decide_one, settle, spawn_in, spawn_one, started};

const MS: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn the_oldest_wait_rises_while_nothing_is_published() {
    let (handle, _) = started(|config| config.scheduler.tick = Duration::from_hours(1)).await;
    // A step of 192 tokens takes 138 ms, and nothing is said meanwhile.
    let running = spawn_one(&handle, prefix(1, 1, 3_000), spec(1, 20));
    settle().await;
    let urgent = spawn_in(&handle, Lane::Urgent, &prefix(1, 2, 400), spec(1, 20));
    settle().await;
    let oldest = || handle.snapshot().oldest_wait[Lane::Urgent as usize];
    let (steps, first) = (handle.snapshot().load.steps, oldest());
    sleep(50 * MS).await;
    let second = oldest();
    assert_eq!(handle.snapshot().load.steps, steps, "it is the same step");
    assert_eq!(second, first + 50 * MS);
    let predicted = handle.snapshot().predicted_wait;
    assert!(predicted[Lane::Batch as usize] >= predicted[Lane::Urgent as usize]);
    urgent.await.unwrap();
    running.await.unwrap();
    settle().await;
    let rest = handle.snapshot();
    assert_eq!(rest.oldest_wait, [Duration::ZERO; 4]);
    assert_eq!(rest.predicted_wait, [Duration::ZERO; 4]);
    assert_eq!((rest.tenant_reads, rest.entering_reads), (0, [0; 4]));
}

#[tokio::test(start_paused = true)]
async fn states_are_counted_by_how_far_they_are() {
    let minute = Duration::from_mins(1);
    let (handle, _) = started(|config| config.scheduler.wait_urgent = minute).await;
    let held = prefix(1, 9, 100);
    let mut holder = handle.open(meta(&held, Lane::Normal, 1)).unwrap();
    holder.read(vec![spec(1, 20)]).await.unwrap().remove(0).unwrap();
    let long = spawn_in(&handle, Lane::Batch, &prefix(1, 1, 2_500), spec(1, 20));
    sleep(1_100 * MS).await;
    let states = handle.snapshot().load.states;
    assert_eq!(states, StateCounts { resident: 1, prefilling: 1, ..StateCounts::default() });
    // What is more urgent takes the steps for itself; the batch state keeps its progress.
    let urgent: Vec<_> = (20..26)
        .map(|name| spawn_in(&handle, Lane::Urgent, &prefix(1, name, 1_000), spec(1, 20)))
        .collect();
    sleep(1_000 * MS).await;
    let states = handle.snapshot().load.states;
    assert_eq!((states.resident, states.paused), (1, 1), "{states:?}");
    assert!(states.prefilling >= 1 && states.wanted >= 1, "{states:?}");
    for read in urgent.into_iter().chain([long]) {
        read.await.unwrap();
    }
    drop(holder);
    settle().await;
    assert_eq!(handle.snapshot().load.states, StateCounts::default(), "at once");
}

#[tokio::test(start_paused = true)]
async fn details_name_who_waits_what_runs_and_what_is_held() {
    let minute = Duration::from_mins(1);
    let (handle, _) = started(|config| config.scheduler.wait_urgent = minute).await;
    assert_eq!(handle.details(), (None, None), "nobody has looked yet");
    decide_one(&handle, &prefix(1, 9, 100), spec(1, 20)).await;
    // Steps of a long state, and a read that comes while one of them runs.
    let long = spawn_in(&handle, Lane::Batch, &prefix(1, 1, 2_500), spec(1, 20));
    sleep(450 * MS).await;
    let late = spawn_in(&handle, Lane::Normal, &prefix(1, 2, 400), spec(2, 20));
    settle().await;
    handle.details();
    sleep(120 * MS).await;
    let (queue, held) = handle.details();
    let (queue, held) = (queue.unwrap(), held.unwrap());
    let step = queue.step.as_ref().expect("a long state is read");
    let tokens: u64 = step.parts.iter().map(|part| part.state_tokens + part.row_tokens).sum();
    assert!(tokens > 0 && step.parts_left_out == 0, "{queue:?}");
    assert!(step.parts.iter().all(|part| part.tenant.is_some() && part.lane.is_some()));
    let waiting: Vec<_> = queue.waiting.iter().map(|lane| lane.most.len()).collect();
    assert_eq!(waiting[Lane::Batch as usize], 1, "{queue:?}");
    let named = held.runs.iter().map(|run| run.bytes).sum::<u64>();
    assert!(named > 0 && held.runs_left_out == 0, "{held:?}");
    assert!(held.runs.iter().any(|run| run.leases > 0 && run.age.is_some()), "{held:?}");
    for read in [long, late] {
        read.await.unwrap();
    }
    sleep(Duration::from_secs(10)).await;
    assert_eq!(handle.details(), (None, None), "what is old is not shown");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_counted_by_reason_and_a_displaced_decision_once() {
    let (handle, _) = started(|config| config.scheduler.reads_max = 3).await;
    let running = spawn_one(&handle, prefix(1, 1, 3_000), spec(1, 20));
    settle().await;
    let mut batch = handle.open(meta(&prefix(1, 2, 50), Lane::Batch, 2)).unwrap();
    let displaced = tokio::spawn(async move { batch.read(vec![spec(1, 9), spec(2, 9)]).await });
    settle().await;
    let refused = handle.open(meta(&prefix(1, 3, 50), Lane::Idle, 1)).unwrap_err();
    assert!(matches!(refused, ReadError::Rejected(RejectReason::QueueFull { .. })), "{refused:?}");
    let normal = spawn_in(&handle, Lane::Normal, &prefix(1, 4, 50), spec(1, 9));
    assert!(displaced.await.unwrap().unwrap().iter().all(Result::is_err));
    normal.await.unwrap();
    running.await.unwrap();
    let refusals = handle.snapshot().refusals;
    let counted: Vec<_> = refusals.into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [("queue_full", 1), ("displaced", 1)]);
}

#[tokio::test(start_paused = true)]
async fn steps_have_the_kind_of_what_was_in_them() {
    let (handle, _) = started(|_| ()).await;
    decide_one(&handle, &prefix(1, 1, 1_000), spec(1, 20)).await;
    decide_one(&handle, &prefix(1, 1, 1_000), spec(2, 20)).await;
    let steps = handle.step_log();
    assert!(steps.iter().all(|step| step.states == 1), "{steps:?}");
    let mut kinds: Vec<_> = steps.iter().map(actors::StepLogEntry::kind).collect();
    kinds.dedup();
    assert_eq!(kinds, [StepKind::Chunk, StepKind::Mixed, StepKind::Read]);
}
