//! Admission: whether a decision may join what waits, and when to come back if not.
//!
//! All or nothing, before any mailbox: by reads, by unique tokens, and by the wait that the work
//! *ahead* of the newcomer means at the measured speed. What waits or runs in lower lanes is not ahead,
//! so that bulk work never turns an urgent decision away; if it fills the queue, it makes room. With
//! nothing ahead, nothing is refused for time but what its own caller's limit cannot bear.

use std::time::Duration;

use crate::config::{SchedulerConfig, share};
use crate::error::RejectReason;
use crate::read::Lane;
use crate::tenants::{Bucket, Found};

/// When nothing is known about the speed yet, this is what a refused caller is told to wait.
const RETRY_AFTER_UNKNOWN: Duration = Duration::from_secs(1);
/// Bounds of what a refused caller is told to wait by a forecast.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(100);
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_mins(10);

/// What waits now, what has been let in but has not arrived included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Backlog {
    /// Reads that wait, by lane.
    pub(crate) reads: [usize; 4],
    /// Of these, reads of decisions none of whose reads has run.
    pub(crate) displaceable: [usize; 4],
    /// Unique tokens that wait, by lane.
    pub(crate) tokens: [u64; 4],
    /// What is left of the running step.
    pub(crate) step_tokens: u64,
    /// Of these, by the lane in which they were taken.
    pub(crate) step_lanes: [u64; 4],
    /// Which part of its tokens the engine ran for each lane of late.
    pub(crate) shares: [f64; 4],
    pub(crate) tokens_per_second: f64,
    /// What the newcomer's tenant has and may have.
    pub(crate) tenant: Found,
}

/// What a newcomer adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newcomer {
    pub(crate) lane: Lane,
    pub(crate) reads: usize,
    pub(crate) tokens: u64,
    /// Time that is left to it, if its caller has set a limit.
    pub(crate) time_left: Option<Duration>,
    /// Whether others were refused and told to come back: then it finds [`HALF`] of the room.
    pub(crate) gives_way: bool,
}

/// Which part of the queue's limits holds for who gives way.
const HALF: f64 = 0.5;

impl Newcomer {
    /// What of a limit holds for it.
    fn room(&self, limit: u64) -> u64 {
        if self.gives_way { share(limit, HALF) } else { limit }
    }

    fn room_in_time(&self, limit: Duration) -> Duration {
        if self.gives_way { limit.mul_f64(HALF) } else { limit }
    }
}

/// How a newcomer was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// There is room.
    AsIs,
    /// There is room once decisions of lower lanes have left.
    Displacing,
}

/// Accepts or refuses `newcomer`.
pub(crate) fn admit(
    backlog: Backlog,
    newcomer: Newcomer,
    limits: &SchedulerConfig,
) -> Result<Admitted, RejectReason> {
    let refused = match check(backlog, newcomer, limits) {
        Ok(admitted) => return Ok(admitted),
        Err(refused) => refused,
    };
    if let RejectReason::WaitTooLong { lane, wait, limit, retry_after, .. } = refused {
        let downgrade = lower(lane).find(|lane| is_let_in(backlog, newcomer, *lane, limits));
        return Err(RejectReason::WaitTooLong { lane, wait, limit, downgrade, retry_after });
    }
    if let RejectReason::PastDeadline { wait, left, retry_after, .. } = refused {
        let with_its_limit = |lane: &Lane| {
            let time_left = newcomer.time_left.max(limits.wait_max(*lane));
            is_let_in(backlog, Newcomer { time_left, ..newcomer }, *lane, limits)
        };
        let downgrade = lower(newcomer.lane).find(with_its_limit);
        return Err(RejectReason::PastDeadline { wait, left, downgrade, retry_after });
    }
    Err(refused)
}

/// Lanes below one that a caller may be told to use instead; the idle lane is for no one who waits.
fn lower(lane: Lane) -> impl Iterator<Item = Lane> {
    [Lane::Normal, Lane::Batch].into_iter().filter(move |lower| *lower > lane)
}

