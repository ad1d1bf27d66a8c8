//! Sizes and durations as people type them: `4GiB`, `512MiB`, `90s`, `250ms`.

use std::time::Duration;

/// Suffixes of sizes and their bytes. Both families are taken for what they say.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
];

/// Suffixes of durations and their milliseconds; a bare number is in seconds.
const DURATION_UNITS: [(&str, u64); 7] = [
    ("", 1_000),
    ("ms", 1),
    ("s", 1_000),
    ("min", 60_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Understands a size in bytes: a whole number with an optional unit (`B`, `KiB`, `MiB`, `GiB`,
/// `TiB`, `KB`, `MB`, `GB`, in any case).
///
/// # Errors
/// What is wrong with it and what would be right.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    parse(text, &SIZE_UNITS)
        .ok_or_else(|| format!("{text:?} is no size; write it as 0, 512MiB or 4GiB"))
}

/// Understands a duration: a whole number with an optional unit (`ms`, `s`, `m` or `min`, `h`, `d`);
/// without one it is in seconds.
///
/// # Errors
/// What is wrong with it and what would be right.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    parse(text, &DURATION_UNITS)
        .map(Duration::from_millis)
        .ok_or_else(|| format!("{text:?} is no duration; write it as 60, 60s, 500ms or 10m"))
}

/// A size as people type it: in the largest unit of which it is a whole number.
pub(crate) fn bytes_as_typed(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = units.into_iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// A duration as people type it: in hours, seconds or milliseconds, the largest of which it is a
/// whole number.
pub(crate) fn duration_as_typed(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let units = [("h", 3_600_000), ("s", 1_000)];
    let is_whole = |(_, unit): &(&str, u128)| {
        milliseconds.is_multiple_of(*unit) && (milliseconds >= *unit || *unit == 1_000)
    };
    let unit = units.into_iter().find(is_whole);
    unit.map_or_else(
        || format!("{milliseconds}ms"),
        |(name, unit)| format!("{}{name}", milliseconds / unit),
    )
}

/// A whole number times its unit; `None` when either is unknown or the product too large.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_understood_with_and_without_units() {
        let right = [
            ("0", 0),
            ("4096", 4096),
            ("1kib", 1024),
            ("512MiB", 512 << 20),
            ("4 GiB", 4 << 30),
            ("2GB", 2_000_000_000),
            ("7B", 7),
        ];
        for (text, bytes) in right {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_by_name() {
        for text in ["", "MiB", "-1", "1.5GiB", "4 gigs", "99999999999999TiB"] {
            let message = parse_bytes(text).unwrap_err();
            assert!(message.contains(text) && message.contains("512MiB"), "{message}");
        }
    }

    #[test]
    fn a_bare_duration_is_in_seconds() {
        assert_eq!(parse_duration("60"), Ok(Duration::from_mins(1)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("2m"), parse_duration("2min"));
        assert_eq!(parse_duration("1h"), Ok(Duration::from_hours(1)));
        assert_eq!(parse_duration("2d"), Ok(Duration::from_hours(48)));
        assert!(parse_duration("soon").unwrap_err().contains("soon"));
    }

    #[test]
    fn quantities_are_shown_as_they_can_be_typed() {
        for text in ["0s", "1ms", "1500ms", "10s", "60s", "660s", "1h", "24h"] {
            assert_eq!(duration_as_typed(parse_duration(text).unwrap()), text);
        }
        for text in ["0", "1023", "1KiB", "1536KiB", "32MiB", "1GiB"] {
            assert_eq!(bytes_as_typed(parse_bytes(text).unwrap()), text);
        }
    }
}
