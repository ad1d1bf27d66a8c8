//! The machine that the generator runs on, as far as it tells: a figure without it cannot be read.
//!
//! Source: Linux's `/proc/cpuinfo` and `/proc/loadavg`; elsewhere those are not known.

use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// Facts about the machine and the time of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Machine {
    pub(crate) processor: Option<String>,
    /// Cores that the generator may use.
    pub(crate) cores: Option<usize>,
    /// When the run began, seconds since 1970.
    pub(crate) began_unix_s: u64,
    /// Processes that ran or wanted to, averaged over the last minute, before and after the run.
    pub(crate) load_before: Option<f64>,
    pub(crate) load_after: Option<f64>,
}

impl Machine {
    /// The machine before a run.
    pub(crate) fn now() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            processor: processor(&cpuinfo),
            cores: available_parallelism().ok().map(Into::into),
            began_unix_s: since.as_secs(),
            load_before: load(),
            load_after: None,
        }
    }

    /// The same after it.
    pub(crate) fn after(self) -> Self {
        Self { load_after: load(), ..self }
    }
}

/// Name of the first processor that says one.
fn processor(cpuinfo: &str) -> Option<String> {
    let named = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut named = named.filter(|(field, _)| matches!(field.trim(), "model name" | "Model"));
    named.next().map(|(_, name)| name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// A moment as date and time of day, UTC.
///
/// Source: H. Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
pub(crate) fn utc(unix_s: u64) -> String {
    let (days, second) = (unix_s / DAY_S + 719_468, unix_s % DAY_S);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + era * 400 + next;
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_named_in_the_ways_of_two_architectures() {
        let x86 = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.00GHz\n";
        assert_eq!(processor(x86).as_deref(), Some("Some CPU @ 2.00GHz"));
        assert_eq!(processor("processor : 0\nModel : A Board 5\n").as_deref(), Some("A Board 5"));
        assert_eq!(processor("processor : 0\n"), None);
    }

    #[test]
    fn seconds_become_dates_of_leap_years_too() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(utc(1_735_689_599), "2024-12-31 23:59 UTC");
    }
}
