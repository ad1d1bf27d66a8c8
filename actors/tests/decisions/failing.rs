//! What an engine's failure does, and to whom.

use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{
    ActorKind, EngineError, EngineState, Lane, ReadError, ReadSpec, Register, RejectReason, Then,
};

use crate::fake::{CRASH, DEATH, Fault, NAN, PANIC, POISON, expected, faulty, meta, prefix, spec};
use crate::support::{decide, decide_one, faulty_prefix, settle, spawn, spawn_one, started};

#[tokio::test(start_paused = true)]
async fn case_32_one_bad_row_fails_alone() {
    for (bad, error) in
        [(POISON, EngineError::Forward("poison".to_owned())), (NAN, EngineError::NonFinite)]
    {
        let (handle, _) = started(|_| ()).await;
        let prefix = prefix(1, 1, 100);
        let mut reads: Vec<_> = (0..100).map(|name| spec(name, 5)).collect();
        reads.insert(50, faulty(bad));
        let outcomes = decide(&handle, &prefix, reads).await;
        for (index, outcome) in outcomes.iter().enumerate() {
            let failed = outcome.as_ref().err();
            let fault = ReadError::Engine(error.clone());
            assert_eq!(failed, (index == 50).then_some(&fault), "{index}");
        }
        assert_eq!(handle.snapshot().load.engine, EngineState::Ready);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_engine_fails_what_waits_and_refuses_what_comes() {
    let (handle, _) = started(|_| ()).await;
    let waits = spawn(&handle, prefix(1, 2, 2_000), vec![spec(1, 20)]);
    let outcomes = decide(&handle, &prefix(1, 1, 100), vec![faulty(DEATH)]).await;
    assert!(matches!(outcomes[0], Err(ReadError::Engine(EngineError::Dead(_)))));
    let waited = waits.await.unwrap().remove(0);
    assert!(matches!(waited, Err(ReadError::Engine(EngineError::Dead(_)))));
    let refused = handle.open(meta(&prefix(1, 1, 10), Lane::Normal, 1)).unwrap_err();
    assert!(matches!(refused, ReadError::Rejected(RejectReason::EngineDead(_))));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_completion_is_death() {
    let (handle, engine) = started(|_| ()).await;
    engine.faults.lock().unwrap().push_back(Some(Fault::Drop));
    let outcomes = decide(&handle, &prefix(1, 1, 100), vec![spec(1, 20)]).await;
    assert!(matches!(outcomes[0], Err(ReadError::Engine(EngineError::Dead(_)))));
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_is_tried_again() {
    let (handle, engine) = started(|_| ()).await;
    let error = EngineError::OutOfMemory("no room".to_owned());
    engine.faults.lock().unwrap().push_back(Some(Fault::Fail(error)));
    let prefix = prefix(1, 1, 100);
    let outcome = decide_one(&handle, &prefix, spec(1, 20)).await;
    assert_eq!(outcome.row, expected(&prefix, &spec(1, 20)));
    assert_eq!(outcome.computed_tokens, 140);
    assert_eq!(handle.snapshot().load.totals.step_failures, 1);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_not_finite_is_tried_again_alone_and_its_neighbours_are_not() {
    let (handle, engine) = started(|_| ()).await;
    let prefix = prefix(1, 1, 100);
    engine.faults.lock().unwrap().push_back(Some(Fault::Nan));
    let reads: Vec<_> = (0..3).map(|name| spec(name, 20)).collect();
    for (outcome, spec) in decide(&handle, &prefix, reads.clone()).await.into_iter().zip(reads) {
        assert_eq!(outcome.unwrap().row, expected(&prefix, &spec));
    }
    let totals = handle.snapshot().load.totals;
    assert_eq!((totals.computed_tokens, totals.step_failures), (120 + 4 * 20, 0));
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_not_finite_twice_is_given_up() {
    let (handle, engine) = started(|_| ()).await;
    engine.faults.lock().unwrap().extend([Some(Fault::Nan), Some(Fault::Nan)]);
    let prefix = prefix(1, 1, 100);
    let outcomes = decide(&handle, &prefix, vec![spec(1, 20)]).await;
    assert_eq!(outcomes, [Err(ReadError::Engine(EngineError::NonFinite))]);
    let after = decide_one(&handle, &prefix, spec(1, 20)).await;
    assert_eq!(after.row, expected(&prefix, &spec(1, 20)));
}

#[tokio::test(start_paused = true)]
async fn a_panic_restarts_the_actors_with_an_empty_table() {
    let (handle, _) = started(|config| config.registration.when = Register::Off).await;
    let known = prefix(1, 1, 100);
    decide_one(&handle, &known, spec(1, 20)).await;
    let waits = spawn(&handle, prefix(1, 2, 2_000), vec![spec(1, 20)]);
    settle().await;
    let mut open = handle.open(meta(&known, Lane::Urgent, 1)).unwrap();
    let outcomes = open.read(vec![faulty(PANIC)]).await.unwrap();
    assert_eq!(outcomes, [Err(ReadError::Unavailable)]);
    assert_eq!(waits.await.unwrap(), [Err(ReadError::Unavailable)]);
    settle().await;
    assert_eq!(handle.snapshot().load.epoch, 1);
    let stale = open.read(vec![spec(1, 20)]).await.unwrap();
    assert_eq!(stale, [Err(ReadError::Unavailable)], "it was opened before the restart");
    let fresh = decide_one(&handle, &known, spec(2, 20)).await;
    assert_eq!(fresh.computed_tokens, 140, "nothing of the old epoch is used");
}

#[tokio::test(start_paused = true)]
async fn too_many_panics_are_death() {
    let (handle, _) = started(|_| ()).await;
    for _ in 0..4 {
        let outcomes = decide(&handle, &prefix(1, 1, 10), vec![faulty(PANIC)]).await;
        assert_eq!(outcomes, [Err(ReadError::Unavailable)]);
    }
    assert!(matches!(handle.snapshot().load.engine, EngineState::Dead(_)));
}

#[tokio::test(start_paused = true)]
async fn a_poisoned_row_does_not_harm_other_requests_on_its_state() {
    let kinds = [
        (POISON, EngineError::Forward("poison".to_owned())),
        (CRASH, EngineError::Panic("crash".to_owned())),
        (NAN, EngineError::NonFinite),
    ];
    for (bad, error) in kinds {
        let (handle, _) = started(|_| ()).await;
        let state = prefix(1, 1, 100);
        // While this one runs the others come together.
        let first = spawn_one(&handle, prefix(1, 9, 300), spec(0, 20));
        settle().await;
        let good: Vec<_> =
            (0..8).map(|name| spawn_one(&handle, state.clone(), spec(name, 20))).collect();
        let poisoned = spawn(&handle, state.clone(), vec![faulty(bad)]);
        for (name, neighbour) in (0..8).zip(good) {
            assert_eq!(neighbour.await.unwrap().row, expected(&state, &spec(name, 20)));
        }
        assert_eq!(poisoned.await.unwrap(), [Err(ReadError::Engine(error))]);
        first.await.unwrap();
        let log = handle.step_log();
        let failed: Vec<_> = log.iter().filter_map(|step| step.failure.as_ref()).collect();
        assert_eq!(failed.len(), 2, "in company and alone: {failed:?}");
        assert_eq!((failed[0].then, failed[1].then), (Then::Alone, Then::GivenUp));
        assert_eq!(failed[1].items, 1);
        assert_eq!(handle.snapshot().load.engine, EngineState::Ready);
    }
}

#[tokio::test(start_paused = true)]
async fn a_poisoned_state_fails_those_who_wait_for_it_and_nobody_else() {
    for (bad, error) in [
        (POISON, EngineError::Forward("poison".to_owned())),
        (CRASH, EngineError::Panic("crash".to_owned())),
    ] {
        let (handle, _) = started(|_| ()).await;
        let first = spawn_one(&handle, prefix(1, 9, 300), spec(0, 20));
        settle().await;
        let poisoned = faulty_prefix(bad, 1, 60);
        let waiters: Vec<_> =
            (0..3).map(|name| spawn(&handle, poisoned.clone(), vec![spec(name, 10)])).collect();
        let others: Vec<_> =
            (2..5).map(|name| spawn_one(&handle, prefix(1, name, 60), spec(1, 10))).collect();
        for waiter in waiters {
            assert_eq!(waiter.await.unwrap(), [Err(ReadError::Engine(error.clone()))]);
        }
        for (name, other) in (2..5).zip(others) {
            assert_eq!(other.await.unwrap().row, expected(&prefix(1, name, 60), &spec(1, 10)));
        }
        first.await.unwrap();
        let log = handle.step_log();
        let failed: Vec<_> = log.iter().filter(|step| step.failure.is_some()).collect();
        let sizes = failed.iter().map(|step| step.chunks.len()).collect::<Vec<_>>();
        assert!(sizes.len() == 2 && sizes[0] > 1 && sizes[1] == 1, "{sizes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_spoils_every_step_does_not_end_the_engine() {
    for bad in [POISON, NAN] {
        let (handle, _) = started(|_| ()).await;
        let prefix = prefix(1, 1, 100);
        for _ in 0..2 {
            let read = |name| ReadSpec { suffix: [bad, name].into(), ..faulty(bad) };
            let reads = (0..40).map(read).collect();
            let outcomes = decide(&handle, &prefix, reads).await;
            assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(ReadError::Engine(_)))));
        }
        assert_eq!(handle.snapshot().load.engine, EngineState::Ready);
        let sound = decide_one(&handle, &prefix, spec(1, 20)).await;
        assert_eq!(sound.row, expected(&prefix, &spec(1, 20)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_gives_nothing_any_more_is_dead_after_a_few_requests() {
    let (handle, engine) = started(|_| ()).await;
    let error = EngineError::Forward("broken".to_owned());
    engine.faults.lock().unwrap().extend(vec![Some(Fault::Fail(error)); 100]);
    for name in 0..2 {
        let outcomes = decide(&handle, &prefix(1, name, 100), vec![spec(1, 20)]).await;
        assert!(matches!(outcomes[0], Err(ReadError::Engine(_))), "{outcomes:?}");
    }
    let why = handle.died().await;
    assert!(why.contains("4 steps in a row failed") && why.contains("broken"), "{why}");
    assert_eq!(handle.death(), Some(why.clone()));
    assert_eq!(handle.snapshot().load.engine, EngineState::Dead(why));
    assert_eq!(engine.faults.lock().unwrap().len(), 100 - 5, "four steps and a probe");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_fails_now_and_then_is_dead_although_second_tries_succeed() {
    let (handle, engine) = started(|_| ()).await;
    let error = EngineError::Panic("now and then".to_owned());
    engine.faults.lock().unwrap().extend((0..40).map(|step| {
        let is_bad = step % 4 == 0;
        is_bad.then(|| Fault::Fail(error.clone()))
    }));
    let mut done = 0;
    while handle.death().is_none() {
        let prefix = prefix(1, done, 100);
        assert_eq!(
            decide_one(&handle, &prefix, spec(1, 20)).await.row,
            expected(&prefix, &spec(1, 20))
        );
        done += 1;
        assert!(done < 40, "it never dies");
    }
    let why = handle.death().unwrap();
    assert!(why.contains("4 steps failed within 60 s"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn where_memory_is_short_steps_are_halved_and_nothing_fails() {
    let unhurried = Duration::from_secs(10);
    let (handle, engine) = started(|config| config.scheduler.order.step_target = unhurried).await;
    engine.memory_tokens.store(300, Ordering::SeqCst);
    let first = spawn_one(&handle, prefix(1, 9, 100), spec(0, 20));
    settle().await;
    let tasks: Vec<_> =
        (0..12).map(|name| spawn_one(&handle, prefix(1, 1, 300), spec(name, 20))).collect();
    for (name, task) in (0..12).zip(tasks) {
        assert_eq!(task.await.unwrap().row, expected(&prefix(1, 1, 300), &spec(name, 20)));
    }
    first.await.unwrap();
    let log = handle.step_log();
    let failures = log.iter().filter_map(|step| step.failure.as_ref());
    assert!(failures.clone().count() > 0);
    let thens: Vec<_> = failures.map(|failure| failure.then).collect();
    assert!(thens.iter().all(|then| *then == Then::Halved), "{thens:?}");
    assert!(log.iter().filter(|step| step.succeeded).all(|step| step.tokens <= 300));
}

#[tokio::test(start_paused = true)]
async fn a_read_for_which_there_is_never_memory_fails_alone() {
    let (handle, engine) = started(|_| ()).await;
    engine.memory_tokens.store(64, Ordering::SeqCst);
    let prefix = prefix(1, 1, 100);
    let outcomes = decide(&handle, &prefix, vec![spec(1, 20), spec(2, 90), spec(3, 20)]).await;
    let failed: Vec<_> = outcomes.iter().map(Result::is_err).collect();
    assert_eq!(failed, [false, true, false], "{outcomes:?}");
    assert!(matches!(outcomes[1], Err(ReadError::Engine(EngineError::OutOfMemory(_)))));
}

#[tokio::test(start_paused = true)]
async fn each_actor_that_is_lost_is_started_again_and_counted() {
    for actor in ActorKind::ALL {
        let (handle, engine) = started(|_| ()).await;
        decide_one(&handle, &prefix(1, 1, 100), spec(1, 20)).await;
        engine.lost.lock().unwrap().push((actor, 1));
        let tasks: Vec<_> = (0..5)
            .map(|name| spawn(&handle, prefix(1, 2 + name, 200), vec![spec(name, 20)]))
            .collect();
        for task in tasks {
            let outcome = task.await.unwrap().remove(0);
            let is_lost = outcome == Err(ReadError::Unavailable);
            assert!(outcome.is_ok() || is_lost && actor != ActorKind::Registration, "{outcome:?}");
        }
        settle().await;
        let snapshot = handle.snapshot();
        for other in ActorKind::ALL {
            assert_eq!(snapshot.restarts.of(other), u64::from(other == actor), "{other:?}");
        }
        assert_eq!(snapshot.load.epoch, u64::from(actor != ActorKind::Registration));
        assert_eq!((snapshot.load.waiting(), snapshot.load.reads_in_flight), (0, 0));
        decide_one(&handle, &prefix(1, 1, 100), spec(2, 20)).await;
        tokio::time::sleep(Duration::from_secs(40)).await;
        let left = handle.snapshot().registration;
        assert_eq!((left.pending, left.deferred, left.running), (0, 0, 0), "{left:?}");
        // Whoever was lost took the registration with it that it had in hand, and no other.
        assert!(left.balance() && left.submitted >= 6, "{left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_lasts_is_stuck_since_it_began_and_idle_time_does_not_count() {
    let (handle, engine) = started(|_| ()).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(handle.snapshot().load.stuck_since, None);
    let began = tokio::time::Instant::now();
    let task = spawn_one(&handle, prefix(1, 1, 100), spec(1, 20));
    settle().await;
    let since = handle.snapshot().load.stuck_since.unwrap();
    assert!(since.duration_since(began) <= Duration::from_millis(1));
    task.await.unwrap();
    settle().await;
    assert_eq!(handle.snapshot().load.stuck_since, None);
    drop(engine);
}
