//! Traces: the times of real requests, to be sent again at the same times.
//!
//! A file has one start a line: a number of seconds, or a JSON object with `at` or `timestamp` in
//! seconds and whatever else. Empty lines are skipped.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use super::REQUESTS_MAX;

/// Longest line, bytes: a line may hold a whole request beside its time.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// Largest time, seconds. Seconds since 1970 fit; milliseconds since then do not, and are found
/// out.
const SECONDS_MAX: f64 = 1e11;

/// The part of a line that is looked at.
#[derive(Debug, Deserialize)]
struct Line {
    at: Option<f64>,
    timestamp: Option<f64>,
}

/// The starts in a file, seconds after the earliest, ascending.
///
/// # Errors
/// When it cannot be read, or a line is none; the line is named.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<f64>> {
    let name = || format!("trace {}", file.display());
    let open = File::open(file).with_context(name)?;
    parse(BufReader::new(open), REQUESTS_MAX as usize).with_context(name)
}

fn parse(mut lines: impl BufRead, starts_max: usize) -> anyhow::Result<Vec<f64>> {
    let (mut starts, mut line) = (Vec::new(), Vec::new());
    for number in 1_u64.. {
        line.clear();
        if lines.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        ensure!(
            line.len() as u64 <= LINE_BYTES_MAX,
            "line {number} is longer than {LINE_BYTES_MAX} bytes"
        );
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        ensure!(starts.len() < starts_max, "line {number}: at most {starts_max} starts fit a run");
        starts.push(start(text).with_context(|| format!("line {number}"))?);
    }
    starts.sort_by(f64::total_cmp);
    let earliest = starts.first().copied().unwrap_or(0.0);
    Ok(starts.into_iter().map(|start| start - earliest).collect())
}

fn start(line: &[u8]) -> anyhow::Result<f64> {
    let (field, seconds) = if line.starts_with(b"{") {
        match serde_json::from_slice(line)? {
            Line { at: Some(at), .. } => ("\"at\"", at),
            Line { timestamp: Some(timestamp), .. } => ("\"timestamp\"", timestamp),
            Line { at: None, timestamp: None } => {
                bail!("has neither \"at\" nor \"timestamp\", the start in seconds")
            }
        }
    } else {
        let text = String::from_utf8_lossy(line);
        let Ok(seconds) = text.parse() else {
            let start: String = text.chars().take(40).collect();
            bail!("{start:?} is neither a number of seconds nor a JSON object")
        };
        ("the start", seconds)
    };
    ensure!(
        (0.0..=SECONDS_MAX).contains(&seconds),
        "{field} is {seconds}, must be from 0 to {SECONDS_MAX} seconds"
    );
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> String {
        format!("{:#}", parse(text.as_bytes(), 4).unwrap_err())
    }

    #[test]
    fn starts_count_from_the_earliest_and_come_in_order() {
        let text =
            "12.5\n10\r\n\n{\"at\": 11, \"state\": {\"a\": [1]}}\n{\"timestamp\":10.25,\"b\":2}";
        assert_eq!(parse(text.as_bytes(), 4).unwrap(), [0.0, 0.25, 1.0, 2.5]);
        assert_eq!(parse(&b"\n"[..], 4).unwrap(), [0.0; 0]);
    }

    #[test]
    fn faults_name_their_line() {
        for (text, fault) in [
            ("1\n\nx y\n", "line 3: \"x y\" is neither a number of seconds nor a JSON object"),
            ("1\n{}", "line 2: has neither \"at\" nor \"timestamp\""),
            ("{\"at\":\"1\"}", "line 1: invalid type: string"),
            ("{\"at\":1", "line 1: EOF"),
            ("-1", "line 1: the start is -1, must be from 0 to 100000000000 seconds"),
            ("nan", "line 1: the start is NaN"),
            ("{\"timestamp\":1700000000000}", "line 1: \"timestamp\" is 1700000000000, must be"),
            ("1\n1\n1\n1\n1", "line 5: at most 4 starts fit a run"),
        ] {
            assert!(faults(text).contains(fault), "{}\nexpected {fault}", faults(text));
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let fault = format!("{:#}", read(Path::new("no/such.txt")).unwrap_err());
        assert!(fault.starts_with("trace no/such.txt: "), "{fault}");
    }
}
