//! Operational time: a process whose rate changes is one of constant rate, seen through a bent
//! clock.
//!
//! The mean number of arrivals up to a time is a rising function of that time. Arrivals are drawn
//! at a constant rate on the scale of that number, and put back by the function's inverse.
//!
//! Source: Çinlar, "Introduction to Stochastic Processes", 1975, section 4.7.

/// A clock that runs fast where many arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Clock {
    /// Straight, over so many seconds.
    Even { seconds: f64 },
    /// The pace goes in a line from `from` to `to` over so many seconds.
    Ramp { from: f64, to: f64, seconds: f64 },
    /// Of every `period`, `on` seconds in the middle at pace `fast`, the rest at pace `slow`.
    OnOff { slow: f64, fast: f64, on: f64, period: f64, seconds: f64 },
}

impl Clock {
    /// An on-off clock that shows `seconds` when `seconds` have passed: the mean pace is 1.
    pub(super) fn on_off(times: f64, on: f64, period: f64, seconds: f64) -> Self {
        let lead = (period - on) / 2.0;
        let periods = (seconds / period).floor();
        let rest = seconds - periods * period;
        let fast_seconds = periods * on + (rest - lead).clamp(0.0, on);
        let slow = seconds / (seconds + (times - 1.0) * fast_seconds);
        Self::OnOff { slow, fast: slow * times, on, period, seconds }
    }

    /// What the clock shows at the end.
    pub(super) fn end(self) -> f64 {
        match self {
            Self::Even { seconds } | Self::OnOff { seconds, .. } => seconds,
            Self::Ramp { from, to, seconds } => seconds * f64::midpoint(from, to),
        }
    }

    /// The second at which the clock shows `shown`.
    pub(super) fn second(self, shown: f64) -> f64 {
        match self {
            Self::Even { .. } => shown,
            Self::Ramp { from, to, seconds } => {
                // shown = from t + (to - from) t^2 / (2 seconds), solved for t without
                // cancellation.
                let bend = 2.0 * (to - from) / seconds;
                let root = (from * from + bend * shown).max(0.0).sqrt();
                if shown > 0.0 { 2.0 * shown / (from + root) } else { 0.0 }
            }
            Self::OnOff { slow, fast, on, period, .. } => {
                let lead = (period - on) / 2.0;
                let (led, crowd) = (slow * lead, fast * on);
                let whole = led * 2.0 + crowd;
                let periods = (shown / whole).floor();
                let rest = shown - periods * whole;
                let inside = if rest < led {
                    rest / slow
                } else if rest < led + crowd {
                    lead + (rest - led) / fast
                } else {
                    lead + on + (rest - led - crowd) / slow
                };
                periods * period + inside
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the clock shows at a second, by adding its pace up in small steps.
    fn shown(pace: impl Fn(f64) -> f64, second: f64) -> f64 {
        let steps = 20_000;
        let step = second / f64::from(steps);
        (0..steps).map(|index| pace((f64::from(index) + 0.5) * step) * step).sum()
    }

    fn pace(clock: Clock, second: f64) -> f64 {
        match clock {
            Clock::Even { .. } => 1.0,
            Clock::Ramp { from, to, seconds } => from + (to - from) * second / seconds,
            Clock::OnOff { slow, fast, on, period, .. } => {
                let from_middle = (second.rem_euclid(period) - period / 2.0).abs();
                if from_middle < on / 2.0 { fast } else { slow }
            }
        }
    }

    proptest! {
        /// The clock's reading at `second(shown)` is `shown`, and it rises.
        #[test]
        fn second_is_the_inverse_of_the_added_up_pace(
            kind in 0..3_u8, one in 1.0..20.0_f64, two in 0.1..0.9_f64, share in 0.02..0.98_f64,
        ) {
            let clock = match kind {
                0 => Clock::Even { seconds: 30.0 },
                1 => Clock::Ramp { from: one - 1.0, to: two, seconds: 30.0 },
                _ => Clock::on_off(one, two * 4.0, 4.0, 30.0),
            };
            let target = clock.end() * share;
            let second = clock.second(target);
            prop_assert!((0.0..=30.0).contains(&second), "{second}");
            let back = shown(|second| pace(clock, second), second);
            prop_assert!((back / target - 1.0).abs() < 0.01, "{back} for {target} at {second}");
            prop_assert!(clock.second(target * 1.001) >= second);
        }

        /// Whatever part of a period the end cuts off, the mean pace is 1.
        #[test]
        fn an_on_off_clock_keeps_the_mean(times in 1.0..50.0_f64, seconds in 4.0..40.0_f64) {
            let clock = Clock::on_off(times, 1.0, 4.0, seconds);
            let end = shown(|second| pace(clock, second), seconds);
            prop_assert!((end / seconds - 1.0).abs() < 0.01, "{end} in {seconds}");
            prop_assert!((clock.second(seconds) - seconds).abs() < 1e-6);
        }
    }

    #[test]
    fn a_ramp_up_has_a_quarter_of_its_arrivals_in_its_first_half() {
        let clock = Clock::Ramp { from: 0.0, to: 2.0, seconds: 10.0 };
        assert!((clock.end() - 10.0).abs() < 1e-12);
        assert!((clock.second(2.5) - 5.0).abs() < 1e-12);
        assert!(clock.second(0.0).abs() < 1e-12);
        let down = Clock::Ramp { from: 2.0, to: 0.0, seconds: 10.0 };
        assert!((down.second(7.5) - 5.0).abs() < 1e-12 && (down.second(10.0) - 10.0).abs() < 1e-6);
    }
}
