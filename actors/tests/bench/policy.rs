//! What the order of the queue and admission do for those who wait: four policies, four loads, in
//! virtual time, with the real engine's measured costs.

use std::time::Duration;

use actors::{Config, DecisionMeta, Handle, Lane, Ranking, ReadError, TenantId, start};
use tokio::time::{Instant, sleep_until};

use crate::engine::{BenchEngine, Costs, prefix, read};
use crate::throughput::meta;
use crate::workload::{Arrival, TENANTS, draw};

/// SmolLM2-135M in 8 bits on one thread of the machine that docs/BENCHMARKS.md names: the curve through
/// its times for 64, 512 and 1,024 tokens (60.7, 505 and 1,161 ms).
const COSTS: Costs = Costs { step: 7e-3, token: 0.82e-3, context: 6.0e-7 };
/// Virtual length of a run.
const SECONDS: f64 = 600.0;
/// Seconds of work that may be left when arrivals end: three documents.
const LEFT_MAX: f64 = 20.0;
/// What comes before counts for nothing: the cache is cold.
const WARM_UP: f64 = 60.0;
const LOADS: [f64; 4] = [0.6, 1.0, 1.5, 2.5];
const SEEDS: u64 = 3;
/// Keys and values that fit: 60,000 tokens.
const KV_TOKENS: u64 = 60_000;
const LANES: [Lane; 3] = [Lane::Urgent, Lane::Normal, Lane::Batch];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    FirstCome,
    ByState,
    OrderOnly,
    Docket,
    /// docket, whose callers take the lane that a refusal offers them.
    Offers,
}

const POLICIES: [(Policy, &str); 5] = [
    (Policy::FirstCome, "first come, no admission"),
    (Policy::ByState, "by state, no admission"),
    (Policy::OrderOnly, "docket's order, no admission"),
    (Policy::Docket, "docket"),
    (Policy::Offers, "docket, offers taken"),
];

/// How one decision ended.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Answered { lane: Lane, tenant: usize, latency: Duration, tokens: u32, moved: bool },
    Refused { lane: Lane },
    Lost { lane: Lane },
}

pub(crate) fn run(seed: u64) {
    let capacity = capacity(seed);
    println!("capacity: {capacity:.2} decisions/s (first come keeps its queue bounded)");
    println!(
        "| load | policy | urgent p50 / p99 s | normal p99 s | batch p99 s | mean s | goodput | refused u / n / b % | moved % | late % | computed tokens/s | answered tokens/s | Jain |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for load in LOADS {
        for (policy, name) in POLICIES {
            let runs = (seed..seed + SEEDS).map(|seed| play(policy, seed, capacity * load));
            row(load, name, &runs.collect::<Vec<_>>());
        }
    }
}

/// The highest rate at which first-come order without admission keeps its queue bounded: when
/// arrivals end, what waits is done within the time of some documents.
fn capacity(seed: u64) -> f64 {
    let (mut low, mut high) = (0.1, 20.0);
    while high / low > 1.02 {
        let rate = f64::sqrt(low * high);
        let runs = (seed..seed + SEEDS).map(|seed| play(Policy::FirstCome, seed, rate));
        let left = runs.map(|run| run.left).sum::<f64>() / SEEDS as f64;
        if left < LEFT_MAX { low = rate } else { high = rate }
    }
    low
}

/// What a run gave, after its warm-up.
struct Outcome {
    endings: Vec<Ending>,
    /// Seconds from the last arrival until all is done.
    left: f64,
    tokens_per_second: f64,
    answered_per_second: f64,
}

fn play(policy: Policy, seed: u64, rate: f64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let handle = start(BenchEngine::new(Some(COSTS)), config(policy)).await.unwrap();
        let began = Instant::now();
        let arrivals = draw(seed, rate, SECONDS);
        let mut tasks = Vec::new();
        for (number, arrival) in (0..).zip(arrivals) {
            sleep_until(began + arrival.at).await;
            tasks.push((arrival.at, tokio::spawn(decide(handle.clone(), policy, number, arrival))));
        }
        let ended = Instant::now();
        let (mut endings, mut answered) = (Vec::new(), 0);
        for (at, task) in tasks {
            let ending = task.await.unwrap();
            answered += ending.tokens();
            if at.as_secs_f64() < WARM_UP {
                continue;
            }
            endings.push(ending);
        }
        // Until all is answered: an order that puts the long ones off has them yet to do.
        let computed = handle.snapshot().load.totals.computed_tokens;
        let rate = |tokens: u64| tokens as f64 / began.elapsed().as_secs_f64();
        let (tokens_per_second, answered_per_second) = (rate(computed), rate(answered));
        let left = ended.elapsed().as_secs_f64();
        Outcome { endings, left, tokens_per_second, answered_per_second }
    })
}

