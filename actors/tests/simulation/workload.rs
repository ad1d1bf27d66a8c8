//! What clients do, drawn from a seed.

use std::collections::BTreeMap;
use std::time::Duration;

use actors::{Config, Lane, Prefix, ReadSpec, Register, TenantId, TenantLimits};

use crate::fake::{NAN, POISON, faulty, prefix, prefix_of, spec};

/// A small generator of random numbers (splitmix64); the only source of chance.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0x9E37_79B9_7F4A_7C15)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        u32::try_from(self.next() % u64::from(limit)).unwrap()
    }

    /// True `percent` times in a hundred.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(u32::try_from(choices.len()).unwrap()) as usize].clone()
    }

    pub(crate) fn millis(&mut self, limit: u32) -> Duration {
        Duration::from_micros(u64::from(self.below(limit * 1_000)))
    }
}

/// What one client does.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) at: Duration,
    pub(crate) tenant: u32,
    pub(crate) prefix: Prefix,
    pub(crate) lane: Lane,
    pub(crate) stages: Vec<Vec<ReadSpec>>,
    pub(crate) pause: Duration,
    pub(crate) deadline: Option<Duration>,
    pub(crate) gives_up: Option<Duration>,
    pub(crate) responds: bool,
    pub(crate) prewarms: bool,
    pub(crate) waits: bool,
}

/// One simulated run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) clients: Vec<Client>,
    pub(crate) drain_at: Option<Duration>,
    /// Whether all goes well: no fault, cancel, expiry, refusal or drain.
    pub(crate) is_calm: bool,
}

pub(crate) fn draw(dice: &mut Dice) -> Plan {
    let is_calm = dice.chance(30);
    let config = draw_config(dice, is_calm);
    let count = 3 + dice.below(40);
    let mut clients: Vec<_> = (0..count).map(|_| draw_client(dice, is_calm)).collect();
    if dice.chance(25) {
        // One tenant asks for most.
        let hog = (0..2 * count).map(|_| Client { tenant: 0, ..draw_client(dice, is_calm) });
        clients.extend(hog);
    }
    // Drawn apart, so that all else of a seed stays what it was.
    let mut other = Dice::new(dice.clone().next());
    for client in &mut clients {
        client.prefix = draw_related(&mut other, client.prefix.clone());
    }
    let drains = !is_calm && dice.chance(30);
    let drain_at = drains.then(|| dice.millis(6_000));
    Plan { config, clients, drain_at, is_calm }
}

fn draw_config(dice: &mut Dice, is_calm: bool) -> Config {
    let mut config = Config::default();
    config.cache.kv_bytes = dice.one_of(&[0, 400, 1_500, 6_000, 1_000_000]);
    config.cache.pin_ratio = dice.one_of(&[0.0, 0.25, 1.0]);
    config.cache.prewarm_ttl = Duration::from_secs(2);
    config.scheduler.step_tokens_max = dice.one_of(&[64, 200, 512]);
    config.scheduler.chunk_tokens = dice.one_of(&[64, 192]);
    config.scheduler.rows_max = dice.one_of(&[1, 7, 64]);
    config.scheduler.look_ahead = dice.one_of(&[1, 8]);
    config.scheduler.drain_timeout = dice.millis(4_000);
    let order = &mut config.scheduler.order;
    order.step_target = dice.one_of(&[Duration::from_millis(20), Duration::from_millis(200)]);
    order.raise_after = dice.one_of(&[Duration::ZERO, Duration::from_millis(500)]);
    order.age_max = dice.one_of(&[Duration::from_millis(100), Duration::from_secs(2)]);
    order.oldest_every = dice.one_of(&[2, 8]);
    order.quantum_tokens = dice.one_of(&[1, 200, 1_000]);
    if is_calm {
        config.scheduler.wait_urgent = Duration::MAX;
        config.scheduler.wait_normal = Duration::MAX;
        config.scheduler.wait_batch = Duration::MAX;
    } else if dice.chance(30) {
        config.scheduler.reads_max = 20;
        config.scheduler.tenant_reads_max = dice.one_of(&[5, 15, 1_000]);
    }
    config.registration.when = dice.one_of(&[Register::After, Register::Off]);
    config.registration.pending_max = dice.one_of(&[1, 256]);
    config
}

/// The state itself, or one that has grown out of it, diverges from it, or is a part of it.
fn draw_related(dice: &mut Dice, prefix: Prefix) -> Prefix {
    let (tenant, state) = (dice.below(2), dice.below(8));
    let all = state * state * 17;
    match dice.below(6) {
        0 => prefix_of(tenant, &[(state, all), (90, 1 + dice.below(200))]),
        1 => prefix_of(tenant, &[(state, all), (90, 60), (91 + dice.below(2), 70)]),
        2 => prefix_of(tenant, &[(state, 1 + dice.below(all + 1)), (93, dice.below(90))]),
        _ => prefix,
    }
}

fn draw_client(dice: &mut Dice, is_calm: bool) -> Client {
    let tenant = dice.below(2);
    let state = dice.below(8);
    let stages = 1 + dice.below(2);
    Client {
        at: dice.millis(5_000),
        tenant,
        prefix: prefix(tenant, state, state * state * 17),
        lane: dice.one_of(&Lane::ALL),
        stages: (0..stages).map(|_| draw_stage(dice, is_calm)).collect(),
        pause: dice.millis(300),
        deadline: (!is_calm && dice.chance(25)).then(|| dice.millis(4_000)),
        gives_up: (!is_calm && dice.chance(25)).then(|| dice.millis(2_000)),
        responds: is_calm || dice.chance(80),
        prewarms: dice.chance(15),
        waits: dice.chance(50),
    }
}

fn draw_stage(dice: &mut Dice, is_calm: bool) -> Vec<ReadSpec> {
    (0..=dice.below(6))
        .map(|_| match dice.below(100) {
            0..2 if !is_calm => faulty(POISON),
            2..4 if !is_calm => faulty(NAN),
            _ => spec(dice.below(12), 1 + dice.below(90)),
        })
        .collect()
}

/// Limits of the two tenants, or of one, or of none; in a calm run none that refuses anything.
pub(crate) fn draw_limits(dice: &mut Dice, is_calm: bool) -> BTreeMap<TenantId, TenantLimits> {
    let mut limits = BTreeMap::new();
    for tenant in [0, 1] {
        if dice.chance(30) {
            continue;
        }
        let mut own = TenantLimits {
            weight: dice.one_of(&[1, 2, 7]),
            kv_bytes_max: dice.one_of(&[None, Some(0), Some(300), Some(2_000)]),
            pin_bytes_max: dice.one_of(&[None, Some(0), Some(1_000)]),
            ..TenantLimits::default()
        };
        if !is_calm && dice.chance(50) {
            own.reads_max = dice.one_of(&[None, Some(0), Some(8)]);
            own.queue_share = dice.one_of(&[1.0, 0.01]);
            own.tokens_per_minute = dice.one_of(&[None, Some(1_000), Some(100_000)]);
        }
        limits.insert(TenantId(tenant.to_string().into()), own);
    }
    limits
}
