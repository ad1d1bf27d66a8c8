//! What is said of a decision before it is sent, against what becomes of it.

use std::time::Duration;

use actors::{Lane, ReadError, RejectReason};

use crate::fake::{meta, prefix, spec};
use crate::support::{decide_one, settle, spawn_one, started};

#[tokio::test(start_paused = true)]
async fn a_forecast_says_what_admission_would_and_changes_nothing() {
    let (handle, _) = started(|config| config.scheduler.tokens_max = 1_000).await;
    let state = prefix(1, 1, 700);
    let cold = handle.forecast(&meta(&state, Lane::Normal, 1));
    assert_eq!((cold.prefix_resident, cold.refused), (0, None));
    assert_eq!(cold.prefix_missing, u64::from(state.tokens()));
    decide_one(&handle, &state, spec(1, 20)).await;
    let warm = handle.forecast(&meta(&state, Lane::Normal, 1));
    // Whole blocks of 64 are kept; what a decision found is computed again at its end at most.
    assert_eq!(warm.prefix_resident + warm.prefix_missing, u64::from(state.tokens()));
    assert!(warm.prefix_missing < 64, "{warm:?}");

    let waits = spawn_one(&handle, prefix(1, 8, 600), spec(1, 20));
    settle().await;
    let other = meta(&prefix(1, 9, 800), Lane::Normal, 1);
    for _ in 0..3 {
        let told = handle.forecast(&other).refused.expect("more tokens wait than may");
        let refused = handle.open(other.clone()).unwrap_err();
        for error in [told, refused] {
            assert!(
                matches!(error, ReadError::Rejected(RejectReason::TokensFull { .. })),
                "{error}"
            );
        }
    }
    waits.await.unwrap();
    assert_eq!(handle.forecast(&other).refused, None);
    assert!(handle.open(other).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_forecast_knows_the_wait_ahead_and_what_never_fits() {
    let (handle, _) = started(|_| ()).await;
    decide_one(&handle, &prefix(1, 1, 300), spec(1, 20)).await;
    let newcomer = meta(&prefix(1, 2, 100), Lane::Normal, 1);
    assert_eq!(handle.forecast(&newcomer).wait, Duration::ZERO);
    let tasks: Vec<_> =
        (0..5).map(|name| spawn_one(&handle, prefix(1, 10 + name, 2_000), spec(1, 20))).collect();
    settle().await;
    assert!(handle.forecast(&newcomer).wait > Duration::ZERO);
    for task in tasks {
        task.await.unwrap();
    }
    let endless = meta(&prefix(1, 3, 1_000_000), Lane::Normal, 1);
    let refused = handle.forecast(&endless).refused;
    assert!(
        matches!(refused, Some(ReadError::Rejected(RejectReason::TooLong { .. }))),
        "{refused:?}"
    );
}