fn is_let_in(backlog: Backlog, newcomer: Newcomer, lane: Lane, limits: &SchedulerConfig) -> bool {
    check(backlog, Newcomer { lane, ..newcomer }, limits) == Ok(Admitted::AsIs)
}

fn check(
    backlog: Backlog,
    newcomer: Newcomer,
    limits: &SchedulerConfig,
) -> Result<Admitted, RejectReason> {
    check_tenant(backlog, newcomer, limits)?;
    check_wait(backlog, newcomer, limits)?;
    check_tokens(backlog, newcomer, limits)?;
    check_reads(backlog, newcomer, limits)
}

fn check_tenant(
    backlog: Backlog,
    newcomer: Newcomer,
    limits: &SchedulerConfig,
) -> Result<(), RejectReason> {
    let tenant = backlog.tenant;
    let full = |reads_waiting, reads_max| {
        let retry_after = drain_time(backlog, Lane::Idle);
        Err(RejectReason::TenantFull { reads_waiting, reads_max, retry_after })
    };
    let reads_max = tenant.reads_max.unwrap_or(limits.tenant_reads_max);
    if tenant.reads > 0 && tenant.reads + newcomer.reads > reads_max {
        return full(tenant.reads, reads_max);
    }
    let part = |queue_share| share(limits.reads_max as u64, queue_share);
    let waiting_max = tenant.queue_share.and_then(|share| usize::try_from(part(share)).ok());
    let is_beyond = |waiting_max: &usize| tenant.waiting + newcomer.reads > *waiting_max;
    if let (1.., Some(waiting_max)) = (tenant.waiting, waiting_max.filter(is_beyond)) {
        return full(tenant.waiting, waiting_max);
    }
    tenant.bucket.map_or(Ok(()), |bucket| check_bucket(bucket, newcomer))
}

/// A full bucket lets everything in, also what is larger than itself.
fn check_bucket(bucket: Bucket, newcomer: Newcomer) -> Result<(), RejectReason> {
    let Bucket { held, burst, per_minute } = bucket;
    let needed = newcomer.tokens.min(burst) as f64;
    if needed <= held {
        return Ok(());
    }
    // What is owed is known, and no forecast: it is told however long it takes to flow in.
    let minutes = (needed - held) / per_minute as f64;
    let retry_after = Duration::try_from_secs_f64(minutes * 60.0).unwrap_or(Duration::MAX);
    Err(RejectReason::TenantRate {
        tokens: newcomer.tokens,
        rate: per_minute,
        burst,
        retry_after: retry_after.max(RETRY_AFTER_MIN),
    })
}

fn check_reads(
    backlog: Backlog,
    newcomer: Newcomer,
    limits: &SchedulerConfig,
) -> Result<Admitted, RejectReason> {
    let reads: usize = backlog.reads.iter().sum();
    let reads_max = usize::try_from(newcomer.room(limits.reads_max as u64)).unwrap_or(usize::MAX);
    let excess = (reads + newcomer.reads).saturating_sub(reads_max);
    if reads == 0 || excess == 0 {
        return Ok(Admitted::AsIs);
    }
    let below = &backlog.displaceable[newcomer.lane as usize + 1..];
    if below.iter().sum::<usize>() >= excess {
        return Ok(Admitted::Displacing);
    }
    Err(RejectReason::QueueFull {
        reads_waiting: reads,
        reads_max,
        retry_after: drain_time(backlog, Lane::Idle),
    })
}

fn check_tokens(
    backlog: Backlog,
    newcomer: Newcomer,
    limits: &SchedulerConfig,
) -> Result<(), RejectReason> {
    // What waits in lower lanes comes after the newcomer and is not held against it.
    let tokens_waiting = tokens_to(backlog, newcomer.lane);
    let tokens_max = newcomer.room(limits.tokens_max);
    if tokens_waiting > 0 && tokens_waiting.saturating_add(newcomer.tokens) > tokens_max {
        let retry_after = drain_time(backlog, newcomer.lane);
        return Err(RejectReason::TokensFull { tokens_waiting, tokens_max, retry_after });
    }
    Ok(())
}