fn config(policy: Policy) -> Config {
    let mut config = Config::default();
    config.cache.kv_bytes = KV_TOKENS;
    let scheduler = &mut config.scheduler;
    if !policy.admits() {
        scheduler.reads_max = 1 << 24;
        scheduler.tenant_reads_max = 1 << 24;
        scheduler.tokens_max = u64::MAX;
        scheduler.wait_urgent = Duration::MAX;
        scheduler.wait_normal = Duration::MAX;
        scheduler.wait_batch = Duration::MAX;
    }
    if matches!(policy, Policy::FirstCome | Policy::ByState) {
        // One lane and one tenant; nothing comes out of turn.
        scheduler.order.age_max = Duration::MAX;
        scheduler.order.oldest_every = u64::MAX;
    }
    if policy == Policy::FirstCome {
        scheduler.order.ranking = Ranking::Arrival;
    }
    config
}

async fn decide(handle: Handle, policy: Policy, number: u32, arrival: Arrival) -> Ending {
    let mut lane = arrival.lane;
    loop {
        match ask(&handle, policy, number, &arrival, lane).await {
            Err(ReadError::Rejected(reason)) => match reason.downgrade() {
                Some(lower) if policy == Policy::Offers => lane = lower,
                _ => return Ending::Refused { lane: arrival.lane },
            },
            Err(_) => return Ending::Lost { lane },
            Ok(latency) => {
                let Arrival { tenant, state_tokens, reads, suffix_tokens, .. } = arrival;
                let (tokens, moved) = (state_tokens + reads * suffix_tokens, lane != arrival.lane);
                return Ending::Answered { lane, tenant, latency, tokens, moved };
            }
        }
    }
}

async fn ask(
    handle: &Handle,
    policy: Policy,
    number: u32,
    arrival: &Arrival,
    lane: Lane,
) -> Result<Duration, ReadError> {
    let at = Instant::now();
    let Arrival { tenant, state, state_tokens, reads, suffix_tokens, .. } = *arrival;
    let prefix = prefix(u32::try_from(tenant).unwrap(), state, state_tokens);
    let is_plain = matches!(policy, Policy::FirstCome | Policy::ByState);
    // With admission a caller says until when an answer is of use to it; without, all wait for theirs.
    let limit = Config::default().scheduler.wait_max(lane).filter(|_| policy.admits());
    let meta = DecisionMeta {
        deadline: limit.map(|limit| at + limit),
        deadline_is_asked: limit.is_some(),
        tenant: TenantId(if is_plain { "all".into() } else { tenant.to_string().into() }),
        first_tokens: u64::from(reads * suffix_tokens),
        suffix_tokens_max: suffix_tokens,
        ..meta(&prefix, if is_plain { Lane::Normal } else { lane }, reads)
    };
    let mut decision = handle.open(meta)?;
    let specs = (0..reads).map(|index| read(number * 8 + index, suffix_tokens)).collect();
    decision.read(specs).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
    decision.responded();
    Ok(at.elapsed())
}

impl Policy {
    fn admits(self) -> bool {
        matches!(self, Self::Docket | Self::Offers)
    }
}

impl Ending {
    fn lane(self) -> Lane {
        match self {
            Self::Answered { lane, .. } | Self::Refused { lane } | Self::Lost { lane } => lane,
        }
    }

    fn tokens(self) -> u64 {
        match self {
            Self::Answered { tokens, .. } => tokens.into(),
            Self::Refused { .. } | Self::Lost { .. } => 0,
        }
    }

    fn latency(self) -> Option<f64> {
        match self {
            Self::Answered { latency, .. } => Some(latency.as_secs_f64()),
            Self::Refused { .. } | Self::Lost { .. } => None,
        }
    }
}

