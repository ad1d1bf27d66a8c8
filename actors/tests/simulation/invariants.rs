//! What must hold during and after every run.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{ActorKind, Engine, Handle, Lane, StepLogEntry};
use tokio::time::sleep;

use crate::fake::FakeEngine;
use crate::workload::Plan;
use crate::world::Seen;

/// Bytes of the longest path that the workload draws, in whole pages.
const PATH_BYTES_MAX: u64 = 64 + 64 * 17;

/// Looks at the published state again and again.
pub(crate) async fn watch(handle: Handle, kv_bytes: u64) {
    loop {
        let snapshot = handle.snapshot();
        let residency = snapshot.residency;
        assert!(residency.used + residency.reserved <= kv_bytes, "{residency:?}");
        assert!(residency.overflow <= PATH_BYTES_MAX, "{residency:?}");
        assert!(residency.pinned <= residency.used, "{residency:?}");
        assert!(snapshot.top_reads.len() <= 2 && snapshot.top_bytes.len() <= 2, "{snapshot:?}");
        assert!(snapshot.registration.balance(), "{:?}", snapshot.registration);
        let load = snapshot.load;
        let open = (load.waiting() + load.reads_in_flight) as u64;
        assert_eq!(load.totals.admitted, load.totals.ended() + open, "a read is lost");
        sleep(Duration::from_millis(7)).await;
    }
}

/// Silence: everything has ended, nothing is held that nobody uses.
pub(crate) fn at_the_end(handle: &Handle, engine: &FakeEngine, plan: &Plan, drained: bool) {
    let snapshot = handle.snapshot();
    let (load, residency) = (&snapshot.load, &snapshot.residency);
    assert_eq!((load.waiting(), load.reads_in_flight), (0, 0), "{snapshot:?}");
    assert_eq!(load.totals.admitted, load.totals.ended());
    if load.decisions_open == 0 {
        assert_eq!((residency.leased, residency.overflow), (0, 0), "a lease is left");
    }
    if !drained {
        assert_eq!((load.decisions_open, load.wants_waiting), (0, 0));
        assert_eq!((residency.leased, residency.reserved, residency.overflow), (0, 0, 0));
        assert_eq!(residency.prewarms_waiting, 0);
        assert_eq!((snapshot.tenants, &snapshot.top_reads[..]), (0, &[][..]), "a tenant is left");
        assert_eq!(residency.pinned, 0, "pins outlive their time");
        let counters = snapshot.registration;
        assert_eq!((counters.pending, counters.deferred, counters.running), (0, 0, 0));
    }
    assert_eq!(residency.duplicate_tokens, 0);
    let restarts = snapshot.restarts;
    if restarts.of(ActorKind::Scheduler) + restarts.of(ActorKind::Cache) == 0 {
        // Otherwise a step of a scheduler that is gone may still have run.
        assert_eq!(engine.overlaps.load(Ordering::SeqCst), 0, "two steps at once");
    }
    of_the_steps(&handle.step_log(), engine, plan);
}

fn of_the_steps(steps: &[StepLogEntry], engine: &FakeEngine, plan: &Plan) {
    let caps = engine.caps();
    let limits = &plan.config.scheduler;
    for pair in steps.windows(2) {
        assert!((pair[0].epoch, pair[0].step) < (pair[1].epoch, pair[1].step));
    }
    for step in steps {
        let items = step.rows.len() + step.chunks.len();
        assert!(step.tokens > 0 && items > 0, "an empty step");
        let budget = limits.step_tokens_max.min(caps.step_tokens_max);
        assert!(step.tokens <= budget || items == 1, "{step:?}");
        assert!(step.rows.len() <= limits.rows_max as usize);
        let mut drafted = BTreeMap::new();
        for chunk in &step.chunks {
            *drafted.entry(chunk.key).or_insert(0) += 1;
        }
        assert!(drafted.values().all(|count| *count == 1), "two chunks of one segment");
        let has_idle = step.chunks.iter().any(|chunk| chunk.lane == Lane::Idle);
        let has_other = step.chunks.iter().any(|chunk| chunk.lane != Lane::Idle);
        assert!(!(has_idle && has_other), "idle work beside other work: {step:?}");
    }
}

/// Without faults every read is answered, and the accounts add up to what the engine ran.
pub(crate) fn of_a_calm_run(handle: &Handle, engine: &FakeEngine, seen: &[Vec<Seen>]) {
    let (mut computed, mut prewarmed) = (0, 0);
    for seen in seen.iter().flatten() {
        match seen {
            Seen::Read(outcomes) => {
                for outcome in outcomes {
                    computed += u64::from(outcome.as_ref().unwrap().computed_tokens);
                }
            }
            Seen::Prewarmed(_, tokens) => prewarmed += u64::from(*tokens),
            Seen::Refused(_) | Seen::GaveUp => panic!("{seen:?} in a calm run"),
        }
    }
    let totals = handle.snapshot().load.totals;
    assert_eq!(computed + totals.want_tokens, totals.computed_tokens);
    assert!(prewarmed <= totals.want_tokens, "{prewarmed} of {totals:?}");
    assert_eq!(totals.computed_tokens, engine.tokens.load(Ordering::SeqCst));
    assert_eq!(totals.step_failures, 0);
}
