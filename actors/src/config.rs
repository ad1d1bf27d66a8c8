//! Limits of the actors: what each bounds, in which unit, and its default; checked as a whole before start.

mod cache;

use std::fmt;
use std::time::Duration;

use crate::engine::{Caps, PAGE_TOKENS};
use crate::read::Lane;

pub(crate) use cache::share;
pub use cache::{CacheConfig, OVERFLOW_STATES};

/// All settings of the actors; immutable after [`start`](crate::start).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// Queue, steps and drain.
    pub scheduler: SchedulerConfig,
    /// Residency of keys and values.
    pub cache: CacheConfig,
    /// Boundary registration.
    pub registration: RegistrationConfig,
}

/// Settings of the scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedulerConfig {
    /// Most tokens of one step; the engine's own limit applies too. More raises throughput and the
    /// time for which a newcomer waits. Default 512, at least 64.
    pub step_tokens_max: u32,
    /// Most rows of one step; the engine's own limit applies too. Default 64, at least 1.
    pub rows_max: u32,
    /// Most tokens of one state in one step while others may wait; a multiple of 64. Default 192.
    pub chunk_tokens: u32,
    /// Most reads that may wait. Default 1,024. A decision on an empty queue is never refused for it.
    pub reads_max: usize,
    /// Most unique tokens that may wait in a decision's lane and in those above it (a state counts
    /// once, zero if resident). Default 262,144. With nothing ahead nothing is refused for it.
    pub tokens_max: u64,
    /// Most reads of one tenant that may wait or run. Default 768: a quarter of the queue is left to
    /// others. A tenant of whom nothing waits is never refused for it. A tenant may have limits of its
    /// own, here and below ([`TenantLimits`](crate::TenantLimits)).
    pub tenant_reads_max: usize,
    /// Tokens a second that a tenant may ask for on average, counted as they would be computed when it
    /// is let in. 0, the default, is no limit.
    pub tenant_rate: u64,
    /// Tokens that a tenant may ask for at once after a pause, where there is a rate. Default 65,536.
    pub tenant_burst: u64,
    /// Longest predicted wait of a decision in the urgent lane; a longer one is refused at once. What
    /// counts is the work ahead of it. Default 1 s.
    pub wait_urgent: Duration,
    /// Likewise in the normal lane. Default 8 s: the official clients give up after 10.
    pub wait_normal: Duration,
    /// Likewise in the batch lane. Default 60 s, the time limit of a request. The idle lane has none.
    pub wait_batch: Duration,
    /// Longest wait for which refused decisions are told to come back one after the other; where the
    /// estimate alone is longer, that is told. Default 60 s: beyond it the official clients stop
    /// heeding it. More than 10 minutes counts as 10 minutes, 0 tells every one the estimate.
    pub retry_spread_max: Duration,
    /// Most refused decisions for which room is kept when they come back, a quarter of them of one
    /// tenant; further ones take the place of a tenant's that has more, or are told the longest
    /// wait. Default 4,096.
    pub retry_claims_max: usize,
    /// How many state groups that cannot run now may be passed over while a step is formed.
    /// Default 8.
    pub look_ahead: usize,
    /// The order in which what waits is run.
    pub order: OrderConfig,
    /// How often expired reads are looked for. Default 100 ms.
    pub tick: Duration,
    /// How long a drain lets admitted work go on. Default 30 s.
    pub drain_timeout: Duration,
    /// How many step failures that are no single item's fault make the engine dead, when more of
    /// them fall into [`failure_window`](Self::failure_window). Default 3.
    pub failures_max: usize,
    /// For how long a step failure counts. Default 60 s.
    pub failure_window: Duration,
    /// How many restarts after a panic of an actor are made within the failure window before the
    /// supervisor gives up. Default 3.
    pub restarts_max: usize,
}

/// By what the states of a tenant are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ranking {
    /// The least unique tokens to compute a waiting read.
    #[default]
    Work,
    /// The oldest waiting read: first come, first served. It is there to be compared with.
    Arrival,
}

