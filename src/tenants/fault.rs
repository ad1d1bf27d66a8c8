//! Faults of a key file: collected, so that all are told at once, and never with a key in them.

use std::fmt;
use std::io;

use super::key::holds_key;

/// Most faults that are told of one file; the last line says how many more there are.
const FAULTS_MAX: usize = 100;

/// Most characters of a name or a parser's message that are shown.
const SHOWN_CHARS_MAX: usize = 120;

/// One thing that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where: the path to the field, `tenants.acme.weight`, or the line where it is no TOML.
    pub place: String,
    /// What is there and what may be.
    pub message: String,
    /// Whether it may be gone without anybody changing the file: the system would not let it be read.
    pub passes: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)
    }
}

impl Fault {
    /// One that stays until somebody changes what is at fault.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into(), passes: false }
    }

    /// That a file cannot be read. What the system says passes: it had no descriptor or no memory left,
    /// a disk or a right was not there. What we say of the file, that it is too long, stays with it.
    pub(super) fn unread(place: impl Into<String>, error: &io::Error) -> Self {
        let passes = error.raw_os_error().is_some();
        Self { passes, ..Self::new(place, error.to_string()) }
    }
}

/// Faults as text, one a line.
pub fn listed(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n")
}

/// Faults while they are looked for.
#[derive(Debug, Default)]
pub(super) struct Faults {
    found: Vec<Fault>,
    more: usize,
}

impl Faults {
    pub(super) fn add(&mut self, place: impl Into<String>, message: impl Into<String>) {
        if self.found.len() < FAULTS_MAX {
            self.found.push(Fault::new(place, message));
        } else {
            self.more += 1;
        }
    }

    /// What `found` is, or `None` and a fault.
    pub(super) fn take<T>(&mut self, place: &str, found: Result<T, String>) -> Option<T> {
        found.map_err(|message| self.add(place, message)).ok()
    }

    /// The result, unless there are faults.
    pub(super) fn or<T>(mut self, result: T) -> Result<T, Vec<Fault>> {
        if self.more > 0 {
            self.found.push(Fault::new("and", format!("{} more faults", self.more)));
        }
        if self.found.is_empty() { Ok(result) } else { Err(self.found) }
    }
}

/// A name or message as it may be shown: without a key, on one line and not longer than a line.
pub(crate) fn shown(text: &str) -> String {
    if holds_key(text) {
        return "(a key, which is not shown)".to_owned();
    }
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
