//! What the refused are told, and how many of them are let in when they come back at that time.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::error::RejectReason;
use crate::plan::admit::{Backlog, Newcomer, admit, work_of};
use crate::plan::fixture::start_of_time;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn who(tenant: &str, number: u64, lane: Lane) -> Claimant {
    let payer = TenantId(tenant.into());
    let state = SegmentKey::root(&number.to_le_bytes());
    Claimant { payer, lane, state, reads: 1, suffix_tokens: 5 }
}

fn normal(number: u64) -> Claimant {
    who("t", number, Lane::Normal)
}

fn returns(change: impl FnOnce(&mut SchedulerConfig)) -> Returns {
    let mut config = SchedulerConfig::default();
    change(&mut config);
    Returns::new(&config)
}

#[test]
fn each_refused_one_is_told_the_end_of_what_was_claimed_before() {
    let (mut returns, now) = (returns(|_| ()), start_of_time());
    let mut told = |number, now| returns.refused(normal(number), (SECOND, 200 * MS), now);
    assert_eq!([told(1, now), told(2, now), told(3, now)], [1_000 * MS, 1_200 * MS, 1_400 * MS]);
    assert_eq!(told(4, now + SECOND), SECOND, "600 ms later than the end, by the estimate");
    assert_eq!(told(3, now + 100 * MS), 1_300 * MS, "who comes too early is told the same time");
    assert_eq!(told(9, now + 10 * SECOND), SECOND, "what was claimed has passed");
}

#[test]
fn without_a_speed_the_estimate_is_all_that_is_told() {
    let (mut returns, now) = (returns(|_| ()), start_of_time());
    for number in 0..3 {
        assert_eq!(returns.refused(normal(number), (SECOND, Duration::ZERO), now), SECOND);
    }
    assert!(!returns.gives_way(&normal(9), now), "nothing is claimed");
    let mut off = self::returns(|config| config.retry_spread_max = Duration::ZERO);
    assert_eq!(off.refused(normal(1), (SECOND, SECOND), now), SECOND);
    assert!(!off.gives_way(&normal(9), now));
}

#[test]
fn newcomers_give_way_to_their_tenants_claims_in_their_lane_and_above() {
    let (mut returns, now) = (returns(|_| ()), start_of_time());
    returns.refused(normal(1), (SECOND, SECOND), now);
    let mut gives_way = |tenant, lane| returns.gives_way(&who(tenant, 9, lane), now);
    assert_eq!([Lane::Normal, Lane::Batch].map(|lane| gives_way("t", lane)), [true, true]);
    assert!(!gives_way("t", Lane::Urgent) && !gives_way("other", Lane::Normal));
    assert!(returns.arrive(&normal(1), now + 999 * MS), "too early, its claim stays");
    assert!(!returns.arrive(&normal(1), now + SECOND));
    assert!(!returns.gives_way(&normal(9), now + SECOND), "it is used up");
    returns.refused(normal(2), (SECOND, SECOND), now);
    assert!(returns.gives_way(&normal(9), now + SECOND + GRACE));
    assert_eq!(returns.count(now + SECOND + GRACE), 1);
    assert!(!returns.gives_way(&normal(9), now + SECOND + GRACE + MS), "nobody came");
    assert_eq!(returns.count(now + SECOND + GRACE + MS), 0);
    assert!(returns.claims.is_empty() && returns.by_time.is_empty() && returns.tenants.is_empty());
}

#[test]
fn one_tenants_claims_delay_no_other_and_are_a_quarter_of_all() {
    let (mut returns, now) = (returns(|config| config.retry_claims_max = 8), start_of_time());
    let mut told =
        |tenant, number| returns.refused(who(tenant, number, Lane::Normal), (SECOND, SECOND), now);
    assert_eq!([told("a", 1), told("a", 2)], [SECOND, 2 * SECOND]);
    assert_eq!(told("a", 3), Duration::from_mins(1), "it has two of eight");
    assert_eq!([told("b", 1), told("b", 2)], [SECOND, 3 * SECOND], "two have half the speed each");
}

