//! Laws of the ledger, against sums over its blocks, a list of the leases given, and a set of what
//! was computed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::plan::residency::queues::Class;

/// Sums, links, locks and queues agree with each other.
pub(super) fn check(ledger: &Ledger, leases: &BTreeMap<SegmentKey, u32>) {
    let view = ledger.view();
    assert!(view.used + view.reserved <= view.budget, "{view:?}");
    let blocks = || ledger.blocks.values();
    let sum = |is_counted: &dyn Fn(&Block<Run>) -> bool| {
        blocks().filter(|block| is_counted(block)).map(|block| block.bytes).sum::<u64>()
    };
    let reserved = |overflow| {
        let leases = ledger.leases.values().filter(move |lease| lease.overflow == overflow);
        leases.map(|lease| lease.reserved).sum::<u64>()
    };
    assert_eq!(view.used, sum(&|block| !block.overflow));
    assert_eq!(view.reserved, reserved(false));
    assert_eq!(view.overflow, sum(&|block| block.overflow) + reserved(true));
    assert_eq!(ledger.bytes.locked, sum(&|block| !block.overflow && block.locks > 0));
    let partial = ledger.leases.values().map(|lease| ledger.partial_bytes(lease));
    assert_eq!(view.partial, partial.sum::<u64>());
    assert_eq!(view.protected, sum(&|block| block.class == Class::Protected));
    let is_idle = |block: &Block<Run>| block.class == Class::Protected && block.locks == 0;
    assert_eq!(ledger.bytes.protected_idle, sum(&is_idle));
    assert_eq!(view.pinned, sum(&|block| block.pins > 0));
    assert_eq!(view.pinned, ledger.pinned_of.values().sum::<u64>());
    assert!(view.pinned <= ledger.config.pin_bytes());
    let most = ledger.pinned_of.values().max().copied().unwrap_or(0);
    assert!(most <= ledger.config.pin_tenant_bytes());
    let given: BTreeMap<_, _> =
        ledger.leases.iter().map(|(key, lease)| (*key, lease.count)).collect();
    assert_eq!(&given, leases, "leases in = leases out");
    check_tree(ledger);
    ledger.check_owners();
    for lease in ledger.leases.values() {
        let parts: Vec<_> = ledger.parts(&lease.segment);
        let done = parts.iter().fold(lease.segment.start, |at, part| {
            assert_eq!(part.start, at, "a gap");
            at + part.tokens
        });
        assert_eq!(done, lease.segment.start + lease.done);
    }
}

fn check_tree(ledger: &Ledger) {
    let (mut locks, mut pins, mut children) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let pinned = ledger.pins.values().map(Pin::end);
    for end in ledger.leases.values().filter_map(|lease| lease.end).chain(pinned.clone()) {
        ledger.up_from(Some(end)).for_each(|key| *locks.entry(key).or_insert(0) += 1);
    }
    for end in pinned {
        let own = ledger.up_from(Some(end)).filter(|key| !ledger.blocks[key].is_head);
        own.for_each(|key| *pins.entry(key).or_insert(0) += 1);
    }
    for parent in ledger.blocks.values().filter_map(|block| block.parent) {
        assert!(ledger.blocks.contains_key(&parent), "a block without what lies before it");
        *children.entry(parent).or_insert(0) += 1;
    }
    let beyond = ledger.overflow_state.and_then(|key| ledger.leases[&key].end);
    for (key, block) in &ledger.blocks {
        let count = |counts: &BTreeMap<SegmentKey, u32>| counts.get(key).copied().unwrap_or(0);
        assert_eq!(block.locks, count(&locks));
        assert_eq!(block.pins, count(&pins));
        assert_eq!(block.children, count(&children));
        let by_its_state = || ledger.up_from(beyond).any(|other| other == *key);
        assert!(
            !block.overflow || block.is_head || by_its_state(),
            "beyond the budget for another"
        );
        assert!(block.locks > 0 || !block.overflow, "beyond the budget and unused");
        assert!(block.locks > 0 || block.kept, "nothing keeps it");
        let may_go = block.locks == 0 && block.children == 0;
        assert_eq!(ledger.queues.contains(*key, block.class), may_go);
        let before = block.parent.map_or(0, |parent| ledger.blocks[&parent].end());
        assert_eq!(block.start, before, "a gap");
    }
}

