//! What tenants keep and pin within limits of their own, case by case and as laws.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::limits::{Limits, TenantLimits};

/// A state of one tenant; its blocks are shared with no other's.
fn of(tenant: &str, state: &[(u32, u32)]) -> Vec<PathSegment> {
    path_of(&prefix_of(tenant.as_bytes(), state))
}

fn lease(ledger: &mut Ledger, name: &str, path: &[PathSegment]) -> bool {
    is_granted(&ledger.lease((path, Some(&tenant(name))), Reach::BUDGET, start_of_time()))
}

/// Has a tenant read a state; returns how many tokens had to be computed.
fn ask(ledger: &mut Ledger, name: &str, state: &[(u32, u32)]) -> u32 {
    let path = of(name, state);
    let missing = len(&path) - ledger.held(&path);
    assert!(lease(ledger, name, &path));
    compute_all(ledger, &path);
    ledger.release(&keys(&path), READ);
    ledger.check_owners();
    missing
}

fn held(ledger: &Ledger, name: &str, state: &[(u32, u32)]) -> u32 {
    done(ledger, &of(name, state)[1])
}

fn limit(ledger: &mut Ledger, limits: &[(&str, TenantLimits)]) {
    let limits = limits.iter().map(|(name, own)| (tenant(name), own.clone())).collect();
    ledger.limit(Arc::new(Limits::new(limits)));
    ledger.check_owners();
}

fn keeps(bytes: u64) -> TenantLimits {
    TenantLimits { kv_bytes_max: Some(bytes), ..TenantLimits::default() }
}

#[test]
fn a_tenant_beyond_its_limit_loses_its_own_oldest() {
    let mut ledger = ledger(100_000);
    limit(&mut ledger, &[("a", keeps(2 * 128))]);
    ask(&mut ledger, "b", &[(1, 118)]);
    for name in 1..4 {
        assert_eq!(ask(&mut ledger, "a", &[(name, 118)]), 118);
    }
    assert_eq!([1, 2, 3].map(|name| held(&ledger, "a", &[(name, 118)])), [0, 118, 118]);
    assert_eq!(held(&ledger, "b", &[(1, 118)]), 118, "another's stay");
    assert_eq!(ledger.view().evictions, 0, "nothing was short of room");
    assert_eq!(ledger.most_bytes(), [(tenant("a"), 256), (tenant("b"), 128)]);
}

#[test]
fn sub_tenants_keep_within_their_parents_limit_together() {
    let mut ledger = ledger(100_000);
    limit(&mut ledger, &[("a", keeps(256))]);
    for name in ["a/x", "a/y", "a", "a/z"] {
        ask(&mut ledger, name, &[(1, 118)]);
    }
    let held = ["a/x", "a/y", "a", "a/z"].map(|name| held(&ledger, name, &[(1, 118)]));
    assert_eq!(held, [0, 0, 118, 118]);
    assert_eq!(ledger.most_bytes(), [(tenant("a"), 256)]);
}

#[test]
fn what_runs_may_be_more_and_goes_with_its_last_lease() {
    let mut ledger = ledger(100_000);
    limit(&mut ledger, &[("a", keeps(128))]);
    let large = of("a", &[(1, 310)]);
    assert!(lease(&mut ledger, "a", &large));
    compute_all(&mut ledger, &large);
    ledger.check_owners();
    assert_eq!(ledger.most_bytes(), [(tenant("a"), 320)]);
    ledger.release(&keys(&large), READ);
    assert_eq!(done(&ledger, &large[1]), 118, "it leaves from its end");
    assert_eq!(done(&ledger, &large[0]), 10, "the head is nobody's");
    limit(&mut ledger, &[("a", keeps(0))]);
    assert_eq!((done(&ledger, &large[1]), done(&ledger, &large[0])), (0, 10));
    assert_eq!(ledger.most_bytes(), [], "a tenant without a block is forgotten");
}

