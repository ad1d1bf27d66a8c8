//! Days in UTC, and points in time as people write them: usage is counted by day.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY_SECONDS: u64 = 86_400;

/// A day in UTC: how many days after the first of January 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub u32);

/// A point in time in whole seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(pub(super) u64);

impl Day {
    /// The day to which a time belongs; the first one for a clock that says a time before 1970.
    pub fn of(time: SystemTime) -> Self {
        Moment::of(time).day()
    }

    /// The first of the last `days` days of which this one is the last.
    pub(super) fn first_of(self, days: u32) -> Self {
        Self(self.0.saturating_sub(days.saturating_sub(1)))
    }

    /// Year, month and day of the Gregorian calendar.
    ///
    /// Counted in years that begin in March, so that the day that leap years add is the last one of
    /// a year; 719,468 days lie between the first such year 0 and 1970, 146,097 are 400 years.
    fn civil(self) -> (u64, u64, u64) {
        let days = u64::from(self.0) + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (era * 400 + year + u64::from(month <= 2), month, day)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

impl Moment {
    /// A time in whole seconds.
    pub(super) fn of(time: SystemTime) -> Self {
        Self(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    }

    /// Its day.
    pub(super) fn day(self) -> Day {
        Day(u32::try_from(self.0 / DAY_SECONDS).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 % DAY_SECONDS;
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        write!(formatter, "{}T{hours:02}:{minutes:02}:{:02}Z", self.day(), seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // As `date --utc --date=@SECONDS` has them.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (86_399, "1970-01-01T23:59:59Z"),
            (86_400, "1970-01-02T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_796_040_000, "2026-11-30T12:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Moment(seconds).to_string(), text, "{seconds}");
        }
    }

    #[test]
    fn every_day_follows_the_one_before_it() {
        let mut before = Day(0).civil();
        for day in (1..150_000).map(Day) {
            let (year, month, first) = day.civil();
            let follows = (year, month, first) == (before.0, before.1, before.2 + 1)
                || first == 1 && (year, month) == (before.0, before.1 + 1)
                || (month, first) == (1, 1) && before == (year - 1, 12, 31);
            assert!(follows && (28..=31).contains(&(if first == 1 { before.2 } else { 28 })));
            before = (year, month, first);
        }
    }

    #[test]
    fn a_clock_before_1970_is_the_first_day_and_no_panic() {
        assert_eq!(Day::of(UNIX_EPOCH - Duration::from_secs(5)), Day(0));
        assert_eq!(Moment(u64::MAX).day(), Day(u32::MAX));
        assert!(Day(u32::MAX).to_string().ends_with(char::is_numeric));
    }

    #[test]
    fn the_last_days_end_with_today() {
        assert_eq!(Day(100).first_of(1), Day(100));
        assert_eq!(Day(100).first_of(30), Day(71));
        assert_eq!(Day(3).first_of(30), Day(0));
    }
}
