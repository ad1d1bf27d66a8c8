//! What a request costs whatever it computes: the way to the server and back, one token, its queue.
//!
//! The scheduler sizes steps and predicts waits by tokens a second. Of a server far away most of a short
//! step is no computing, and taken as such it would say that a long state takes for ever. So the time of
//! a step is told without that part.

use std::time::Duration;

/// By what part of itself the floor rises with each request, so that it follows a way that has become
/// longer.
const RISE: u32 = 64;

/// The least part of a step's time that is told as computing.
const COMPUTING_MIN: u32 = 10;

/// The least time of a request of late.
#[derive(Debug, Default)]
pub(super) struct Latency(Option<Duration>);

impl Latency {
    /// A request took so long.
    pub(super) fn request(&mut self, took: Duration) {
        let risen = self.0.map_or(took, |floor| floor + floor / RISE);
        self.0 = Some(risen.min(took));
    }

    /// What of a step's time is computing.
    pub(super) fn computing(&self, elapsed: Duration) -> Duration {
        let floor = self.0.unwrap_or_default();
        elapsed.saturating_sub(floor).max(elapsed / COMPUTING_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_step_is_told_without_what_every_request_costs() {
        let mut latency = Latency::default();
        assert_eq!(latency.computing(ms(100)), ms(100), "nothing is known");
        latency.request(ms(50));
        latency.request(ms(400));
        assert!(latency.computing(ms(450)) > ms(390), "{:?}", latency.computing(ms(450)));
        assert_eq!(latency.computing(ms(50)), ms(5), "some of it computes");
    }

    #[test]
    fn the_floor_falls_at_once_and_rises_slowly() {
        let mut latency = Latency::default();
        latency.request(ms(64));
        latency.request(ms(1_000));
        assert_eq!(latency.0, Some(ms(65)));
        latency.request(ms(8));
        assert_eq!(latency.0, Some(ms(8)));
        for _ in 0..400 {
            latency.request(ms(80));
        }
        assert_eq!(latency.0, Some(ms(80)), "the way has become longer for good");
    }
}
