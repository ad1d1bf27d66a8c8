//! Admission: whether a decision may join what waits, and when to come back if not.
//!
//! All or nothing, before any mailbox: by reads, by unique tokens, and by the wait that the work
//! *ahead* of the newcomer means at the measured speed. What waits in lower lanes is not ahead, so
//! that bulk work never turns an urgent decision away; if it fills the queue, it makes room. With
//! nothing ahead, nothing is refused for time.

use std::time::Duration;

use crate::config::SchedulerConfig;
use crate::error::RejectReason;
use crate::read::Lane;
use crate::tenants::Bucket;

/// When nothing is known about the speed yet, this is what a refused caller is told to wait.
const RETRY_AFTER_UNKNOWN: Duration = Duration::from_secs(1);
/// Bounds of what a refused caller is told to wait.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(100);
const RETRY_AFTER_MAX: Duration = Duration::from_mins(10);

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
    /// Which part of its tokens the engine ran for each lane of late.
    pub(crate) shares: [f64; 4],
    pub(crate) tokens_per_second: f64,
    /// Reads of the newcomer's tenant that wait or run.
    pub(crate) tenant_reads: usize,
    /// Its bucket, where tenants have one.
    pub(crate) bucket: Option<Bucket>,
}

/// What a newcomer adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newcomer {
    pub(crate) lane: Lane,
    pub(crate) reads: usize,
    pub(crate) tokens: u64,
    /// Time that is left to it, if its caller has set a limit.
    pub(crate) time_left: Option<Duration>,
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
    let (reads, reads_max) = (backlog.tenant_reads, limits.tenant_reads_max);
    if reads > 0 && reads + newcomer.reads > reads_max {
        let retry_after = drain_time(backlog, Lane::Idle);
        return Err(RejectReason::TenantFull { reads_waiting: reads, reads_max, retry_after });
    }
    backlog.bucket.map_or(Ok(()), |bucket| check_bucket(bucket, newcomer))
}

/// A full bucket lets everything in, also what is larger than itself.
fn check_bucket(bucket: Bucket, newcomer: Newcomer) -> Result<(), RejectReason> {
    let Bucket { held, burst, rate } = bucket;
    let needed = newcomer.tokens.min(burst) as f64;
    if needed <= held {
        return Ok(());
    }
    let retry_after = Duration::try_from_secs_f64((needed - held) / rate as f64);
    Err(RejectReason::TenantRate {
        tokens: newcomer.tokens,
        rate,
        burst,
        retry_after: clamp(retry_after.unwrap_or(Duration::MAX)),
    })
}

