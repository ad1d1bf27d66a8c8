//! Results file: one JSON line a case and layout, written as soon as it is read, so that a run that
//! is stopped goes on where it was.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use docket::json::Json;
use docket::question::{Kind, Question};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cases::Case;

/// What one case gave under one layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Fingerprint of the weights.
    pub(crate) model: String,
    /// Identity of the layout, its content included.
    pub(crate) layout: String,
    /// The case's id.
    pub(crate) case: String,
    /// `noul`, `choice` or `score`.
    pub(crate) kind: String,
    /// Index of the right answer.
    pub(crate) gold: usize,
    /// Natural log-probabilities of the labels for each order, put back into the order of the
    /// request (noul: no, yes): `[orders][answers]`.
    pub(crate) orders: Vec<Vec<f64>>,
    /// Probability of all labels together for each order: `[orders]`.
    pub(crate) mass: Vec<f64>,
    /// For how many orders the most probable token was a label.
    pub(crate) greedy: usize,
    /// Tokens computed: the state once, and each order's own text.
    pub(crate) tokens: u32,
    /// Time of the engine in milliseconds.
    pub(crate) elapsed_ms: f64,
}

/// What makes a record the one of a run: model, layout and case.
type Key = (String, String, String);

/// An open results file.
#[derive(Debug)]
pub(crate) struct Results {
    file: File,
    known: BTreeMap<Key, Record>,
}

impl Results {
    /// Opens or makes the file and reads what is in it; a last line that was cut off is ignored.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let mut known = BTreeMap::new();
        let mut whole = true;
        for line in BufReader::new(&file).lines() {
            let line = line?;
            let record: Result<Record, _> = serde_json::from_str(&line);
            whole = record.is_ok();
            if let Ok(record) = record {
                known.insert(key(&record.model, &record.layout, &record.case), record);
            }
        }
        if !whole {
            writeln!(file)?;
        }
        Ok(Self { file, known })
    }

    /// The record of a case, if it has been read before.
    pub(crate) fn find(&self, model: &str, layout: &str, case: &str) -> Option<&Record> {
        self.known.get(&key(model, layout, case))
    }

    /// Adds a record, on disk at once.
    pub(crate) fn add(&mut self, record: Record) -> io::Result<()> {
        let line = serde_json::to_string(&record)?;
        writeln!(self.file, "{line}")?;
        self.file.flush()?;
        self.known.insert(key(&record.model, &record.layout, &record.case), record);
        Ok(())
    }
}

fn key(model: &str, layout: &str, case: &str) -> Key {
    (model.to_owned(), layout.to_owned(), case.to_owned())
}

/// A case as one JSON line in the spelling of the wire, for the eye and for other servers.
pub(crate) fn line(case: &Case) -> String {
    let (name, criteria) = criteria(&case.question);
    json!({
        "id": case.id,
        "type": name,
        "state": value(&case.state),
        "instructions": case.question.instructions.as_ref().map(value),
        "criteria": criteria,
        "gold": case.gold,
    })
    .to_string()
}

fn criteria(question: &Question) -> (&'static str, Value) {
    let optional = |text: &Option<Json>| text.as_ref().map_or(Value::Null, value);
    let criteria = match &question.kind {
        Kind::Noul { when_true: None, when_false: None } => Value::Null,
        Kind::Noul { when_true, when_false } => {
            json!({ "true": optional(when_true), "false": optional(when_false) })
        }
        Kind::Choice { options } => Value::Object(
            options.iter().map(|o| (o.key.clone(), optional(&o.description))).collect(),
        ),
        Kind::Score { levels } => Value::Array(levels.iter().map(value).collect()),
    };
    (question.kind.name(), criteria)
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(spelling) => serde_json::from_str(spelling).unwrap_or(Value::Null),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(value).collect()),
        Json::Object(members) => Value::Object(
            members.iter().map(|(key, member)| (key.clone(), value(member))).collect(),
        ),
    }
}
