//! What one forward pass serves: merging, chunks, coalescing, lanes, times.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{DecisionHandle, Handle, Lane, Prefix, ReadOutcome, ReadSpec, start};
use tokio::time::{Instant, sleep};

use crate::fake::{FakeEngine, accounted, expected, meta, prefix, spec};
use crate::support::{config, decide, decide_one, settle, spawn_in, spawn_one, started};

#[tokio::test(start_paused = true)]
async fn a_lone_question_runs_in_one_step() {
    let (handle, engine) = started(|_| ()).await;
    let (prefix, read) = (prefix(1, 1, 300), spec(1, 20));
    let outcome = decide_one(&handle, &prefix, read.clone()).await;
    assert_eq!(outcome.row, expected(&prefix, &read));
    assert_eq!((outcome.computed_tokens, outcome.cached_tokens), (340, 0));
    assert_eq!(handle.step_log().len(), 1);
    assert_eq!(engine.tokens.load(Ordering::SeqCst), 340);
    assert_eq!(outcome.timing.queue_wait, Duration::ZERO);
    assert_eq!(outcome.timing.engine_time, engine.step_cost + engine.token_cost * 340);
}

#[tokio::test(start_paused = true)]
async fn a_long_state_runs_in_chunks_that_end_at_pages() {
    let (handle, _) = started(|_| ()).await;
    let (prefix, read) = (prefix(1, 1, 1_000), spec(1, 20));
    let outcome = decide_one(&handle, &prefix, read.clone()).await;
    assert_eq!(outcome.row, expected(&prefix, &read));
    let log = handle.step_log();
    assert!(log.len() > 2);
    for step in &log[..log.len() - 1] {
        let last = step.chunks.last().unwrap();
        assert_eq!((20 + last.from + last.tokens) % 64, 0);
        assert!(step.tokens <= 192);
    }
    assert_eq!(log.last().unwrap().rows.len(), 1, "the row joins the completing step");
    assert!(outcome.timing.state_wait > Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn rows_of_two_decisions_share_one_step() {
    let (handle, _) = started(|_| ()).await;
    let (one, two) = (prefix(1, 1, 100), prefix(1, 2, 90));
    let mut decisions: Vec<_> = [&one, &one, &two]
        .into_iter()
        .map(|prefix| handle.open(meta(prefix, Lane::Normal, 1)).unwrap())
        .collect();
    let ids: Vec<_> = decisions.iter().map(DecisionHandle::id).collect();
    let [a, b, c] = &mut decisions[..] else { panic!("three decisions") };
    let (reads_a, reads_b, reads_c) = (vec![spec(1, 20)], vec![spec(2, 20)], vec![spec(3, 20)]);
    let (a, b, c) = tokio::join!(a.read(reads_a), b.read(reads_b), c.read(reads_c));
    for outcomes in [&a, &b, &c] {
        assert!(outcomes.as_ref().unwrap()[0].is_ok());
    }
    let log = handle.step_log();
    let shared = log.iter().any(|step| {
        let decisions: Vec<_> = step.rows.iter().map(|row| row[0].decision).collect();
        ids.iter().filter(|id| decisions.contains(id)).count() >= 2
    });
    assert!(shared, "{log:?}");
    let state_tokens: u32 =
        log.iter().flat_map(|step| &step.chunks).map(|chunk| chunk.tokens).sum();
    assert_eq!(state_tokens, 20 + 100 + 90, "head and states are computed once");
}

#[tokio::test(start_paused = true)]
async fn fifty_requests_on_one_cold_state_compute_it_once() {
    let (handle, _) = started(|_| ()).await;
    let prefix = prefix(1, 1, 1_000);
    let tasks: Vec<_> =
        (0..50).map(|name| spawn_one(&handle, prefix.clone(), spec(name, 10))).collect();
    let mut computed = 0;
    for task in tasks {
        let outcome = task.await.unwrap();
        computed += outcome.computed_tokens;
        assert_eq!(outcome.computed_tokens + outcome.cached_tokens, 1_030);
    }
    assert_eq!(computed, 20 + 1_000 + 50 * 10);
    let totals = handle.snapshot().load.totals;
    assert_eq!(totals.computed_tokens, u64::from(computed));
    assert_eq!(handle.snapshot().residency.duplicate_tokens, 0);
}

#[tokio::test(start_paused = true)]
async fn equal_reads_share_a_row() {
    let (handle, engine) = started(|_| ()).await;
    let prefix = prefix(1, 1, 100);
    let outcomes = decide(&handle, &prefix, vec![spec(1, 20); 3]).await;
    for outcome in &outcomes {
        assert_eq!(outcome.as_ref().unwrap().row, expected(&prefix, &spec(1, 20)));
    }
    assert_eq!(engine.tokens.load(Ordering::SeqCst), 140);
    let computed: u32 = outcomes.iter().map(|one| one.as_ref().unwrap().computed_tokens).sum();
    assert_eq!(computed, 140);
    assert_eq!(handle.step_log()[0].rows[0].len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_urgent_read_overtakes_a_long_prefill() {
    let (handle, _) = started(|_| ()).await;
    let long = spawn_in(&handle, Lane::Batch, &prefix(1, 1, 3_000), spec(1, 20));
    sleep(Duration::from_millis(200)).await;
    let prefix = prefix(1, 2, 50);
    let mut decision = handle.open(meta(&prefix, Lane::Urgent, 1)).unwrap();
    let urgent = decision.read(vec![spec(2, 20)]).await.unwrap().remove(0).unwrap();
    assert!(accounted(&urgent) < Duration::from_millis(600), "{urgent:?}");
    let long = long.await.unwrap();
    assert_eq!(long.computed_tokens, 3_040, "its progress is kept");
}

/// A read that comes later; how long it took, and its outcome.
async fn timed(
    handle: Handle,
    prefix: Prefix,
    later: Duration,
    read: ReadSpec,
) -> (Duration, ReadOutcome) {
    sleep(later).await;
    let at = Instant::now();
    let mut decision = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
    let outcome = decision.read(vec![read]).await.unwrap().remove(0);
    (at.elapsed(), outcome.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_states_time_is_that_of_its_own_steps() {
    // A step has room for one chunk.
    let (handle, _) = started(|config| config.scheduler.step_tokens_max = 192).await;
    let alone = decide_one(&handle, &prefix(1, 1, 3_000), spec(1, 20)).await.timing;
    // What the engine says of its steps is a little less than what passes between them.
    let idle = alone.state_wait.saturating_sub(alone.state_time);
    assert!(idle < alone.state_wait / 50, "nothing else ran: {alone:?}");
    let long = spawn_one(&handle, prefix(1, 2, 3_000), spec(2, 20));
    settle().await;
    let urgent = spawn_in(&handle, Lane::Urgent, &prefix(1, 3, 1_500), spec(3, 20));
    let urgent = urgent.await.unwrap().timing;
    let long = long.await.unwrap().timing;
    let others = long.state_wait.saturating_sub(long.state_time);
    assert!(others > urgent.state_time / 4, "{long:?} {urgent:?}");
    assert!(long.state_time > Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_times_of_a_read_add_up() {
    let (handle, _) = started(|_| ()).await;
    let begin = Instant::now();
    let tasks: Vec<_> = (0..30)
        .map(|name| {
            let (handle, prefix) = (handle.clone(), prefix(1, name % 5, 100 * (name % 9)));
            let later = Duration::from_millis(u64::from(name) * 37);
            tokio::spawn(timed(handle, prefix, later, spec(name, 20)))
        })
        .collect();
    for task in tasks {
        let (elapsed, outcome) = task.await.unwrap();
        let difference = elapsed.abs_diff(accounted(&outcome));
        assert!(difference < Duration::from_millis(1), "{elapsed:?} {outcome:?}");
    }
    assert!(begin.elapsed() > Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_keeps_nothing_computes_every_prompt() {
    let engine = FakeEngine::new().with_caps(|caps| caps.keeps_segments = false);
    let handle = start(Arc::new(engine), config()).await.unwrap();
    let prefix = prefix(1, 1, 300);
    for name in 0..2 {
        let outcome = decide_one(&handle, &prefix, spec(name, 20)).await;
        assert_eq!((outcome.computed_tokens, outcome.cached_tokens), (340, 0));
    }
    assert_eq!(handle.snapshot().residency.segments, 0);
}

#[tokio::test(start_paused = true)]
async fn a_suffix_longer_than_a_step_still_runs() {
    let (handle, _) = started(|_| ()).await;
    let (prefix, long) = (prefix(1, 1, 300), spec(1, 900));
    let outcomes = decide(&handle, &prefix, vec![long.clone(), spec(2, 20)]).await;
    assert_eq!(outcomes[0].as_ref().unwrap().row, expected(&prefix, &long));
    assert!(outcomes[1].is_ok());
}

#[tokio::test(start_paused = true)]
async fn steps_never_overlap() {
    let (handle, engine) = started(|_| ()).await;
    let tasks: Vec<_> =
        (0..40).map(|name| spawn_one(&handle, prefix(1, name % 7, 300), spec(name, 30))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(engine.overlaps.load(Ordering::SeqCst), 0);
    let log = handle.step_log();
    assert!(log.windows(2).all(|pair| pair[0].step < pair[1].step));
    assert!(log.iter().all(|step| step.tokens <= 512 && step.rows.len() <= 64));
}

/// The one test with threads: the order of messages differs from run to run, the promises do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_change_no_answer() {
    let mut engine = FakeEngine::new();
    (engine.step_cost, engine.token_cost) = (Duration::ZERO, Duration::ZERO);
    let handle = start(Arc::new(engine), config()).await.unwrap();
    let state = |name: u32| prefix(1, name % 9, 40 * (name % 9));
    let tasks: Vec<_> =
        (0..300).map(|name| spawn_one(&handle, state(name), spec(name % 20, 15))).collect();
    for (name, task) in (0..).zip(tasks) {
        assert_eq!(task.await.unwrap().row, expected(&state(name), &spec(name % 20, 15)));
    }
    let report = handle.drain().await;
    assert_eq!(report.failed, 0);
    let snapshot = handle.snapshot();
    assert_eq!(snapshot.load.totals.done, 300);
    assert_eq!((snapshot.residency.leased, snapshot.residency.duplicate_tokens), (0, 0));
}