fn check_reads(
    backlog: Backlog,
    newcomer: Newcomer,
    limits: &SchedulerConfig,
) -> Result<Admitted, RejectReason> {
    let reads: usize = backlog.reads.iter().sum();
    let excess = (reads + newcomer.reads).saturating_sub(limits.reads_max);
    if reads == 0 || excess == 0 {
        return Ok(Admitted::AsIs);
    }
    let below = &backlog.displaceable[newcomer.lane as usize + 1..];
    if below.iter().sum::<usize>() >= excess {
        return Ok(Admitted::Displacing);
    }
    Err(RejectReason::QueueFull {
        reads_waiting: reads,
        reads_max: limits.reads_max,
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
    let tokens_max = limits.tokens_max;
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
    let wait = wait(backlog, newcomer.lane);
    if wait.is_zero() {
        return Ok(());
    }
    let limit = limits.wait_max(newcomer.lane);
    if let Some(limit) = limit.filter(|limit| wait > *limit) {
        let (lane, downgrade) = (newcomer.lane, None);
        let retry_after = clamp(wait.saturating_sub(limit));
        return Err(RejectReason::WaitTooLong { lane, wait, limit, downgrade, retry_after });
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
    let ahead = tokens_to(backlog, lane) + backlog.step_tokens;
    let above: f64 = backlog.shares[..lane as usize].iter().sum();
    seconds(ahead, backlog.tokens_per_second * (1.0 - above.min(SHARE_MAX)))
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: fn() -> SchedulerConfig = SchedulerConfig::default;

    /// Work that waits in the normal lane.
    fn backlog(reads: usize, tokens: u64) -> Backlog {
        Backlog {
            reads: [0, reads, 0, 0],
            tokens: [0, tokens, 0, 0],
            tokens_per_second: 500.0,
            ..Backlog::default()
        }
    }

    fn newcomer(lane: Lane, reads: usize, tokens: u64) -> Newcomer {
        Newcomer { lane, reads, tokens, time_left: None }
    }

    #[test]
    fn nothing_is_refused_on_an_empty_queue() {
        let mut large = newcomer(Lane::Urgent, 100_000, u64::MAX);
        large.time_left = Some(Duration::from_millis(1));
        assert_eq!(admit(backlog(0, 0), large, &LIMITS()), Ok(Admitted::AsIs));
    }

    #[test]
    fn a_full_queue_names_the_limit_and_the_predicted_drain() {
        let refused = admit(backlog(1_000, 1_000), newcomer(Lane::Normal, 25, 1), &LIMITS());
        let expected = RejectReason::QueueFull {
            reads_waiting: 1_000,
            reads_max: 1_024,
            retry_after: Duration::from_secs(2),
        };
        assert_eq!(refused, Err(expected));
    }

    #[test]
    fn too_many_tokens_are_refused() {
        let fast = Backlog { tokens_per_second: 1e6, ..backlog(1, 262_000) };
        let refused = admit(fast, newcomer(Lane::Normal, 1, 200), &LIMITS());
        assert!(matches!(refused, Err(RejectReason::TokensFull { tokens_waiting: 262_000, .. })));
    }

    #[test]
    fn a_wait_beyond_the_lanes_limit_is_refused_with_the_time_that_is_too_much() {
        let limit = LIMITS().wait_max(Lane::Normal).unwrap();
        let tokens = 500 * (limit.as_secs() + 3);
        let refused = admit(backlog(1, tokens), newcomer(Lane::Normal, 1, 1), &LIMITS());
        let Err(RejectReason::WaitTooLong { retry_after, downgrade, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((retry_after, downgrade), (Duration::from_secs(3), Some(Lane::Batch)));
    }

    #[test]
    fn work_in_lower_lanes_is_not_ahead() {
        let (reads, tokens) = ([0, 0, 900, 0], [0, 0, 200_000, 0]);
        let full = Backlog { reads, tokens, ..backlog(0, 0) };
        for lane in [Lane::Urgent, Lane::Normal] {
            assert_eq!(admit(full, newcomer(lane, 1, 1), &LIMITS()), Ok(Admitted::AsIs));
        }
        assert!(admit(full, newcomer(Lane::Batch, 1, 1), &LIMITS()).is_err());
    }

    #[test]
    fn a_lane_is_offered_only_where_the_callers_own_limit_holds_too() {
        let limit = LIMITS().wait_max(Lane::Normal).unwrap();
        let busy = backlog(1, 500 * (limit.as_secs() + 3));
        let mut hurried = newcomer(Lane::Normal, 1, 1);
        hurried.time_left = Some(limit);
        let refused = admit(busy, hurried, &LIMITS());
        assert!(matches!(refused, Err(RejectReason::WaitTooLong { downgrade: None, .. })));
    }

    #[test]
    fn what_higher_lanes_need_is_not_there_for_lower_ones() {
        let busy = Backlog { shares: [0.25, 0.5, 0.25, 0.0], ..backlog(1, 1_000) };
        assert_eq!(wait(busy, Lane::Urgent), Duration::ZERO);
        assert_eq!(wait(busy, Lane::Normal), Duration::from_secs_f64(2.0 / 0.75));
        assert_eq!(wait(busy, Lane::Batch), Duration::from_secs(8));
    }

    #[test]
    fn a_full_queue_of_lower_lanes_makes_room() {
        let full =
            Backlog { reads: [0, 0, 1_024, 0], displaceable: [0, 0, 10, 0], ..backlog(0, 0) };
        let admitted = admit(full, newcomer(Lane::Normal, 10, 1), &LIMITS());
        assert_eq!(admitted, Ok(Admitted::Displacing));
        assert!(admit(full, newcomer(Lane::Normal, 11, 1), &LIMITS()).is_err());
        assert!(admit(full, newcomer(Lane::Batch, 10, 1), &LIMITS()).is_err());
    }

    #[test]
    fn a_callers_own_deadline_counts_its_own_tokens() {
        let mut late = newcomer(Lane::Normal, 1, 2_000);
        late.time_left = Some(Duration::from_secs(4));
        let refused = admit(backlog(1, 500), late, &LIMITS());
        assert!(matches!(refused, Err(RejectReason::PastDeadline { .. })), "{refused:?}");
        late.time_left = Some(Duration::from_secs(6));
        assert_eq!(admit(backlog(1, 500), late, &LIMITS()), Ok(Admitted::AsIs));
    }

    #[test]
    fn what_cannot_be_in_time_is_offered_the_lane_whose_limit_it_keeps() {
        let mut document = newcomer(Lane::Urgent, 1, 500 * 20);
        document.time_left = Some(Duration::from_secs(1));
        let ahead = Backlog { reads: [1, 0, 0, 0], tokens: [100, 0, 0, 0], ..backlog(0, 0) };
        let refused = admit(ahead, document, &LIMITS());
        let Err(RejectReason::PastDeadline { downgrade, wait, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((downgrade, wait), (Some(Lane::Batch), Duration::from_millis(20_200)));
        // Beyond the limit of every lane there is nothing to offer.
        document.tokens = 500 * 90;
        let refused = admit(ahead, document, &LIMITS());
        assert!(matches!(refused, Err(RejectReason::PastDeadline { downgrade: None, .. })));
    }

    #[test]
    fn one_tenant_cannot_fill_the_queue() {
        let full = Backlog { tenant_reads: LIMITS().tenant_reads_max, ..backlog(800, 10) };
        let refused = admit(full, newcomer(Lane::Urgent, 1, 1), &LIMITS());
        assert!(matches!(refused, Err(RejectReason::TenantFull { .. })), "{refused:?}");
    }

    #[test]
    fn a_tenant_asks_for_no_more_than_flows_into_its_bucket() {
        let bucket = |held| Some(Bucket { held, burst: 1_000, rate: 100 });
        let asked = |held, tokens| {
            let backlog = Backlog { bucket: bucket(held), ..backlog(0, 0) };
            admit(backlog, newcomer(Lane::Normal, 1, tokens), &LIMITS())
        };
        assert_eq!(asked(300.0, 300), Ok(Admitted::AsIs));
        assert_eq!(asked(1_000.0, 9_000), Ok(Admitted::AsIs), "a full bucket refuses nothing");
        let refused = |held, tokens| asked(held, tokens).unwrap_err().retry_after().unwrap();
        assert_eq!(refused(300.0, 500), Duration::from_secs(2));
        assert_eq!(refused(-200.0, 9_000), Duration::from_secs(12), "until it is full again");
    }

    proptest! {
        /// A larger limit never turns an accept into a reject, and an accept keeps the limits.
        #[test]
        fn capacity_is_monotone(
            reads in 0usize..3_000, tokens in 0u64..600_000, lane in 0usize..4,
            new_reads in 1usize..3_000, new_tokens in 0u64..600_000, more in 0usize..2_000,
        ) {
            let newcomer = newcomer(Lane::ALL[lane], new_reads, new_tokens);
            let small = LIMITS();
            let mut large = LIMITS();
            large.reads_max += more;
            large.tokens_max += more as u64;
            large.wait_urgent += Duration::from_millis(more as u64);
            large.wait_normal += Duration::from_millis(more as u64);
            large.wait_batch += Duration::from_millis(more as u64);
            if admit(backlog(reads, tokens), newcomer, &small).is_ok() {
                prop_assert!(admit(backlog(reads, tokens), newcomer, &large).is_ok());
                prop_assert!(reads == 0 || reads + new_reads <= small.reads_max);
                let ahead = if lane == 0 { 0 } else { tokens };
                prop_assert!(ahead == 0 || ahead + new_tokens <= small.tokens_max);
                let limit = small.wait_max(newcomer.lane);
                prop_assert!(limit.is_none_or(|limit| seconds(ahead, 500.0) <= limit));
            }
        }
    }
}