/// What one lane saw.
struct LaneSeen {
    /// Latencies of what was answered, in order.
    latencies: Vec<f64>,
    in_time: usize,
    /// Admitted, and not answered in the time that was asked for.
    lost: usize,
    refused: usize,
}

impl LaneSeen {
    fn of(lane: Lane, endings: &[Ending]) -> Self {
        let limit = Config::default().scheduler.wait_max(lane).unwrap().as_secs_f64();
        let of_lane: Vec<_> = endings.iter().filter(|ending| ending.lane() == lane).collect();
        let mut latencies: Vec<f64> =
            of_lane.iter().filter_map(|ending| ending.latency()).collect();
        latencies.sort_by(f64::total_cmp);
        let count = |is: fn(&Ending) -> bool| of_lane.iter().filter(|ending| is(ending)).count();
        Self {
            in_time: latencies.iter().filter(|latency| **latency <= limit).count(),
            lost: count(|ending| matches!(ending, Ending::Lost { .. })),
            refused: count(|ending| matches!(ending, Ending::Refused { .. })),
            latencies,
        }
    }

    /// The latency that so many of 100 do not exceed.
    fn percentile(&self, share: usize) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get(last * share / 100).copied().unwrap_or(0.0)
    }

    fn admitted(&self) -> usize {
        self.latencies.len() + self.lost
    }

    fn refused_percent(&self) -> f64 {
        100.0 * self.refused as f64 / (self.admitted() + self.refused).max(1) as f64
    }
}

fn row(load: f64, name: &str, runs: &[Outcome]) {
    let endings: Vec<Ending> = runs.iter().flat_map(|run| run.endings.iter().copied()).collect();
    let [urgent, normal, batch] = LANES.map(|lane| LaneSeen::of(lane, &endings));
    let lanes = [&urgent, &normal, &batch];
    let admitted: usize = lanes.iter().map(|lane| lane.admitted()).sum();
    let in_time: usize = lanes.iter().map(|lane| lane.in_time).sum();
    let lost: usize = lanes.iter().map(|lane| lane.lost).sum();
    let latencies = || lanes.iter().flat_map(|lane| &lane.latencies);
    let mean = latencies().sum::<f64>() / latencies().count().max(1) as f64;
    let goodput = in_time as f64 / admitted.max(1) as f64;
    let late = 100.0 * lost as f64 / admitted.max(1) as f64;
    let moved =
        endings.iter().filter(|e| matches!(e, Ending::Answered { moved: true, .. })).count();
    let moved = 100.0 * moved as f64 / endings.len().max(1) as f64;
    let mean_of = |of: fn(&Outcome) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let computed = mean_of(|run| run.tokens_per_second);
    let answered = mean_of(|run| run.answered_per_second);
    let refused = lanes.map(|lane| format!("{:.1}", lane.refused_percent())).join(" / ");
    let [p50, p99] = [50, 99].map(|share| urgent.percentile(share));
    let (normal, batch, jain) = (normal.percentile(99), batch.percentile(99), jain(&endings));
    println!(
        "| {load} | {name} | {p50:.2} / {p99:.2} | {normal:.1} | {batch:.1} | {mean:.2} | {goodput:.3} \
         | {refused} | {moved:.1} | {late:.1} | {computed:.0} | {answered:.0} | {jain:.2} |"
    );
}

/// Jain's index over the mean latencies of the tenants that are no hog: 1 where all wait alike.
fn jain(endings: &[Ending]) -> f64 {
    let mut sums = [(0.0, 0.0); TENANTS];
    for ending in endings {
        if let Ending::Answered { tenant, latency, .. } = ending {
            sums[*tenant].0 += latency.as_secs_f64();
            sums[*tenant].1 += 1.0;
        }
    }
    let means: Vec<f64> = sums[1..]
        .iter()
        .filter(|(_, count)| *count > 0.0)
        .map(|(sum, count)| sum / count)
        .collect();
    let sum: f64 = means.iter().sum();
    let squares: f64 = means.iter().map(|mean| mean * mean).sum();
    sum * sum / (means.len() as f64 * squares)
}
