//! Reads a second through the actors, over an engine that costs nothing.

use std::sync::Arc;
use std::time::Instant;

use actors::{Config, DecisionMeta, Handle, Lane, Prefix, TenantId, start};

use crate::engine::{BenchEngine, prefix, read};

const CLIENTS: u32 = 32;
const DECISIONS: u32 = 1_000;
const READS: [u32; 3] = [1, 4, 16];
const RUNS: usize = 5;

pub(crate) fn run() {
    println!("reads through the actors, zero-cost engine, {CLIENTS} clients, median of {RUNS}");
    for reads in READS {
        let mut rates: Vec<f64> = (0..RUNS).map(|_| rate(reads)).collect();
        rates.sort_by(f64::total_cmp);
        let (median, most) = (rates[RUNS / 2], rates[RUNS - 1]);
        println!("{reads:>3} reads a decision: {median:>8.0} reads/s ({:.0}-{most:.0})", rates[0]);
    }
}

fn rate(reads: u32) -> f64 {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut config = Config::default();
        config.cache.kv_bytes = 1 << 30;
        config.scheduler.reads_max = 1 << 20;
        config.scheduler.tenant_reads_max = 1 << 20;
        let handle = start(BenchEngine::new(None), config).await.unwrap();
        let states: Arc<[Prefix]> = (0..100).map(|state| prefix(1, state, 100)).collect();
        let began = Instant::now();
        let clients = (0..CLIENTS)
            .map(|client| tokio::spawn(decide(handle.clone(), Arc::clone(&states), client, reads)));
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
        f64::from(CLIENTS * DECISIONS * reads) / began.elapsed().as_secs_f64()
    })
}

async fn decide(handle: Handle, states: Arc<[Prefix]>, client: u32, reads: u32) {
    for number in 0..DECISIONS {
        let prefix = &states[((client + number) % 100) as usize];
        let mut decision = handle.open(meta(prefix, Lane::Normal, reads)).unwrap();
        let first = (client * DECISIONS + number) * reads;
        let specs = (first..first + reads).map(|read_number| read(read_number, 20)).collect();
        for outcome in decision.read(specs).await.unwrap() {
            outcome.unwrap();
        }
        decision.responded();
    }
}

/// A decision of one stage.
pub(crate) fn meta(prefix: &Prefix, lane: Lane, reads: u32) -> DecisionMeta {
    DecisionMeta {
        tenant: TenantId("t".into()),
        lane,
        deadline: None,
        deadline_is_asked: false,
        prefix: prefix.clone(),
        first_reads: reads as usize,
        first_tokens: u64::from(20 * reads),
        suffix_tokens_max: 64,
    }
}
