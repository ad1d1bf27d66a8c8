//! Points in time as people write them in files and on command lines: RFC 3339 date-times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::{Date, Month, OffsetDateTime};
use toml_edit::{Datetime, Offset, Value};

use crate::config::quantity::parse_duration;

const DAY_S: i64 = 86_400;

/// Day 0 of 1970 in Julian days.
const EPOCH_JULIAN: i64 = 2_440_588;

/// The first and last second that can be written: those of the years 0 and 9999.
const FIRST_S: i64 = -62_167_219_200;
const LAST_S: i64 = 253_402_300_799;

/// When a date-time is.
///
/// # Errors
/// What is missing of it, or that there is no such day.
pub(super) fn of(written: &Datetime) -> Result<SystemTime, String> {
    let (Some(date), Some(time), Some(offset)) = (written.date, written.time, written.offset)
    else {
        return Err(format!(
            "{written} is no point in time; date, time and offset are wanted, as in \
             2027-01-01T00:00:00Z"
        ));
    };
    let day = Month::try_from(date.month)
        .and_then(|month| Date::from_calendar_date(i32::from(date.year), month, date.day))
        .map_err(|_| format!("{written} is on no day of the calendar"))?;
    let offset_minutes = match offset {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    let minutes = i64::from(time.hour) * 60 + i64::from(time.minute) - offset_minutes;
    let second = i64::from(time.second.unwrap_or(0));
    let days = i64::from(day.to_julian_day()) - EPOCH_JULIAN;
    let seconds = days * DAY_S + minutes * 60 + second;
    let nanoseconds = Duration::from_nanos(u64::from(time.nanosecond.unwrap_or(0)));
    let magnitude = Duration::from_secs(seconds.unsigned_abs());
    let whole = if seconds < 0 {
        UNIX_EPOCH.checked_sub(magnitude)
    } else {
        UNIX_EPOCH.checked_add(magnitude)
    };
    whole
        .and_then(|whole| whole.checked_add(nanoseconds))
        .ok_or_else(|| format!("{written} is too far away"))
}

/// A point in time as a date-time in UTC and whole seconds; what is before the year 0 or after 9999 is
/// shown as their end.
fn datetime(moment: SystemTime) -> Datetime {
    let seconds = match moment.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(before) => {
            let before = before.duration();
            let seconds = before.as_secs() + u64::from(before.subsec_nanos() > 0);
            i64::try_from(seconds).map_or(i64::MIN, |seconds| -seconds)
        }
    };
    let seconds = seconds.clamp(FIRST_S, LAST_S);
    let utc = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let year = u16::try_from(utc.year()).unwrap_or_default();
    let (month, day) = (u8::from(utc.month()), utc.day());
    let (hour, minute, second) = (utc.hour(), utc.minute(), Some(utc.second()));
    Datetime {
        date: Some(toml_edit::Date { year, month, day }),
        time: Some(toml_edit::Time { hour, minute, second, nanosecond: None }),
        offset: Some(Offset::Z),
    }
}

/// A point in time as a value of the file.
pub fn value(moment: SystemTime) -> Value {
    datetime(moment).into()
}

/// A point in time as text: `2027-01-01T00:00:00Z`.
pub fn written(moment: SystemTime) -> String {
    datetime(moment).to_string()
}

/// Understands when something ends: `90d`, `12h`, `30m` from now on, or a date-time such as
/// `2027-01-01T00:00:00Z`. A number alone is refused, since nobody can tell its unit.
///
/// # Errors
/// What is wrong with it and what would be right; also for what is not after `now`.
pub fn parse_end(text: &str, now: SystemTime) -> Result<SystemTime, String> {
    let text = text.trim();
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit());
    let duration = parse_duration(text).ok().filter(|_| !is_bare);
    let last = UNIX_EPOCH + Duration::from_secs(LAST_S.unsigned_abs());
    let end = match duration {
        Some(duration) => now.checked_add(duration).filter(|end| *end <= last),
        None => text.parse::<Datetime>().ok().map(|written| of(&written)).transpose()?,
    };
    let end = end.ok_or_else(|| {
        format!("{text:?} is no time; write it as 90d, 12h or 2027-01-01T00:00:00Z, until 9999")
    })?;
    if end <= now {
        return Err(format!("{text} is {}, which is past", written(end)));
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(text: &str) -> Result<i64, String> {
        let moment = of(&text.parse().unwrap())?;
        Ok(match moment.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_secs().cast_signed(),
            Err(before) => -before.duration().as_secs().cast_signed(),
        })
    }

    #[test]
    fn date_times_are_points_in_time() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(seconds("2000-02-29T12:30:15+02:30"), Ok(951_818_415));
        assert_eq!(seconds("2027-01-01 00:00:00-01:00"), Ok(1_798_765_200));
        assert_eq!(seconds("1969-12-31T23:59:59Z"), Ok(-1));
        assert_eq!(seconds("0000-01-01T00:00:00Z"), Ok(-62_167_219_200));
        for text in ["2027-01-01", "12:00:00", "2027-01-01T00:00:00"] {
            assert!(seconds(text).unwrap_err().contains("offset"), "{text}");
        }
    }

    #[test]
    fn an_end_is_a_duration_from_now_or_a_date_time() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        let end = |text| parse_end(text, now).map(|end| end.duration_since(now).unwrap().as_secs());
        assert_eq!(end("90d"), Ok(90 * 86_400));
        assert_eq!(end("12h"), Ok(12 * 3_600));
        assert_eq!(end("1970-01-01T00:30:00Z"), Ok(800));
        for text in ["90", "", "soon", "0d", "1970-01-01T00:00:00Z", "2027-01-01", "9999999d"] {
            assert!(end(text).is_err(), "{text}");
        }
        assert!(end("18446744073709551615d").is_err() && end("213503982334d").is_err());
        assert!(end("1970-01-01T00:16:40Z").unwrap_err().contains("past"));
    }

    #[test]
    fn what_cannot_be_written_is_shown_as_the_end_of_time() {
        let far = UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert_eq!(written(far), "9999-12-31T23:59:59Z");
        let before = UNIX_EPOCH - Duration::from_secs(1 << 40);
        assert_eq!(written(before), "0000-01-01T00:00:00Z");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in FIRST_S..=LAST_S) {
            let magnitude = Duration::from_secs(seconds.unsigned_abs());
            let moment = if seconds < 0 { UNIX_EPOCH - magnitude } else { UNIX_EPOCH + magnitude };
            prop_assert_eq!(of(&written(moment).parse().unwrap()), Ok(moment));
        }
    }
}
