//! All backends as they are at the moment, and which of them a request goes to: pure.
//!
//! A key goes to the backend that it prefers, unless that is out or has more than its share of what is
//! under way; then to the next by the same order, so that the requests on a busy state find each other
//! again at one more backend and not at all of them.
//!
//! Source: Mirrokni, Thorup and Zadimoghaddam, "Consistent hashing with bounded loads", 2018.

use std::time::Instant;

use super::health::Health;
use super::rank::Candidate;
use crate::config::{EjectionConfig, LoadConfig, ProbeConfig};

/// A backend.
#[derive(Debug)]
struct Member {
    weight: u32,
    /// Requests that it was given and that have not ended.
    in_flight: u32,
    health: Health,
    is_probed: bool,
}

/// All of them, in the order in which they were given.
#[derive(Debug)]
pub(super) struct Fleet {
    members: Vec<Member>,
    candidates: Vec<Candidate>,
    load: LoadConfig,
    /// Rises with each request without a key, so that equals take turns.
    turn: usize,
}

/// Why a backend was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The key prefers it to all others.
    Own,
    /// Those that the key prefers have more than their share.
    Load,
    /// Those that the key prefers are out.
    Down,
    /// Those that the key prefers were tried.
    Retry,
    /// There is no key.
    Any,
}

/// A choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Its place.
    pub(super) index: usize,
    pub(super) reason: Reason,
}

/// What became of a request at a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Went {
    /// It was answered.
    Answered,
    /// It was not, since the backend is going away.
    Leaving,
    /// It could not be sent, or its connection broke.
    Failed,
}

impl Fleet {
    /// * `backends`: names and weights.
    pub(super) fn new(backends: &[(String, u32)], load: LoadConfig) -> Self {
        let member =
            |weight: u32| Member { weight, in_flight: 0, health: Health::new(), is_probed: false };
        Self {
            members: backends.iter().map(|(_, weight)| member(*weight)).collect(),
            candidates: backends
                .iter()
                .map(|(name, weight)| Candidate::new(name, *weight))
                .collect(),
            load,
            turn: 0,
        }
    }

    /// By which the order of a key is drawn.
    pub(super) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Chooses a backend and counts the request there, until [`Self::ended`].
    ///
    /// * `order`: all places, the most preferred first; `None` where all are equal.
    /// * `tried`: places that are out of the question.
    pub(super) fn begin(
        &mut self,
        order: Option<&[usize]>,
        tried: &[usize],
        now: Instant,
    ) -> Option<Chosen> {
        let chosen = match order {
            Some(order) => self.preferred(order, tried, now)?,
            None => Chosen { index: self.least(tried, now)?, reason: Reason::Any },
        };
        self.members[chosen.index].in_flight += 1;
        Some(chosen)
    }

    /// Counts a request at a backend that is not chosen by this.
    pub(super) fn begin_at(&mut self, index: usize) {
        self.members[index].in_flight += 1;
    }

    /// A request at this place has ended.
    pub(super) fn ended(&mut self, index: usize) {
        let member = &mut self.members[index];
        debug_assert!(member.in_flight > 0, "ended more often than begun");
        member.in_flight = member.in_flight.saturating_sub(1);
    }

    /// Whether a backend is given requests.
    pub(super) fn takes(&self, index: usize, now: Instant) -> bool {
        self.members[index].health.takes(now)
    }

    /// Requests that it was given and that have not ended.
    pub(super) fn in_flight(&self, index: usize) -> u32 {
        self.members[index].in_flight
    }

    /// How many backends are given requests, beside those that were tried.
    pub(super) fn open(&self, tried: &[usize], now: Instant) -> usize {
        self.taking(now).filter(|index| !tried.contains(index)).count()
    }

    /// All places that are given requests.
    pub(super) fn taking(&self, now: Instant) -> impl Iterator<Item = usize> + '_ {
        (0..self.members.len()).filter(move |index| self.takes(*index, now))
    }

    /// A probe ended; says whether the backend is ready now where that changed.
    pub(super) fn probed(
        &mut self,
        index: usize,
        is_ready: bool,
        limits: &ProbeConfig,
    ) -> Option<bool> {
        let member = &mut self.members[index];
        let is_first = !std::mem::replace(&mut member.is_probed, true);
        member.health.probed(is_ready, is_first, limits).then_some(is_ready)
    }

    /// Takes note of what became of a request; says for how long the backend is ejected where it is now.
    ///
    /// At most half of those that probes find ready are ejected at a time.
    pub(super) fn went(
        &mut self,
        index: usize,
        went: Went,
        (now, limits): (Instant, &EjectionConfig),
    ) -> Option<std::time::Duration> {
        let ready = self.members.iter().filter(|member| member.health.is_ready());
        let (ready, ejected) = ready.fold((0, 0), |(ready, ejected), member| {
            (ready + 1, ejected + usize::from(member.health.is_ejected(now)))
        });
        let health = &mut self.members[index].health;
        match went {
            Went::Answered => health.answered(),
            Went::Leaving => health.leaves(),
            Went::Failed => {
                let is_now = health.failed(now, (ejected + 1) * 2 <= ready, limits);
                return is_now.then(|| health.ejected_for(now));
            }
        }
        None
    }

    fn preferred(&mut self, order: &[usize], tried: &[usize], now: Instant) -> Option<Chosen> {
        let own = order.first().copied();
        let open: Vec<usize> = order
            .iter()
            .copied()
            .filter(|index| !tried.contains(index) && self.takes(*index, now))
            .collect();
        let share = self.share(now);
        let has_room = |index: &usize| {
            let member = &self.members[*index];
            let most = (share * f64::from(member.weight)).ceil();
            member.in_flight < self.load.min || f64::from(member.in_flight) < most
        };
        let with_room = open.iter().copied().find(has_room);
        let index = with_room.or_else(|| self.least(tried, now))?;
        let reason = if Some(index) == own {
            Reason::Own
        } else if open.first() != Some(&index) {
            Reason::Load
        } else if tried.is_empty() {
            Reason::Down
        } else {
            Reason::Retry
        };
        Some(Chosen { index, reason })
    }

    /// Most requests for each unit of weight, with one more than there are.
    fn share(&self, now: Instant) -> f64 {
        let taking = self.taking(now).map(|index| &self.members[index]);
        let (in_flight, weight) = taking.fold((0_u64, 0_u64), |(in_flight, weight), member| {
            (in_flight + u64::from(member.in_flight), weight + u64::from(member.weight))
        });
        self.load.factor * (in_flight + 1) as f64 / weight.max(1) as f64
    }

    /// Where the least is under way for its weight; equals take turns.
    fn least(&mut self, tried: &[usize], now: Instant) -> Option<usize> {
        let count = self.members.len();
        let from = self.turn % count.max(1);
        self.turn = self.turn.wrapping_add(1);
        let turned = (0..count).map(|step| (from + step) % count);
        let open = turned.filter(|index| !tried.contains(index) && self.takes(*index, now));
        let load = |index: &usize| {
            let member = &self.members[*index];
            f64::from(member.in_flight) / f64::from(member.weight)
        };
        // Of equals the first.
        open.min_by(|one, other| load(one).total_cmp(&load(other)))
    }
}

#[cfg(test)]
mod tests;
