//! Who is let in, who is not, and what the refused are told.

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
    Newcomer { lane, reads, tokens, time_left: None, gives_way: false }
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
fn a_step_of_lower_lanes_is_not_ahead_however_long_it_takes() {
    let running = |lanes: [u64; 4]| {
        let step_tokens = lanes.iter().sum();
        Backlog { step_tokens, step_lanes: lanes, tokens_per_second: 100.0, ..backlog(0, 0) }
    };
    let urgent = newcomer(Lane::Urgent, 1, 1);
    let beside = |lanes| admit(running(lanes), urgent, &LIMITS());
    assert_eq!(beside([0, 0, 128, 0]), Ok(Admitted::AsIs), "1.28 s of a batch step, at most 1 s");
    assert_eq!(beside([64, 128, 0, 1_000]), Ok(Admitted::AsIs), ".64 s of it are urgent");
    let refused = beside([128, 0, 128, 0]);
    let Err(RejectReason::WaitTooLong { wait, retry_after, .. }) = refused else {
        panic!("{refused:?}");
    };
    let ms = Duration::from_millis;
    assert_eq!((wait, retry_after), (ms(1_280), ms(280)), "of what is ahead");
    assert_eq!(super::wait(running([128, 0, 128, 0]), Lane::Urgent), ms(2_560), "what it waits");
    // Whoever says how long may wait is told at once that it will be longer.
    let hurried = Newcomer { time_left: Some(ms(500)), ..urgent };
    let refused = admit(running([0, 0, 128, 0]), hurried, &LIMITS());
    assert!(matches!(refused, Err(RejectReason::PastDeadline { .. })), "{refused:?}");
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
    let full = Backlog { reads: [0, 0, 1_024, 0], displaceable: [0, 0, 10, 0], ..backlog(0, 0) };
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
    let tenant = Found { reads: LIMITS().tenant_reads_max, ..Found::default() };
    let refused =
        admit(Backlog { tenant, ..backlog(800, 10) }, newcomer(Lane::Urgent, 1, 1), &LIMITS());
    assert!(matches!(refused, Err(RejectReason::TenantFull { .. })), "{refused:?}");
}

