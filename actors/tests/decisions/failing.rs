//! What an engine's failure does, and to whom.

use actors::{EngineError, EngineState, Lane, ReadError, Register, RejectReason};

use crate::fake::{DEATH, Fault, NAN, PANIC, POISON, expected, faulty, meta, prefix, spec};
use crate::support::{decide, decide_one, settle, spawn, started};

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
