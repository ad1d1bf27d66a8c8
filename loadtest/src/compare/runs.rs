//! One report as it was written, and its values.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

/// Largest report that is read.
const BYTES_MAX: u64 = 256 << 20;

/// What every report of a run has, and every one of a search for the knee.
const OF_A_RUN: &[&str] = &["/run/loop", "/all/latency_ms", "/all/sent"];
const OF_A_KNEE: &[&str] = &["/run/loop", "/knee", "/precision", "/is_found", "/steps/0/machine"];
/// The loop of the latter.
const KNEE: &str = "knee";

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
    /// When it is none.
    pub(super) fn of(file: String, json: Value) -> anyhow::Result<Self> {
        let is_knee = json.get("knee").is_some() && json.get("steps").is_some();
        let (fields, by) =
            if is_knee { (OF_A_KNEE, "`knee`") } else { (OF_A_RUN, "`open`, `closed` or `knee`") };
        if let Some(field) = fields.iter().find(|field| json.pointer(field).is_none()) {
            bail!("{file} has no {field}: it is no report that this version's {by} wrote");
        }
        Ok(Self { file, json: if is_knee { of_knee(json) } else { json } })
    }

    /// Whether it is of a search for the knee.
    pub(super) fn is_knee(&self) -> bool {
        self.word("loop") == KNEE
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

    /// Whom it asked, in a few words: the build where it is known, else the driver, and the address.
    pub(super) fn server_words(&self) -> String {
        let build = self.at("/server/build").and_then(Value::as_str).map(str::to_owned);
        format!("{} at {}", build.unwrap_or_else(|| self.word("driver")), self.word("url"))
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

/// A report of a search for the knee, whose steps are but the one that held there, as `at_knee`.
fn of_knee(mut json: Value) -> Value {
    let steps = json.as_object_mut().and_then(|members| members.remove("steps"));
    let steps: Vec<Value> =
        steps.and_then(|steps| serde_json::from_value(steps).ok()).unwrap_or_default();
    if json["is_found"] != true {
        let verdict = json["verdict"].as_str().unwrap_or_default().to_owned();
        if let Some(notes) = json["notes"].as_array_mut() {
            notes.push(verdict.into());
        }
    }
    for member in ["server", "machine"] {
        json[member] = steps.first().map(|step| step[member].clone()).into();
    }
    let is_knee = |step: &&Value| step["holds"] == true && step["run"]["rate"] == json["knee"];
    let at_knee = steps.iter().find(is_knee).cloned();
    json["at_knee"] = at_knee.into();
    json
}

/// A name as a part of a JSON pointer.
pub(super) fn part(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