/// In which order what waits is run.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderConfig {
    /// How long a step should take: it is given as many tokens as the measured speed allows, between
    /// 128 and [`step_tokens_max`](SchedulerConfig::step_tokens_max). Default 200 ms.
    pub step_target: Duration,
    /// After what wait a read of the batch or idle lane stands one lane higher. Default 30 s, half the
    /// limit of the batch lane: much earlier, bulk work would be ahead of normal work.
    pub raise_after: Duration,
    /// After what wait the lane of a read comes first in every other step. Default 45 s.
    pub age_max: Duration,
    /// At every so many steps the normal or the batch lane, whichever has waited longer by its limit,
    /// comes ahead of the more urgent ones, if something in it has waited for a quarter of that.
    /// Default 8, at least 2.
    pub oldest_every: u64,
    /// Tokens within which two tenants count as equally served, so that the better state wins.
    /// Default 1,000, at least 1.
    pub quantum_tokens: u64,
    /// By what the states of a tenant are ordered. Default `Work`.
    pub ranking: Ranking,
}

impl OrderConfig {
    fn check(&self, faults: &mut Faults) {
        faults.positive(self.step_target, "scheduler.order.step_target");
        faults.positive(self.age_max, "scheduler.order.age_max");
        faults.require(self.oldest_every > 1, "scheduler.order.oldest_every", || {
            format!("{} is given, at least 2 is needed", self.oldest_every)
        });
        faults.at_least_one(usize::from(self.quantum_tokens > 0), "scheduler.order.quantum_tokens");
    }
}

impl Default for OrderConfig {
    fn default() -> Self {
        Self {
            step_target: Duration::from_millis(200),
            raise_after: Duration::from_secs(30),
            age_max: Duration::from_secs(45),
            oldest_every: 8,
            quantum_tokens: 1_000,
            ranking: Ranking::Work,
        }
    }
}

/// When states are registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Register {
    /// After the response of a decision: its state stays resident.
    #[default]
    After,
    /// Never: a state's pages go with the last lease of a state that has them.
    Off,
}

/// Settings of boundary registration.
#[derive(Debug, Clone, PartialEq)]
pub struct RegistrationConfig {
    /// When states are registered. Default `After`.
    pub when: Register,
    /// Most registrations that wait; the oldest is dropped for a newer one. Default 256.
    pub pending_max: usize,
    /// How long a registration may wait before it is dropped. Default 30 s.
    pub ttl: Duration,
}

/// One fault of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The setting, for example `scheduler.chunk_tokens`.
    pub field: &'static str,
    /// What is wrong, with the value and the limit.
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.message)
    }
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            step_tokens_max: 512,
            rows_max: 64,
            chunk_tokens: 192,
            reads_max: 1_024,
            tokens_max: 262_144,
            tenant_reads_max: 768,
            tenant_rate: 0,
            tenant_burst: 65_536,
            wait_urgent: Duration::from_secs(1),
            wait_normal: Duration::from_secs(8),
            wait_batch: Duration::from_mins(1),
            retry_spread_max: Duration::from_mins(1),
            retry_claims_max: 4_096,
            look_ahead: 8,
            order: OrderConfig::default(),
            tick: Duration::from_millis(100),
            drain_timeout: Duration::from_secs(30),
            failures_max: 3,
            failure_window: Duration::from_mins(1),
            restarts_max: 3,
        }
    }
}

impl Default for RegistrationConfig {
    fn default() -> Self {
        Self { when: Register::After, pending_max: 256, ttl: Duration::from_secs(30) }
    }
}

/// Collects faults, so that all of them are reported at once.
#[derive(Default)]
struct Faults(Vec<ConfigProblem>);

impl Faults {
    fn require(&mut self, holds: bool, field: &'static str, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(ConfigProblem { field, message: message() });
        }
    }

    fn at_least_one(&mut self, value: usize, field: &'static str) {
        self.require(value > 0, field, || "0 is given, at least 1 is needed".to_owned());
    }

    fn positive(&mut self, value: Duration, field: &'static str) {
        self.require(!value.is_zero(), field, || "0 s is given, more is needed".to_owned());
    }

    fn into_result(self) -> Result<(), Vec<ConfigProblem>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}