/// States that begin alike: grown, cut short, diverging, ending with a block.
fn family(index: u32) -> Vec<PathSegment> {
    let states: [&[(u32, u32)]; 10] = [
        &[(1, 200)],
        &[(1, 200), (2, 100)],
        &[(1, 200), (3, 130)],
        &[(1, 118)],
        &[(1, 60), (4, 60)],
        &[(1, 200), (2, 100), (5, 64)],
        &[(6, 54)],
        &[(6, 54), (7, 70)],
        &[(8, 0)],
        &[(9, 300)],
    ];
    runs(states[index as usize % states.len()])
}

/// Pieces of `path` from `done` tokens of its state on.
fn pieces_from(segment: &PathSegment, mut done: u32, end: u32) -> Vec<SegmentKey> {
    let mut pieces = Vec::new();
    while done < end {
        let (key, next) = segment.piece(done);
        pieces.push(key);
        done = next;
    }
    pieces
}

#[derive(Debug, Clone)]
enum Act {
    Lease(u32, Reach),
    Compute(usize, u32),
    Keep(u32),
    Pin(u32, bool),
    Unpin(u32, bool),
    Pass,
    Release(usize, u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (0u32..10, any::<[bool; 2]>()).prop_map(|(state, [evicts_protected, may_overflow])| {
            Act::Lease(state, Reach { evicts_protected, may_overflow })
        }),
        6 => (0usize..6, 1u32..200).prop_map(|(held, tokens)| Act::Compute(held, tokens)),
        1 => (0u32..10).prop_map(Act::Keep),
        2 => (0u32..10, any::<bool>()).prop_map(|(state, flag)| Act::Pin(state, flag)),
        1 => (0u32..10, any::<bool>()).prop_map(|(state, flag)| Act::Unpin(state, flag)),
        1 => Just(Act::Pass),
        4 => (0usize..6, 0u8..3).prop_map(|(held, served)| Act::Release(held, served)),
    ]
}

/// A ledger under test, the leases it gave, and the pieces computed since they were last dropped.
struct World {
    ledger: Ledger,
    now: Instant,
    held: Vec<Vec<PathSegment>>,
    computed: BTreeSet<SegmentKey>,
}

impl World {
    fn act(&mut self, act: &Act) {
        let (ledger, now) = (&mut self.ledger, self.now);
        let owner = |is_first: bool| tenant(if is_first { "a" } else { "b" });
        match *act {
            Act::Lease(index, reach) => {
                let path = family(index);
                let protected = ledger.bytes.protected;
                if is_granted(&ledger.lease((&path, None), reach, now)) {
                    let is_spared = reach.evicts_protected || self.held.is_empty();
                    assert!(is_spared || ledger.bytes.protected == protected, "{reach:?}");
                    self.held.push(path);
                }
            }
            Act::Compute(index, tokens) => self.compute(index, tokens),
            Act::Keep(index) => drop(ledger.keep(&family(index))),
            Act::Pin(index, first) => {
                let (path, ttl) = (family(index), Duration::from_secs(3));
                let _ =
                    ledger.keep(&path) && ledger.pin(&path, (&owner(first), ttl), now).is_some();
            }
            Act::Unpin(index, first) => {
                ledger.unpin(family(index)[1].key, &owner(first));
            }
            Act::Pass => {
                self.now += Duration::from_secs(1);
                ledger.expire_pins(self.now);
            }
            Act::Release(index, served) if !self.held.is_empty() => {
                let path = self.held.remove(index % self.held.len());
                ledger.release(&keys(&path), [NONE, READ, SWEPT][served as usize % 3]);
            }
            Act::Release(..) => {}
        }
        self.look();
    }