/// Admits so many reads of a tenant of which something waits, or says which limit is exceeded.
fn limit_of(tenant: Found, reads: usize) -> Option<(usize, usize)> {
    let backlog = Backlog { tenant, ..backlog(100, 10) };
    match admit(backlog, newcomer(Lane::Urgent, reads, 1), &LIMITS()) {
        Ok(_) => None,
        Err(RejectReason::TenantFull { reads_waiting, reads_max, retry_after }) => {
            assert_eq!(retry_after, drain_time(backlog, Lane::Idle));
            Some((reads_waiting, reads_max))
        }
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_tenants_own_limit_of_reads_takes_the_place_of_the_servers() {
    let with = |reads, reads_max| Found { reads, reads_max, ..Found::default() };
    assert_eq!(limit_of(with(7, Some(10)), 3), None);
    assert_eq!(limit_of(with(7, Some(10)), 4), Some((7, 10)));
    assert_eq!(limit_of(with(0, Some(10)), 400), None, "nothing of it is there");
    assert_eq!(limit_of(with(800, Some(900)), 100), None, "it may be larger");
    assert_eq!(limit_of(with(760, None), 9), Some((760, 768)));
}

#[test]
fn what_waits_of_a_tenant_keeps_to_its_share_of_the_queue() {
    let with = |waiting, share| Found { waiting, queue_share: Some(share), ..Found::default() };
    assert_eq!(limit_of(with(500, 0.5), 12), None, "half of 1,024");
    assert_eq!(limit_of(with(500, 0.5), 13), Some((500, 512)));
    assert_eq!(limit_of(with(0, 0.000_001), 400), None, "nothing of it waits");
    assert_eq!(limit_of(with(1, 0.0), 1), Some((1, 0)));
    let running = Found { reads: 64, ..with(0, 0.01) };
    assert_eq!(limit_of(running, 20), None, "what runs does not wait");
}

#[test]
fn a_tenant_asks_for_no_more_than_flows_into_its_bucket() {
    let asked = |held, tokens| {
        let bucket = Some(Bucket { held, burst: 1_000, per_minute: 6_000 });
        let tenant = Found { bucket, ..Found::default() };
        let backlog = Backlog { tenant, ..backlog(0, 0) };
        admit(backlog, newcomer(Lane::Normal, 1, tokens), &LIMITS())
    };
    assert_eq!(asked(300.0, 300), Ok(Admitted::AsIs));
    assert_eq!(asked(1_000.0, 9_000), Ok(Admitted::AsIs), "a full bucket refuses nothing");
    let refused = |held, tokens| asked(held, tokens).unwrap_err().retry_after().unwrap();
    assert_eq!(refused(300.0, 500), Duration::from_secs(2));
    assert_eq!(refused(-200.0, 9_000), Duration::from_secs(12), "until it is full again");
    assert_eq!(refused(-99_000.0, 9_000), Duration::from_secs(1_000), "however much is owed");
}

#[test]
fn who_gives_way_finds_half_of_the_room_and_any_on_an_empty_queue() {
    let yielding =
        |reads, tokens| Newcomer { gives_way: true, ..newcomer(Lane::Normal, reads, tokens) };
    let asked = |backlog, newcomer| admit(backlog, newcomer, &LIMITS());
    assert_eq!(asked(backlog(0, 0), yielding(5_000, 900_000)), Ok(Admitted::AsIs));
    // 512 reads, 131,072 tokens and 4 s.
    assert_eq!(asked(backlog(500, 1), yielding(12, 1)), Ok(Admitted::AsIs));
    let full = asked(backlog(500, 1), yielding(13, 1));
    assert!(matches!(full, Err(RejectReason::QueueFull { reads_max: 512, .. })), "{full:?}");
    let fast = Backlog { tokens_per_second: 1e6, ..backlog(1, 131_000) };
    let full = asked(fast, yielding(1, 73));
    assert!(matches!(full, Err(RejectReason::TokensFull { tokens_max: 131_072, .. })), "{full:?}");
    assert_eq!(asked(fast, newcomer(Lane::Normal, 1, 73)), Ok(Admitted::AsIs));
    let long = asked(backlog(1, 500 * 5), yielding(1, 1));
    let Err(RejectReason::WaitTooLong { limit, retry_after, .. }) = long else {
        panic!("{long:?}")
    };
    assert_eq!((limit, retry_after), (Duration::from_secs(4), Duration::from_secs(1)));
}

proptest! {
    /// Work in lower lanes, waiting or running, refuses nobody who set no limit and for whom there is
    /// room.
    #[test]
    fn lower_lanes_refuse_nobody(
        tokens in prop::array::uniform4(0u64..3_000), step in prop::array::uniform4(0u64..4_000),
        lane in 0usize..4, new_tokens in 0u64..600_000, speed in 1.0..2_000.0,
    ) {
        let of = |keep: &dyn Fn(usize) -> bool| {
            let own = |by: [u64; 4]| std::array::from_fn(|at| if keep(at) { by[at] } else { 0 });
            Backlog {
                tokens: own(tokens),
                step_tokens: own(step).iter().sum(),
                step_lanes: own(step),
                tokens_per_second: speed,
                ..Backlog::default()
            }
        };
        let newcomer = newcomer(Lane::ALL[lane], 1, new_tokens);
        let alone = admit(of(&|at| at <= lane), newcomer, &LIMITS());
        let beside = admit(of(&|_| true), newcomer, &LIMITS());
        prop_assert_eq!(alone.is_ok(), beside.is_ok(), "{:?} {:?}", alone, beside);
    }

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