#[test]
fn a_limit_that_comes_later_takes_the_least_useful_first() {
    let mut ledger = ledger(100_000);
    for name in [1, 2, 3, 1] {
        ask(&mut ledger, "a", &[(name, 118)]);
    }
    limit(&mut ledger, &[("a", keeps(128)), ("b", keeps(0))]);
    assert_eq!([1, 2, 3].map(|name| held(&ledger, "a", &[(name, 118)])), [118, 0, 0]);
    limit(&mut ledger, &[]);
    for name in 2..9 {
        ask(&mut ledger, "a", &[(name, 118)]);
    }
    assert_eq!(ledger.most_bytes(), [(tenant("a"), 8 * 128)]);
}

#[test]
fn a_tenants_own_limit_of_pins_takes_the_place_of_the_servers() {
    // Of 4,000 bytes 1,000 may be pinned, 600 of them by one tenant.
    let (mut ledger, now) = (ledger(4_000), start_of_time());
    let own = |bytes| TenantLimits { pin_bytes_max: Some(bytes), ..TenantLimits::default() };
    limit(&mut ledger, &[("a", own(128)), ("b", own(900))]);
    let mut pin = |name: &str, state: u32, tokens: u32| {
        ask(&mut ledger, name, &[(state, tokens)]);
        let path = of(name, &[(state, tokens)]);
        ledger.pin(&path, (&tenant(name), Duration::from_secs(9)), now).is_some()
    };
    assert!(pin("a/x", 1, 118));
    assert!(!pin("a/y", 1, 54), "both are counted for one");
    assert!(pin("b", 1, 700), "more than the server's limit for one tenant");
    assert!(!pin("c", 1, 300), "that of all holds for everybody");
}

#[test]
fn what_a_pin_kept_goes_when_the_pin_ends() {
    let (mut ledger, now) = (ledger(4_000), start_of_time());
    limit(&mut ledger, &[("a", keeps(0))]);
    let path = of("a", &[(1, 118)]);
    assert!(lease(&mut ledger, "a", &path));
    compute_all(&mut ledger, &path);
    assert!(ledger.pin(&path, (&tenant("a"), Duration::from_secs(9)), now).is_some());
    ledger.release(&keys(&path), READ);
    assert_eq!(done(&ledger, &path[1]), 118);
    ledger.expire_pins(now + Duration::from_secs(9));
    assert_eq!(done(&ledger, &path[1]), 0);
}

#[test]
fn a_state_could_be_held_for_who_may_keep_or_pin_it() {
    let mut ledger = ledger(4_000);
    let own = TenantLimits { pin_bytes_max: Some(0), ..keeps(128) };
    limit(&mut ledger, &[("a", own), ("b", keeps(0))]);
    let could = |name: &str, tokens: u32| {
        let path = of(name, &[(1, tokens)]);
        (ledger.could_hold(&path, &tenant(name)), ledger.could_stay(&path, &tenant(name)))
    };
    assert_eq!((could("a", 118), could("a/x", 119)), ((true, true), (false, false)));
    assert_eq!((could("b", 500), could("b", 600)), ((true, false), (false, false)), "by a pin");
    assert_eq!((could("c", 3_800), could("c", 5_000)), ((true, true), (false, false)));
}

const TENANTS: [&str; 4] = ["a", "a/x", "b", "c"];

#[derive(Debug, Clone)]
enum Act {
    Lease(usize, u32),
    Compute(usize, u32),
    Release(usize, bool),
    Pin(usize, u32),
    Unpin(usize, u32),
    Pass,
    /// A tenant's own limit; `c` never has one.
    Limit(usize, Option<u64>),
}

fn act() -> impl Strategy<Value = Act> {
    let tenant = || 0..TENANTS.len();
    prop_oneof![
        5 => (tenant(), 0u32..5).prop_map(|(tenant, state)| Act::Lease(tenant, state)),
        6 => (0usize..6, 1u32..300).prop_map(|(held, tokens)| Act::Compute(held, tokens)),
        4 => (0usize..6, any::<bool>()).prop_map(|(held, read)| Act::Release(held, read)),
        1 => (tenant(), 0u32..5).prop_map(|(tenant, state)| Act::Pin(tenant, state)),
        1 => (tenant(), 0u32..5).prop_map(|(tenant, state)| Act::Unpin(tenant, state)),
        1 => Just(Act::Pass),
        1 => (0usize..3, prop::option::of(0u64..900))
            .prop_map(|(tenant, bytes)| Act::Limit(tenant, bytes)),
    ]
}

