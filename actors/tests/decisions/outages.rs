//! What happens while nothing that computes the model can be reached.

use std::time::Duration;

use actors::{Config, EngineError, EngineState, Lane, ReadError, Register};
use tokio::time::sleep;

use crate::fake::{Fault, expected, meta, prefix, spec};
use crate::support::{decide, decide_one, settle, spawn_one, started};

/// Without registration, each step is one that a read asked for.
fn asked_only(config: &mut Config) {
    config.registration.when = Register::Off;
}

fn outage() -> EngineError {
    EngineError::Unavailable("nobody listens".to_owned())
}

#[tokio::test(start_paused = true)]
async fn an_outage_ends_each_read_once_and_the_engine_never() {
    let (handle, engine) = started(asked_only).await;
    engine.faults.lock().unwrap().extend(vec![Some(Fault::Fail(outage())); 40]);
    for name in 0..40 {
        let outcomes = decide(&handle, &prefix(1, name, 100), vec![spec(1, 20), spec(2, 20)]).await;
        let expected = Err(ReadError::Engine(outage()));
        assert_eq!(outcomes, [expected.clone(), expected], "nothing is tried a second time");
    }
    assert_eq!(engine.faults.lock().unwrap().len(), 0, "one step each, and no probe");
    assert_eq!(handle.snapshot().load.engine, EngineState::Ready);
    let after = decide_one(&handle, &prefix(1, 1, 100), spec(1, 20)).await;
    assert_eq!(after.row, expected(&prefix(1, 1, 100), &spec(1, 20)));
    let totals = handle.snapshot().load.totals;
    assert_eq!((totals.admitted, totals.failed, totals.done), (81, 80, 1));
    assert_eq!(totals.step_failures, 0, "none of the engine's");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_cannot_be_asked_is_no_death() {
    let (handle, engine) = started(asked_only).await;
    let broken = EngineError::Forward("broken".to_owned());
    engine.faults.lock().unwrap().extend(vec![Some(Fault::Fail(broken)); 4]);
    engine.faults.lock().unwrap().push_back(Some(Fault::Fail(outage())));
    for name in 0..2 {
        let outcomes = decide(&handle, &prefix(1, name, 100), vec![spec(1, 20)]).await;
        assert!(matches!(outcomes[0], Err(ReadError::Engine(EngineError::Forward(_)))));
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(handle.death(), None);
    let after = decide_one(&handle, &prefix(1, 1, 100), spec(1, 20)).await;
    assert_eq!(after.row, expected(&prefix(1, 1, 100), &spec(1, 20)));
}

#[tokio::test(start_paused = true)]
async fn an_engine_is_told_of_rows_that_nobody_waits_for_and_of_no_others() {
    let (handle, engine) = started(asked_only).await;
    let prefix = prefix(1, 1, 100);
    decide_one(&handle, &prefix, spec(9, 20)).await;
    // Three rows in one step; the first has two askers, of whom one leaves.
    let blocker = spawn_one(&handle, prefix.clone(), spec(8, 20));
    settle().await;
    let (stays, goes) = (
        spawn_one(&handle, prefix.clone(), spec(1, 20)),
        spawn_one(&handle, prefix.clone(), spec(1, 20)),
    );
    let alone = spawn_one(&handle, prefix.clone(), spec(2, 20));
    let other = spawn_one(&handle, prefix.clone(), spec(3, 20));
    blocker.await.unwrap();
    settle().await;
    goes.abort();
    alone.abort();
    settle().await;
    let told = engine.abandoned.lock().unwrap().clone();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(stays.await.unwrap().row, expected(&prefix, &spec(1, 20)));
    assert_eq!(other.await.unwrap().row, expected(&prefix, &spec(3, 20)));
    let log = handle.step_log();
    assert_eq!(log.last().map(|step| step.step), Some(told[0].0));
    // Nothing is told of a decision that was over.
    let mut late = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
    late.read(vec![spec(4, 20)]).await.unwrap().remove(0).unwrap();
    drop(late);
    settle().await;
    assert_eq!(engine.abandoned.lock().unwrap().len(), 1);
}
