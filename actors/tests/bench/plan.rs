//! What planning a step costs while 10,000 reads wait.

use std::sync::Arc;
use std::time::Duration;

use actors::{Config, DecisionMeta, Lane, TenantId, start};
use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use crate::engine::{BenchEngine, Costs, prefix, read};
use crate::throughput::meta;

const READS: u32 = 10_000;

pub(crate) fn run() {
    println!("planning a step while {READS} reads wait");
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    // The only recorder of this process.
    recorder.install().unwrap();
    for (states, tenants) in [(1, 1), (100, 8), (10_000, 8), (10_000, 1_000)] {
        wait_for_all(states, tenants);
        let mut plans = Vec::new();
        for (key, _, _, value) in snapshotter.snapshot().into_vec() {
            let is_plan = key.kind() == MetricKind::Histogram
                && key.key().name() == "docket_plan_duration_seconds";
            if let (true, DebugValue::Histogram(values)) = (is_plan, value) {
                plans.extend(values.into_iter().map(f64::from));
            }
        }
        plans.sort_by(f64::total_cmp);
        let at = |share: usize| plans[(plans.len() - 1) * share / 100] * 1e6;
        println!(
            "{states:>6} states, {tenants:>5} tenants: {} steps, median {:.0} us, p99 {:.0} us",
            plans.len(),
            at(50),
            at(99),
        );
    }
}

/// Lets all reads in while the first step runs, and waits until they are done.
fn wait_for_all(states: u32, tenants: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut config = Config::default();
        config.cache.kv_bytes = 1 << 40;
        config.scheduler.reads_max = 1 << 20;
        config.scheduler.tenant_reads_max = 1 << 20;
        for wait in [&mut config.scheduler.wait_normal, &mut config.scheduler.wait_batch] {
            *wait = Duration::MAX;
        }
        config.scheduler.tokens_max = u64::MAX;
        // A step is about as long as the real engine's, so that all reads come in during the first.
        let costs = Costs { step: 3.0, token: 1e-3, context: 0.0 };
        let handle = start(BenchEngine::new(Some(costs)), config).await.unwrap();
        let decisions = (0..READS).map(|number| {
            let handle = handle.clone();
            let (tenant, state) = (number % states % tenants, number % states);
            let prefix = prefix(tenant, state, 64);
            tokio::spawn(async move {
                let lane = [Lane::Normal, Lane::Batch][(number % 2) as usize];
                let tenant = TenantId(Arc::from(tenant.to_string()));
                let meta = DecisionMeta { tenant, ..meta(&prefix, lane, 1) };
                let mut decision = handle.open(meta).unwrap();
                let outcomes = decision.read(vec![read(number, 20)]).await.unwrap();
                assert!(outcomes.iter().all(Result::is_ok));
            })
        });
        for decision in decisions.collect::<Vec<_>>() {
            decision.await.unwrap();
        }
    });
}