#[test]
fn tenants_that_took_all_claims_make_room_for_one_that_has_fewer() {
    let (mut returns, now) = (returns(|config| config.retry_claims_max = 8), start_of_time());
    for (tenant, number) in ["a", "b", "c", "d"].into_iter().flat_map(|name| [(name, 1), (name, 2)])
    {
        returns.refused(who(tenant, number, Lane::Normal), (SECOND, MS), now);
    }
    let mut told =
        |tenant, number| returns.refused(who(tenant, number, Lane::Normal), (SECOND, MS), now);
    assert_eq!(told("e", 1), SECOND, "its part of the speed begins at once");
    assert_eq!(told("e", 2), Duration::from_mins(1), "the others have no more than it would have");
    assert_eq!(told("d", 1), SECOND, "what is left holds");
    assert_eq!(returns.claims.len(), 8);
    let left = |tenant| returns.claims.keys().filter(|who| &*who.payer.0 == tenant).count();
    assert_eq!(["a", "b", "c", "d", "e"].map(left), [2, 2, 2, 1, 1]);
}

/// An engine that works off tokens at an even speed, and clients that ask twice as much for a
/// while.
struct World {
    returns: Returns,
    config: SchedulerConfig,
    /// Whether refused ones come back when they are told, or when the estimate says.
    spreads: bool,
    /// One in so many never comes back; 0: all do.
    stays_away: u64,
    tokens: f64,
    at: Instant,
    idle: Duration,
    told_max: Duration,
    first_retries: u64,
    let_in: u64,
    refusals: u64,
}

/// Tokens a second, and of one decision.
const SPEED: f64 = 1_000.0;
const TOKENS: u64 = 50;

impl World {
    fn new(spreads: bool, stays_away: u64) -> Self {
        let config = SchedulerConfig { wait_normal: 2 * SECOND, ..SchedulerConfig::default() };
        Self {
            returns: Returns::new(&config),
            config,
            spreads,
            stays_away,
            tokens: 0.0,
            at: start_of_time(),
            idle: Duration::ZERO,
            told_max: Duration::ZERO,
            first_retries: 0,
            let_in: 0,
            refusals: 0,
        }
    }

    /// Asks for one decision; when it is to come back, if it is refused.
    fn ask(&mut self, number: u64, now: Instant) -> Option<Instant> {
        let worked = now.saturating_duration_since(self.at);
        self.idle += worked.saturating_sub(Duration::from_secs_f64(self.tokens / SPEED));
        self.tokens = (self.tokens - worked.as_secs_f64() * SPEED).max(0.0);
        self.at = now;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few")]
        let backlog = Backlog {
            reads: [0, (self.tokens / TOKENS as f64) as usize, 0, 0],
            tokens: [0, self.tokens as u64, 0, 0],
            tokens_per_second: SPEED,
            ..Backlog::default()
        };
        let gives_way = self.spreads && self.returns.arrive(&normal(number), now);
        let (lane, time_left) = (Lane::Normal, None);
        let newcomer = Newcomer { lane, reads: 1, tokens: TOKENS, time_left, gives_way };
        let Err(refused) = admit(backlog, newcomer, &self.config) else {
            self.tokens += TOKENS as f64;
            return None;
        };
        let RejectReason::WaitTooLong { retry_after, .. } = refused else { panic!("{refused}") };
        self.refusals += 1;
        let work = work_of(backlog, newcomer);
        let wait = if self.spreads {
            self.returns.refused(normal(number), (retry_after, work), now)
        } else {
            retry_after
        };
        assert!(wait >= retry_after && wait <= retry_after.max(self.config.retry_spread_max));
        self.told_max = self.told_max.max(wait);
        Some(now + wait)
    }

