//! One report as it was written, and its values.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

/// Largest report that is read.
const BYTES_MAX: u64 = 256 << 20;

/// A report.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) file: String,
    json: Value,
}

impl Run {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is too large, or is no report of a run.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = path.display().to_string();
        let mut text = String::new();
        let open = File::open(path).with_context(|| file.clone())?;
        open.take(BYTES_MAX + 1).read_to_string(&mut text).with_context(|| file.clone())?;
        ensure!(text.len() as u64 <= BYTES_MAX, "{file} is over {BYTES_MAX} bytes");
        let json = serde_json::from_str(&text).with_context(|| format!("{file} is no JSON"))?;
        Self::of(file, json)
    }

    /// A report that is read already.
    ///
    /// # Errors
    /// When it is none of a run.
    pub(super) fn of(file: String, json: Value) -> anyhow::Result<Self> {
        for field in ["/run/loop", "/all/latency_ms", "/all/sent"] {
            if json.pointer(field).is_none() {
                bail!("{file} has no {field}: it is no report that `open` or `closed` wrote");
            }
        }
        Ok(Self { file, json })
    }

    /// A value by its JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&Value> {
        self.json.pointer(pointer)
    }

    /// A number; none where it is absent, or of a distribution that has no values.
    pub(super) fn number(&self, pointer: &str) -> Option<f64> {
        let (parent, _) = pointer.rsplit_once('/')?;
        let count = self.json.pointer(&format!("{parent}/count")).and_then(Value::as_u64);
        if count == Some(0) {
            return None;
        }
        self.json.pointer(pointer)?.as_f64()
    }

    /// Names of the members of an object.
    pub(super) fn names(&self, pointer: &str) -> Vec<&str> {
        let members = self.json.pointer(pointer).and_then(Value::as_object);
        members.into_iter().flat_map(|members| members.keys().map(String::as_str)).collect()
    }

    /// Whatever makes its numbers doubtful.
    pub(super) fn notes(&self) -> impl Iterator<Item = &str> {
        let notes = self.at("/notes").and_then(Value::as_array).into_iter().flatten();
        notes.filter_map(Value::as_str)
    }

    /// A word of the run's settings.
    pub(super) fn word(&self, field: &str) -> String {
        let value = self.json.pointer(&format!("/run/{field}"));
        value.map_or(String::new(), |value| {
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        })
    }
}

/// A name as a part of a JSON pointer.
pub(super) fn part(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