impl Config {
    /// Checks all settings.
    ///
    /// # Errors
    /// Every fault, each with its value and limit.
    pub fn validate(&self) -> Result<(), Vec<ConfigProblem>> {
        let results =
            [self.scheduler.validate(), self.cache.validate(), self.registration.validate()];
        let faults: Vec<_> = results.into_iter().filter_map(Result::err).flatten().collect();
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }
}

impl SchedulerConfig {
    /// After what wait something in each lane has waited long: a quarter of the lane's limit; in the
    /// idle lane, which has none, half that of the batch lane.
    pub(crate) fn patience(&self) -> [Duration; 4] {
        [self.wait_urgent / 4, self.wait_normal / 4, self.wait_batch / 4, self.wait_batch / 2]
    }

    /// Longest predicted wait with which a decision is let into `lane`; the idle lane has no limit.
    pub fn wait_max(&self, lane: Lane) -> Option<Duration> {
        match lane {
            Lane::Urgent => Some(self.wait_urgent),
            Lane::Normal => Some(self.wait_normal),
            Lane::Batch => Some(self.wait_batch),
            Lane::Idle => None,
        }
    }

    /// Checks these settings.
    ///
    /// # Errors
    /// Every fault.
    pub fn validate(&self) -> Result<(), Vec<ConfigProblem>> {
        let mut faults = Faults::default();
        let (page, tokens, chunk) = (PAGE_TOKENS, self.step_tokens_max, self.chunk_tokens);
        faults.require(tokens >= page, "scheduler.step_tokens_max", || {
            format!("{tokens} is given, at least {page} is needed")
        });
        faults.require(chunk > 0 && chunk % page == 0, "scheduler.chunk_tokens", || {
            format!("{chunk} is given, a multiple of {page} is needed")
        });
        faults.at_least_one(self.rows_max as usize, "scheduler.rows_max");
        faults.at_least_one(self.reads_max, "scheduler.reads_max");
        faults.at_least_one(usize::from(self.tokens_max > 0), "scheduler.tokens_max");
        faults.at_least_one(self.tenant_reads_max, "scheduler.tenant_reads_max");
        faults.at_least_one(usize::from(self.tenant_burst > 0), "scheduler.tenant_burst");
        faults.at_least_one(self.look_ahead, "scheduler.look_ahead");
        self.order.check(&mut faults);
        faults.positive(self.tick, "scheduler.tick");
        faults.positive(self.failure_window, "scheduler.failure_window");
        faults.into_result()
    }

    /// Tokens and rows of one step, the engine's limits included.
    pub(crate) fn budget(&self, caps: &Caps) -> (u32, u32) {
        let tokens = self.step_tokens_max.min(caps.step_tokens_max).max(1);
        (tokens, self.rows_max.min(caps.rows_max).max(1))
    }
}

impl RegistrationConfig {
    /// Checks these settings.
    ///
    /// # Errors
    /// Every fault.
    pub fn validate(&self) -> Result<(), Vec<ConfigProblem>> {
        let mut faults = Faults::default();
        faults.at_least_one(self.pending_max, "registration.pending_max");
        faults.positive(self.ttl, "registration.ttl");
        faults.into_result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Config::default().validate(), Ok(()));
    }

    #[test]
    fn all_faults_are_reported_at_once() {
        let mut config = Config::default();
        config.scheduler.chunk_tokens = 100;
        config.cache.pin_ratio = f64::NAN;
        config.registration.ttl = Duration::ZERO;
        let faults = config.validate().unwrap_err();
        let fields: Vec<_> = faults.iter().map(|fault| fault.field).collect();
        assert_eq!(fields, ["scheduler.chunk_tokens", "cache.pin_ratio", "registration.ttl"]);
        assert_eq!(faults[0].message, "100 is given, a multiple of 64 is needed");
    }
}