/// States of one tenant that begin alike.
fn state(tenant: usize, index: u32) -> Vec<PathSegment> {
    let states: [&[(u32, u32)]; 5] =
        [&[(1, 200)], &[(1, 200), (2, 100)], &[(1, 118)], &[(3, 54)], &[(4, 300)]];
    of(TENANTS[tenant], states[index as usize])
}

struct World {
    ledger: Ledger,
    now: Instant,
    limits: BTreeMap<TenantId, TenantLimits>,
    held: Vec<Vec<PathSegment>>,
    owners: BTreeMap<SegmentKey, TenantId>,
}

impl World {
    fn new(budget: u64) -> Self {
        let (limits, held, owners) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let mut ledger = ledger(budget);
        // So that blocks often lose their protection.
        ledger.config.protected_ratio = 0.05;
        Self { ledger, now: start_of_time(), limits, held, owners }
    }

    fn act(&mut self, act: &Act) {
        let (ledger, now) = (&mut self.ledger, self.now);
        match *act {
            Act::Lease(owner, index) => {
                let path = state(owner, index);
                let lease = (path.as_slice(), Some(&tenant(TENANTS[owner])));
                if is_granted(&ledger.lease(lease, Reach::BUDGET, now)) {
                    self.held.push(path);
                }
            }
            Act::Compute(index, tokens) => {
                if let Some(path) = self.held.get(index) {
                    compute(ledger, path, tokens);
                }
            }
            Act::Release(index, is_read) if !self.held.is_empty() => {
                let path = self.held.remove(index % self.held.len());
                ledger.release(&keys(&path), if is_read { READ } else { SWEPT });
            }
            Act::Release(..) => {}
            Act::Pin(owner, index) => {
                let ttl = Duration::from_secs(3);
                ledger.pin(&state(owner, index), (&tenant(TENANTS[owner]), ttl), now);
            }
            Act::Unpin(owner, index) => {
                ledger.unpin(state(owner, index)[1].key, &tenant(TENANTS[owner]));
            }
            Act::Pass => {
                self.now += Duration::from_secs(1);
                ledger.expire_pins(self.now);
            }
            Act::Limit(owner, bytes) => {
                // What a sub-tenant is given of its own counts for nothing.
                let own = TenantLimits { kv_bytes_max: bytes, ..TenantLimits::default() };
                self.limits.insert(tenant(TENANTS[owner]), own);
                ledger.limit(Arc::new(Limits::new(self.limits.clone())));
            }
        }
        self.look();
    }

    /// Nobody keeps more than it may, and a limit takes from those only whom it is for.
    fn look(&mut self) {
        self.ledger.check_owners();
        let limits = Limits::new(self.limits.clone());
        for change in self.ledger.take_changes() {
            match change {
                Change::Resident(key) => {
                    self.owners.extend(self.ledger.owner_of(key).map(|owner| (key, owner.clone())));
                }
                Change::Dropped(key, DropReason::Limit) => {
                    assert!(limits.kv_bytes_max(&self.owners[&key]).is_some(), "{key:?}");
                }
                Change::Dropped(..) => {}
            }
        }
    }
}

proptest! {
    /// After any event what a tenant keeps without lease or pin is within its limit, and its limit
    /// takes nothing from others.
    #[test]
    fn no_tenant_keeps_more_than_it_may(
        budget in prop_oneof![64u64..1_600, Just(8_000)],
        acts in prop::collection::vec(act(), 1..150),
    ) {
        let mut world = World::new(budget);
        for act in &acts {
            world.act(act);
        }
        while !world.held.is_empty() {
            world.act(&Act::Release(0, true));
        }
    }

    /// Where there is room for all, the limits of some change nothing of what others have.
    #[test]
    fn the_limits_of_some_change_nothing_for_others(acts in prop::collection::vec(act(), 1..100)) {
        let (mut limited, mut free) = (World::new(1 << 20), World::new(1 << 20));
        for act in &acts {
            let of_others = matches!(act, Act::Limit(..));
            limited.act(act);
            if !of_others {
                free.act(act);
            }
            for index in 0..5 {
                let path = state(3, index);
                prop_assert_eq!(limited.ledger.held(&path), free.ledger.held(&path));
            }
        }
    }
}