    /// Computes of a leased path what comes next, or takes it over if another state has it by now.
    fn compute(&mut self, index: usize, tokens: u32) {
        let Some(path) = self.held.get(index) else { return };
        let ledger = &mut self.ledger;
        let Some(segment) = path.iter().find(|segment| done(ledger, segment) < segment.len())
        else {
            return;
        };
        let from = done(ledger, segment);
        let end =
            ((segment.start + from + tokens).div_ceil(64) * 64 - segment.start).min(segment.len());
        let pieces = pieces_from(segment, from, end);
        let is_held = |key: &&SegmentKey| ledger.blocks.contains_key(*key);
        let there = pieces.iter().take_while(is_held).count();
        let (end, is_adopted) = match there {
            0 => (end, false),
            count => (pieces_end(segment, from, count), true),
        };
        for key in pieces_from(segment, from, end).into_iter().filter(|_| !is_adopted) {
            assert!(self.computed.insert(key), "a block is computed twice");
        }
        let run = Run { start: segment.start + from, tokens: end - from };
        ledger.commit(Computed { key: segment.key, from, segment: run, is_adopted, epoch: 3 });
    }

    fn look(&mut self) {
        for change in self.ledger.take_changes() {
            match change {
                Change::Resident(key) => assert!(self.computed.contains(&key)),
                Change::Dropped(key, _) => assert!(self.computed.remove(&key)),
            }
        }
        assert_eq!(self.computed, self.ledger.blocks.keys().copied().collect());
        let mut leases = BTreeMap::new();
        for segment in self.held.iter().flatten() {
            *leases.entry(segment.key).or_insert(0) += 1;
        }
        check(&self.ledger, &leases);
        assert_eq!(self.ledger.view().duplicate_tokens, 0);
    }
}

fn pieces_end(segment: &PathSegment, from: u32, count: usize) -> u32 {
    (0..count).fold(from, |done, _| segment.piece(done).1)
}

proptest! {
    /// Whatever is leased, computed, kept, pinned and returned of states that begin alike, the sums
    /// stay right, the budget holds, no block is computed twice between two drops, and nothing that
    /// is leased, pinned or has others standing on it leaves.
    #[test]
    fn the_ledger_keeps_its_promises(
        retains in any::<bool>(),
        budget in 0u64..1_600,
        acts in prop::collection::vec(act(), 1..150),
    ) {
        let ledger = ledger_that(retains, budget);
        let (held, computed) = (Vec::new(), BTreeSet::new());
        let mut world = World { ledger, now: start_of_time(), held, computed };
        for act in &acts {
            world.act(act);
        }
        while !world.held.is_empty() {
            world.act(&Act::Release(0, 1));
        }
        let view = world.ledger.view();
        prop_assert_eq!((view.overflow, view.reserved, view.leased), (0, 0, 0));
    }

    /// Invariant 12: what one tenant finds of its states does not depend on what another does, as long
    /// as there is room for both.
    #[test]
    fn another_tenant_never_changes_what_is_found(
        acts in prop::collection::vec((any::<bool>(), 0usize..4, any::<bool>()), 1..40),
    ) {
        let states: [&[(u32, u32)]; 4] =
            [&[(1, 200)], &[(1, 200), (2, 100)], &[(1, 118)], &[(1, 60), (4, 60)]];
        let (mut both, mut alone) = (ledger(1 << 20), ledger(1 << 20));
        // The head is public.
        read(&mut both, &runs(&[(9, 1)]), READ);
        read(&mut alone, &runs(&[(9, 1)]), READ);
        for (is_ours, index, is_read) in acts {
            let path = |salt: &[u8]| path_of(&prefix_of(salt, states[index]));
            if is_ours {
                prop_assert_eq!(both.held(&path(b"ours")), alone.held(&path(b"ours")));
            }
            if is_ours && is_read {
                let found = read(&mut both, &path(b"ours"), READ);
                prop_assert_eq!(found, read(&mut alone, &path(b"ours"), READ));
            } else if is_read {
                read(&mut both, &path(b"theirs"), READ);
            }
        }
    }
}
