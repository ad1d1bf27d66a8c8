//! What a decision may ask, and how it is read where a request says nothing.

use std::time::Duration;

use super::profiles::Profiles;
use super::quantity::duration_as_typed;
use super::{DialectChoice, Faults, LayoutChoice, SamplesDefault};
use crate::prompt::layout::layout;
use crate::prompt::layout::named::LAYOUTS;

/// What a decision may ask.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionConfig {
    /// Time from a request's first byte to its answer where the caller sets none. Default 60 s;
    /// 1 ms to `timeout_max`.
    pub timeout: Duration,
    /// Longest time that a caller may set. Default 600 s; 1 ms to 24 h.
    pub timeout_max: Duration,
    /// Most questions of one request. Default 64; 1 to 4,096.
    pub questions_max: u32,
    /// Most orders of its options that a question is read in. Default 32; 1 to 255. Every order is
    /// a read of its own.
    pub samples_max: u32,
    /// Orders where the request says nothing. Default: the model profile's.
    pub samples: SamplesDefault,
    /// The wire format of `/v1/systemone`. Default `systemone`.
    pub dialect: DialectChoice,
    /// How prompts are arranged. Default: the model profile's layout.
    pub layout: LayoutChoice,
    /// Settings that a request may ask for by name. Default none.
    pub profiles: Profiles,
}

impl DecisionConfig {
    pub(super) fn check(&self, faults: &mut Faults) {
        let shortest = Duration::from_millis(1);
        faults.check_duration(
            "--timeout-max",
            self.timeout_max,
            shortest..=Duration::from_hours(24),
        );
        if !(shortest..=self.timeout_max).contains(&self.timeout) {
            let [timeout, most] = [self.timeout, self.timeout_max].map(duration_as_typed);
            faults.add("--timeout", format!("{timeout} is not within 1ms to --timeout-max {most}"));
        }
        if let LayoutChoice::Named(id) = &self.layout
            && layout(id).is_none()
        {
            let known = LAYOUTS.map(|layout| layout.id).join(", ");
            faults.add("--layout", format!("{id:?} is none of {known}"));
        }
        faults.check_range("--max-questions", self.questions_max, 1..=4096);
        faults.check_range("--samples-max", self.samples_max, 1..=255);
        if let SamplesDefault::Count(count) = self.samples
            && !(1..=self.samples_max).contains(&count)
        {
            let most = self.samples_max;
            faults.add("--samples", format!("{count} is not within 1 to --samples-max {most}"));
        }
    }
}
