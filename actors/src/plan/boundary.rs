//! Boundary registration: pending ▸ deferred ▸ running ▸ registered | dropped | failed.
//!
//! A registration asks the cache to keep the state of a decision whose response is out. Mostly its
//! pages are still there and keeping them is free; where they are gone, the state is computed in
//! the idle lane. Bounded, the newest wins, one a state.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::config::RegistrationConfig;
use crate::plan::cache::Word;
use crate::read::SegmentKey;
use crate::snapshot::RegistrationCounters;

/// What the registration actor is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundaryEffect {
    /// Ask the cache to keep the state.
    Promote(SegmentKey),
    /// Let go of the decision that held the state's pages.
    LetGo(SegmentKey),
    /// Tell the cache that the state is not wanted any more.
    Unregister(SegmentKey),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Pending,
    Deferred,
    Running,
}

#[derive(Debug)]
struct Registration {
    phase: Phase,
    since: Instant,
    /// Order of arrival.
    number: u64,
}

/// How a registration ended.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Registered,
    Dropped,
    Failed,
}

/// All registrations under way.
#[derive(Debug)]
pub(crate) struct Boundary {
    config: RegistrationConfig,
    waiting: BTreeMap<SegmentKey, Registration>,
    /// Counts of arrivals and endings; the gauges in it are not used.
    counters: RegistrationCounters,
    arrivals: u64,
    draining: bool,
}

impl Boundary {
    /// `before` are the counts of the one whose place it takes; what that one had under way is lost.
    pub(crate) fn new(config: RegistrationConfig, before: RegistrationCounters) -> Self {
        Self {
            config,
            waiting: BTreeMap::new(),
            counters: before.lost(),
            arrivals: 0,
            draining: false,
        }
    }

    /// The response of a decision on `key` is out.
    pub(crate) fn responded(&mut self, key: SegmentKey, now: Instant) -> Vec<BoundaryEffect> {
        if self.draining {
            return vec![BoundaryEffect::LetGo(key)];
        }
        if self.waiting.contains_key(&key) {
            self.counters.coalesced += 1;
            // Its pages may be there this time.
            return vec![BoundaryEffect::Promote(key)];
        }
        let mut effects = self.make_room();
        self.counters.submitted += 1;
        self.arrivals += 1;
        let number = self.arrivals;
        self.waiting.insert(key, Registration { phase: Phase::Pending, since: now, number });
        effects.push(BoundaryEffect::Promote(key));
        effects
    }

    /// The cache has spoken.
    pub(crate) fn word(&mut self, key: SegmentKey, word: Word) -> Vec<BoundaryEffect> {
        match word {
            Word::Registered => self.end(key, Ending::Registered),
            Word::Dropped => self.end(key, Ending::Dropped),
            Word::Failed => self.end(key, Ending::Failed),
            Word::Deferred => self.enter(key, Phase::Deferred),
            Word::Started => self.enter(key, Phase::Running),
        }
    }