fn check_wait(
    backlog: Backlog,
    newcomer: Newcomer,
    limits: &SchedulerConfig,
) -> Result<(), RejectReason> {
    // A step of lower lanes ends whoever is refused meanwhile, and what comes next is the newcomer.
    let lane = newcomer.lane;
    let ahead = wait_for(backlog, lane, step_tokens_to(backlog, lane));
    let limit = limits.wait_max(lane).map(|limit| newcomer.room_in_time(limit));
    if let Some(limit) = limit.filter(|limit| ahead > *limit) {
        let retry_after = clamp(ahead.saturating_sub(limit));
        let downgrade = None;
        return Err(RejectReason::WaitTooLong { lane, wait: ahead, limit, downgrade, retry_after });
    }
    let wait = wait(backlog, lane);
    if wait.is_zero() {
        return Ok(());
    }
    let own = seconds(newcomer.tokens, backlog.tokens_per_second);
    if let Some(left) = newcomer.time_left.filter(|left| wait.saturating_add(own) > *left) {
        let (wait, retry_after, downgrade) = (wait.saturating_add(own), clamp(wait), None);
        return Err(RejectReason::PastDeadline { wait, left, downgrade, retry_after });
    }
    Ok(())
}

/// The most of the engine that higher lanes are taken to need: the oldest state gets its turn
/// whatever they do.
const SHARE_MAX: f64 = 0.9;

/// What a newcomer in `lane` would wait for: the unique tokens of the same and of higher lanes, and
/// the rest of the running step, at what the measured speed leaves to the lane while higher lanes go
/// on as they did. Zero where the speed is unknown.
///
/// Source: the mean wait in a priority queue, work ahead / (1 - load of the higher lanes).
pub(crate) fn wait(backlog: Backlog, lane: Lane) -> Duration {
    wait_for(backlog, lane, backlog.step_tokens)
}

/// The same with so many tokens of the running step.
fn wait_for(backlog: Backlog, lane: Lane, step_tokens: u64) -> Duration {
    seconds(tokens_to(backlog, lane) + step_tokens, speed_in(backlog, lane))
}

/// How long the engine works for a newcomer's own tokens, likewise; zero where the speed is unknown.
pub(crate) fn work_of(backlog: Backlog, newcomer: Newcomer) -> Duration {
    seconds(newcomer.tokens, speed_in(backlog, newcomer.lane))
}

/// Tokens a second that are left to `lane` while higher lanes go on as they did.
fn speed_in(backlog: Backlog, lane: Lane) -> f64 {
    let above: f64 = backlog.shares[..lane as usize].iter().sum();
    backlog.tokens_per_second * (1.0 - above.min(SHARE_MAX))
}

/// What is left of the running step in `lane` and in those above it.
fn step_tokens_to(backlog: Backlog, lane: Lane) -> u64 {
    backlog.step_lanes[..=lane as usize].iter().sum()
}

/// Unique tokens in `lane` and in those above it.
fn tokens_to(backlog: Backlog, lane: Lane) -> u64 {
    backlog.tokens[..=lane as usize].iter().sum()
}

/// The time after which, at the measured speed, all that waits down to `lane` is done.
pub(crate) fn drain_time(backlog: Backlog, lane: Lane) -> Duration {
    if backlog.tokens_per_second <= 0.0 {
        return RETRY_AFTER_UNKNOWN;
    }
    clamp(wait(backlog, lane))
}

fn seconds(tokens: u64, tokens_per_second: f64) -> Duration {
    if tokens_per_second <= 0.0 {
        return Duration::ZERO;
    }
    Duration::try_from_secs_f64(tokens as f64 / tokens_per_second).unwrap_or(Duration::MAX)
}

fn clamp(time: Duration) -> Duration {
    time.clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
}

#[cfg(test)]
mod tests;