    /// Asks twice as much as can be worked off for so long, and until nobody is to come back.
    fn overload(mut self, lasts: Duration) -> Self {
        let mut coming = BTreeMap::new();
        let (start, mut at, mut number) = (self.at, self.at, 0_u64);
        while at < start + lasts {
            coming.insert((at, number), 0);
            // Uneven, and the same in every run: 25 ms between two on average.
            number += 1;
            at += Duration::from_micros(5_000 + number * 7_919 % 40_000);
        }
        while let Some(((now, number), tries)) = coming.pop_first() {
            let back = self.ask(number, now);
            self.first_retries += u64::from(tries == 1);
            self.let_in += u64::from(tries == 1 && back.is_none());
            let stays_away = self.stays_away > 0 && number.is_multiple_of(self.stays_away);
            if let Some(back) = back.filter(|_| !stays_away) {
                // The way back takes a while.
                coming.insert((back + Duration::from_millis(number % 20), number), tries + 1);
            }
        }
        self
    }

    fn share(&self) -> f64 {
        self.let_in as f64 / self.first_retries as f64
    }
}

/// Measured: without claims 0.09, 0.08 and 0.08 of first retries are let in, with them all.
#[test]
fn at_twice_the_capacity_who_comes_back_when_told_is_let_in() {
    for seconds in [5, 20, 60] {
        let lasts = Duration::from_secs(seconds);
        let (herd, spread) =
            (World::new(false, 0).overload(lasts), World::new(true, 0).overload(lasts));
        for world in [&herd, &spread] {
            let World { first_retries, refusals, idle, told_max, .. } = world;
            let share = world.share();
            println!(
                "{seconds} s: {share:.2} of {first_retries}, {refusals} {idle:?} {told_max:?}"
            );
        }
        assert!(spread.first_retries > 50 && spread.share() >= 0.9, "{}", spread.share());
        assert!(herd.share() < 0.5, "the test would show nothing: {}", herd.share());
        assert!(spread.refusals < herd.refusals / 2);
        assert!(spread.idle < SECOND, "nothing is kept from the engine: {:?}", spread.idle);
    }
}

/// Of those who stay away the room is used by newcomers.
#[test]
fn claims_for_which_nobody_comes_cost_little() {
    let world = World::new(true, 2).overload(20 * SECOND);
    println!("{:.2}, idle {:?}, told {:?}", world.share(), world.idle, world.told_max);
    assert!(world.share() >= 0.9, "{}", world.share());
    assert!(world.idle < 8 * SECOND, "{:?}", world.idle);
}

proptest! {
    /// What is told is never earlier than the estimate and never later than both limits; what is
    /// kept is bounded, and is gone once all of it has passed.
    #[test]
    fn what_is_told_is_within_its_limits(
        asked in prop::collection::vec(
            (0_u64..40, 0_usize..4, 0_u64..3, 0_u64..90_000, 0_u64..20_000, 0_u64..3_000), 1..200),
    ) {
        let mut returns = returns(|config| config.retry_claims_max = 16);
        let mut now = start_of_time();
        for (number, lane, tenant, estimate, work, later) in asked {
            now += u32::try_from(later).unwrap() * MS;
            let who = who(&tenant.to_string(), number, Lane::ALL[lane]);
            let (estimate, work) = (Duration::from_millis(estimate), Duration::from_millis(work));
            returns.arrive(&who, now);
            let told = returns.refused(who, (estimate, work), now);
            prop_assert!(told >= estimate && told <= estimate.max(Duration::from_mins(1)));
            let open: usize = returns.tenants.values().flat_map(|own| own.open).sum();
            prop_assert_eq!((open, returns.by_time.len()), (returns.claims.len(), open));
            prop_assert!(open <= 16 && returns.tenants.values().all(|own| !own.is_empty()));
        }
        returns.expire(now + Duration::from_hours(1));
        prop_assert!(returns.claims.is_empty() && returns.tenants.is_empty());
    }
}