    /// Drops what is too old.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<BoundaryEffect> {
        let ttl = self.config.ttl;
        let is_old = |registration: &Registration| {
            registration.phase != Phase::Running
                && now.saturating_duration_since(registration.since) > ttl
        };
        let old: Vec<_> =
            self.waiting.iter().filter(|(_, entry)| is_old(entry)).map(|(key, _)| *key).collect();
        old.into_iter().flat_map(|key| self.give_up(key)).collect()
    }

    /// Drops everything: a cache that is gone says no word, and has nothing to be told.
    pub(crate) fn cache_lost(&mut self) -> Vec<BoundaryEffect> {
        let keys: Vec<_> = self.waiting.keys().copied().collect();
        keys.into_iter().flat_map(|key| self.end(key, Ending::Dropped)).collect()
    }

    /// Drops everything and takes no more.
    pub(crate) fn drain(&mut self) -> Vec<BoundaryEffect> {
        self.draining = true;
        let keys: Vec<_> = self.waiting.keys().copied().collect();
        keys.into_iter().flat_map(|key| self.give_up(key)).collect()
    }

    pub(crate) fn counters(&self) -> RegistrationCounters {
        let count = |phase| {
            self.waiting.values().filter(|registration| registration.phase == phase).count() as u64
        };
        RegistrationCounters {
            pending: count(Phase::Pending),
            deferred: count(Phase::Deferred),
            running: count(Phase::Running),
            ..self.counters
        }
    }

    fn enter(&mut self, key: SegmentKey, phase: Phase) -> Vec<BoundaryEffect> {
        if let Some(registration) = self.waiting.get_mut(&key) {
            registration.phase = phase;
        }
        // The pages are gone or belong to the want now; the decision holds nothing that helps.
        vec![BoundaryEffect::LetGo(key)]
    }

    fn end(&mut self, key: SegmentKey, ending: Ending) -> Vec<BoundaryEffect> {
        if self.waiting.remove(&key).is_some() {
            match ending {
                Ending::Registered => self.counters.registered += 1,
                Ending::Dropped => self.counters.dropped += 1,
                Ending::Failed => self.counters.failed += 1,
            }
        }
        vec![BoundaryEffect::LetGo(key)]
    }

    fn give_up(&mut self, key: SegmentKey) -> Vec<BoundaryEffect> {
        let mut effects = self.end(key, Ending::Dropped);
        effects.push(BoundaryEffect::Unregister(key));
        effects
    }

    /// Drops the oldest that is not being computed when the limit is reached.
    fn make_room(&mut self) -> Vec<BoundaryEffect> {
        if self.waiting.len() < self.config.pending_max {
            return Vec::new();
        }
        let droppable = self.waiting.iter().filter(|(_, entry)| entry.phase != Phase::Running);
        let oldest = droppable.min_by_key(|(_, entry)| entry.number).map(|(key, _)| *key);
        oldest.map(|key| self.give_up(key)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::fixture::start_of_time as tests_now;

    fn key(number: u8) -> SegmentKey {
        SegmentKey::root(&[number])
    }

    fn boundary(pending_max: usize) -> Boundary {
        let config = RegistrationConfig { pending_max, ..RegistrationConfig::default() };
        Boundary::new(config, RegistrationCounters::default())
    }

    #[test]
    fn keeping_resident_pages_is_one_word() {
        let (mut boundary, now) = (boundary(4), tests_now());
        assert_eq!(boundary.responded(key(1), now), [BoundaryEffect::Promote(key(1))]);
        assert_eq!(boundary.word(key(1), Word::Registered), [BoundaryEffect::LetGo(key(1))]);
        assert_eq!(boundary.counters().registered, 1);
    }

    #[test]
    fn the_newest_wins_when_the_queue_is_full() {
        let (mut boundary, now) = (boundary(1), tests_now());
        boundary.responded(key(1), now);
        let effects = boundary.responded(key(2), now);
        assert_eq!(effects.last(), Some(&BoundaryEffect::Promote(key(2))));
        assert!(effects.contains(&BoundaryEffect::Unregister(key(1))));
        assert_eq!((boundary.counters().dropped, boundary.counters().pending), (1, 1));
    }

    #[test]
    fn an_old_registration_is_dropped() {
        let (mut boundary, now) = (boundary(4), tests_now());
        boundary.responded(key(1), now);
        assert_eq!(boundary.tick(now + Duration::from_secs(30)), []);
        boundary.tick(now + Duration::from_secs(31));
        assert_eq!(boundary.counters().dropped, 1);
    }

    #[test]
    fn a_lost_cache_leaves_nothing_waiting_not_even_what_was_being_computed() {
        let (mut boundary, now) = (boundary(4), tests_now());
        boundary.responded(key(1), now);
        boundary.responded(key(2), now);
        boundary.word(key(2), Word::Started);
        let let_go = [BoundaryEffect::LetGo(key(1)), BoundaryEffect::LetGo(key(2))];
        let lost = boundary.cache_lost();
        assert!(lost.len() == 2 && let_go.iter().all(|effect| lost.contains(effect)), "{lost:?}");
        let counters = boundary.counters();
        assert_eq!((counters.dropped, counters.pending, counters.running), (2, 0, 0));
    }

    proptest! {
        /// Every registration is in exactly one place, whatever happens in whatever order.
        #[test]
        fn the_counters_balance(events in prop::collection::vec((0u8..8, 0u8..6), 0..200)) {
            let (mut boundary, mut now) = (boundary(3), tests_now());
            for (event, number) in events {
                let key = key(number);
                match event {
                    0 | 1 => drop(boundary.responded(key, now)),
                    2 => drop(boundary.word(key, Word::Registered)),
                    3 => drop(boundary.word(key, Word::Deferred)),
                    4 => drop(boundary.word(key, Word::Started)),
                    5 => drop(boundary.word(key, Word::Failed)),
                    6 if number == 0 => drop(boundary.cache_lost()),
                    _ => now += Duration::from_secs(9),
                }
                drop(boundary.tick(now));
                prop_assert!(boundary.counters().balance());
            }
        }
    }
}
