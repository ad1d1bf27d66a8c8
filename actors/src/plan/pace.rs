//! The measured speed of the engine, smoothed.

use std::time::Duration;

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
}
