//! Whether a backend is given requests: what its probes say, and what became of requests.
//!
//! Two things keep a backend out. A probe asks it whether it is ready, and so many failed ones in a row
//! take it out until so many succeed. And requests that it could not be reached for, or that it broke
//! off, in a row, have it ejected for a while that doubles each time: so a backend whose probes succeed and
//! whose requests do not is soon left alone.

use std::time::{Duration, Instant};

use crate::config::{EjectionConfig, ProbeConfig};

/// Most doublings of the time for which a backend is ejected.
const DOUBLINGS_MAX: u32 = 5;

/// The health of one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Health {
    is_ready: bool,
    /// Probes in a row that say otherwise than `is_ready`.
    contrary: u32,
    /// Requests in a row that failed.
    failures: u32,
    /// Ejections without a success between them.
    ejections: u32,
    ejected_until: Option<Instant>,
}

impl Health {
    /// Of a backend that nothing is known of yet.
    pub(super) fn new() -> Self {
        Self { is_ready: false, contrary: 0, failures: 0, ejections: 0, ejected_until: None }
    }

    /// Whether probes find it ready.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether it is left alone for a while.
    pub(super) fn is_ejected(&self, now: Instant) -> bool {
        self.ejected_until.is_some_and(|until| now < until)
    }

    /// Whether it is given requests.
    pub(super) fn takes(&self, now: Instant) -> bool {
        self.is_ready && !self.is_ejected(now)
    }

    /// A probe ended; says whether that changed what is held of the backend.
    ///
    /// * `is_first`: of the first probe, one is enough.
    pub(super) fn probed(&mut self, is_ready: bool, is_first: bool, limits: &ProbeConfig) -> bool {
        if is_ready == self.is_ready {
            self.contrary = 0;
            return false;
        }
        self.contrary += 1;
        let needed = if is_ready { limits.successes } else { limits.failures };
        if !is_first && self.contrary < needed {
            return false;
        }
        self.is_ready = is_ready;
        self.contrary = 0;
        true
    }

    /// It has said itself that it takes no more; the next probe that succeeds takes it in again.
    pub(super) fn leaves(&mut self) {
        self.is_ready = false;
        self.contrary = 0;
    }

    /// A request was answered, whatever the answer.
    pub(super) fn answered(&mut self) {
        self.failures = 0;
        self.ejections = 0;
    }

    /// A request could not be sent, or its connection broke; says whether the backend is ejected now.
    ///
    /// * `may_eject`: whether enough others are left.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        may_eject: bool,
        limits: &EjectionConfig,
    ) -> bool {
        self.failures += 1;
        if self.failures < limits.after || !may_eject || self.is_ejected(now) {
            return false;
        }
        let time = limits.time * 2_u32.pow(self.ejections.min(DOUBLINGS_MAX));
        self.ejected_until = Some(now + time);
        self.ejections += 1;
        self.failures = 0;
        true
    }

    /// How long it is still left alone.
    pub(super) fn ejected_for(&self, now: Instant) -> Duration {
        self.ejected_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> Health {
        let mut health = Health::new();
        assert!(health.probed(true, true, &ProbeConfig::default()));
        health
    }

    #[test]
    fn probes_in_a_row_change_what_is_held_of_a_backend() {
        let limits = ProbeConfig { failures: 2, successes: 3, ..ProbeConfig::default() };
        let (mut health, now) = (ready(), Instant::now());
        let mut probed = |is_ready| {
            let changed = health.probed(is_ready, false, &limits);
            (changed, health.takes(now))
        };
        assert_eq!(probed(false), (false, true));
        assert_eq!(probed(true), (false, true), "in a row");
        assert_eq!(probed(false), (false, true));
        assert_eq!(probed(false), (true, false));
        assert_eq!(probed(true), (false, false));
        assert_eq!(probed(true), (false, false));
        assert_eq!(probed(true), (true, true));
    }

    #[test]
    fn a_backend_that_says_it_leaves_is_left_alone_until_a_probe_succeeds() {
        let (mut health, now) = (ready(), Instant::now());
        health.leaves();
        assert!(!health.takes(now));
        let limits = ProbeConfig { successes: 1, ..ProbeConfig::default() };
        assert!(!health.probed(false, false, &limits));
        assert!(health.probed(true, false, &limits) && health.takes(now));
    }

    #[test]
    fn failures_in_a_row_eject_for_a_time_that_doubles() {
        let limits = EjectionConfig { after: 2, time: Duration::from_secs(10) };
        let (mut health, start) = (ready(), Instant::now());
        assert!(!health.failed(start, true, &limits));
        health.answered();
        assert!(!health.failed(start, true, &limits), "in a row");
        assert!(health.failed(start, true, &limits));
        assert!(!health.takes(start) && health.is_ready());
        assert_eq!(health.ejected_for(start), limits.time);
        let later = start + limits.time;
        assert!(health.takes(later));
        assert!(!health.failed(later, true, &limits));
        assert!(health.failed(later, true, &limits));
        assert_eq!(health.ejected_for(later), 2 * limits.time);
        let again = later + 2 * limits.time;
        health.answered();
        assert!(!health.failed(again, true, &limits) && health.failed(again, true, &limits));
        assert_eq!(health.ejected_for(again), limits.time, "as the first time");
    }

    #[test]
    fn nobody_is_ejected_where_too_few_others_are_left() {
        let limits = EjectionConfig { after: 1, ..EjectionConfig::default() };
        let (mut health, now) = (ready(), Instant::now());
        assert!(!health.failed(now, false, &limits) && health.takes(now));
        assert!(health.failed(now, true, &limits));
    }
}
