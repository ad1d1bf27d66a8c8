//! The measured speed of the engine, and what each lane has of it, smoothed.

use std::time::{Duration, Instant};

/// Weight of the newest step.
const NEWEST: f64 = 0.2;

/// Tokens per second, smoothed over steps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace(Option<f64>);

impl Pace {
    /// Takes in a step; one that took no time tells nothing.
    pub(crate) fn step(&mut self, tokens: u32, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        if seconds <= 0.0 || tokens == 0 {
            return;
        }
        let speed = f64::from(tokens) / seconds;
        self.0 = Some(self.0.map_or(speed, |pace| pace + NEWEST * (speed - pace)));
    }

    /// Tokens per second; 0 if nothing is known.
    pub(crate) fn tokens_per_second(self) -> f64 {
        self.0.unwrap_or(0.0)
    }
}

/// Time over which the shares of lanes are smoothed.
const SHARES_OVER: Duration = Duration::from_secs(10);

/// Which part of the engine's time each lane had, smoothed over time; idle time belongs to none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shares {
    shares: [f64; 4],
    /// When a step last ended.
    last: Option<Instant>,
}

impl Shares {
    /// Takes in a step that ended `now`, with its tokens by lane.
    pub(crate) fn step(&mut self, tokens: [u64; 4], elapsed: Duration, now: Instant) {
        let since = self.last.map_or(elapsed, |last| now.saturating_duration_since(last));
        self.last = Some(now);
        let over = since.max(elapsed).as_secs_f64();
        let total: u64 = tokens.iter().sum();
        if over <= 0.0 || total == 0 {
            return;
        }
        let weight = 1.0 - (-over / SHARES_OVER.as_secs_f64()).exp();
        let busy = elapsed.as_secs_f64() / over;
        for (share, tokens) in self.shares.iter_mut().zip(tokens) {
            let now = busy * tokens as f64 / total as f64;
            *share += weight * (now - *share);
        }
    }

    /// The shares, by lane; together at most 1.
    pub(crate) fn by_lane(self) -> [f64; 4] {
        self.shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_follows_the_steps() {
        let mut pace = Pace::default();
        assert!(pace.tokens_per_second() <= 0.0);
        pace.step(100, Duration::from_secs(1));
        pace.step(200, Duration::from_secs(1));
        assert!((pace.tokens_per_second() - 120.0).abs() < 1e-9);
        pace.step(200, Duration::ZERO);
        assert!((pace.tokens_per_second() - 120.0).abs() < 1e-9);
    }

    #[test]
    fn shares_follow_the_lanes_and_idle_time_belongs_to_none() {
        let mut shares = Shares::default();
        let (mut now, second) = (crate::plan::fixture::start_of_time(), Duration::from_secs(1));
        for _ in 0..100 {
            now += 2 * second;
            shares.step([30, 10, 0, 0], second, now);
        }
        let [urgent, normal, batch, _] = shares.by_lane();
        assert!((urgent - 0.375).abs() < 0.01 && (normal - 0.125).abs() < 0.01 && batch <= 0.0);
    }
}
