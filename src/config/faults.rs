//! Settings that cannot be: collected, so that a start fails once and names all of them.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

use super::quantity::{bytes_as_typed, duration_as_typed};

/// One setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The flag, with its dashes.
    pub flag: &'static str,
    /// The value and the limit.
    pub message: String,
}

/// All settings that cannot be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Error)]
pub struct Faults(pub Vec<Fault>);

impl Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{}: {}", fault.flag, fault.message)?;
        }
        Ok(())
    }
}

impl Faults {
    /// Adds a fault.
    pub fn add(&mut self, flag: &'static str, message: impl Into<String>) {
        self.0.push(Fault { flag, message: message.into() });
    }

    /// Adds a fault unless `value` is within `range`.
    pub(super) fn check_range<T: PartialOrd + Display + Copy>(
        &mut self,
        flag: &'static str,
        value: T,
        range: RangeInclusive<T>,
    ) {
        if !range.contains(&value) {
            self.add(flag, format!("{value} is not within {} to {}", range.start(), range.end()));
        }
    }

    /// Adds a fault unless `value` is within `range`.
    pub(super) fn check_duration(
        &mut self,
        flag: &'static str,
        value: Duration,
        range: RangeInclusive<Duration>,
    ) {
        if !range.contains(&value) {
            let [value, start, end] = [value, *range.start(), *range.end()].map(duration_as_typed);
            self.add(flag, format!("{value} is not within {start} to {end}"));
        }
    }

    /// Adds a fault unless the size `value` is within `range`.
    pub(super) fn check_bytes(
        &mut self,
        flag: &'static str,
        value: u64,
        range: RangeInclusive<u64>,
    ) {
        if !range.contains(&value) {
            let [value, start, end] = [value, *range.start(), *range.end()].map(bytes_as_typed);
            self.add(flag, format!("{value} is not within {start} to {end}"));
        }
    }

    /// Adds a fault unless `value` is within another flag's value and `most`.
    pub(super) fn check_above(
        &mut self,
        flag: &'static str,
        value: u32,
        (other, least): (&str, u32),
        most: u32,
    ) {
        if !(least..=most).contains(&value) {
            self.add(flag, format!("{value} is not within {other} {least} to {most}"));
        }
    }
}
