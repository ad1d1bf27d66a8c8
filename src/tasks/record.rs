//! Records of tasks: what was fitted, what is applied, and why anything is not, as JSON.
//!
//! A record is made once, from a fit, and everything that is applied is read back out of it: what is
//! shown, what is stored and what is served cannot differ.

mod abstention;
mod parts;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::fit::certify::{Certificate, Outcome};
use super::fit::traffic::Traffic;
use super::fit::{calibration, head, keep, rounded};
use super::order::{ID_RULE, is_id};
use parts::{array, bias_of, certificate_of, head_of};

use crate::question::OPTIONS_MAX;
use crate::question::correction::{Correction, Form, Stage};
pub use abstention::AbstentionTask;

/// Formats of records, each also under the name that decisio gave it before.
pub const TASK: [&str; 2] = ["decisio-task/1", "rlcd-task/1"];
/// See [`TASK`].
pub const ABSTENTION: [&str; 2] = ["decisio-abstention/1", "rlcd-abstention/1"];

/// Most bytes of a record beside the arrays of its head.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// Fields of a record; others are left out.
const FIELDS: &str = "format id type task_key options n_examples fingerprint applied_to calibration head \
    certificate examples created_at inputs_sha256";

/// What a record may have: fields that are known, and arrays of a head that is applied.
fn known(fields: &Map<String, Value>) -> Map<String, Value> {
    let of = |(name, value): (&String, &Value)| (name.clone(), value.clone());
    let is_known = |(name, _): &(&String, &Value)| FIELDS.split(' ').any(|field| field == *name);
    let mut known: Map<String, Value> = fields.iter().filter(is_known).map(of).collect();
    if let Some(Value::Object(head)) = known.get_mut("head")
        && head.get("applied") != Some(&Value::Bool(true))
    {
        head.retain(|name, _| !is_array(name));
    }
    known
}

/// Bytes of a value's text; of a head's arrays, which stand `depth` levels down, none.
fn value_bytes(value: &Value, depth: usize) -> usize {
    let Some(fields) = value.as_object().filter(|_| depth > 0) else {
        return value.to_string().len();
    };
    let counted = fields.iter().filter(|(name, _)| depth != 2 || !is_array(name));
    counted.map(|(name, value)| name.len() + value_bytes(value, depth - 1)).sum()
}

/// A registered task.
#[derive(Debug)]
pub struct Task {
    /// Its name among the tenant's.
    pub id: String,
    /// Identity of the question: [`crate::prompt::identity::task_key`].
    pub task_key: String,
    /// Under what it holds.
    pub fingerprint: String,
    /// What is applied, if anything is.
    pub correction: Option<Arc<Correction>>,
    /// From which top probability on an answer is certified, and why none is where none is.
    pub certificate: Option<Result<f64, String>>,
    /// Bytes of its head.
    pub head_bytes: usize,
    /// All of it.
    record: Map<String, Value>,
    /// Monitors of what is asked, where there is something to compare it with.
    traffic: Mutex<Option<Traffic>>,
}

/// What a fit gave, to be recorded.
#[derive(Debug)]
pub struct Fitted<'a> {
    /// Its name among the tenant's.
    pub id: &'a str,
    /// `noul`, `choice` or `score`.
    pub kind: &'a str,
    /// See [`Task::task_key`].
    pub task_key: &'a str,
    /// Under what it holds.
    pub fingerprint: &'a str,
    /// The answers' keys, in the order of the options.
    pub keys: &'a [String],
    /// How the correction is applied where a question is read in several orders.
    pub stage: Stage,
    /// The bias.
    pub calibration: &'a calibration::Calibration,
    /// The head, where one was tried.
    pub head: Option<&'a head::Head>,
    /// The certificate, where one was asked for.
    pub certificate: Option<&'a Certificate>,
    /// Fewest held-out examples that were asked for.
    pub examples_min: usize,
    /// `[options]`: how often each is the answer of an example.
    pub counts: &'a [usize],
    /// Top probabilities of examples, as they are served.
    pub confidences: &'a [f64],
    /// Seconds since 1970.
    pub created_at: u64,
}

impl Task {
    /// Records a fit.
    ///
    /// # Errors
    /// A fit that does not make a record, which is our own fault.
    pub fn of(fitted: &Fitted<'_>) -> Result<Self, String> {
        let head = fitted.head.map_or_else(|| no_head(fitted), |head| head_record(fitted, head));
        let record = json!({
            "format": TASK[0],
            "id": fitted.id,
            "type": fitted.kind,
            "task_key": fitted.task_key,
            "options": fitted.keys,
            "n_examples": fitted.calibration.examples,
            "fingerprint": fitted.fingerprint,
            "applied_to": match fitted.stage {
                Stage::EachOrder => "each order",
                Stage::Average => "the average",
            },
            "calibration": calibration_record(fitted),
            "head": head,
            "certificate": fitted.certificate.map_or(Value::Null, |found| {
                certificate_record(found, fitted.examples_min)
            }),
            "examples": {"counts": fitted.counts, "confidences": fitted.confidences},
            "created_at": fitted.created_at,
        });
        Self::read(&record)
    }

    /// Reads a record, with the arrays of its head.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(record: &Value) -> Result<Self, String> {
        let Value::Object(fields) = record else { return Err("a task is an object".to_owned()) };
        let fields = &known(fields);
        let text = |name: &str| {
            let text = fields.get(name).and_then(Value::as_str);
            text.map(str::to_owned).ok_or_else(|| format!("{name} is no text"))
        };
        let format = text("format")?;
        if !TASK.contains(&format.as_str()) {
            return Err(format!("the format {format:?} is none of {}", TASK.join(", ")));
        }
        let id = text("id")?;
        if !is_id(&id) {
            return Err(format!("id {ID_RULE}"));
        }
        let keys = fields.get("options").and_then(Value::as_array).ok_or("options is no list")?;
        if keys.is_empty() || keys.len() > OPTIONS_MAX || !keys.iter().all(Value::is_string) {
            return Err(format!("options is no list of 1 to {OPTIONS_MAX} texts"));
        }
        let is_noul = text("type")? == "noul";
        if is_noul && keys.len() != 2 {
            return Err("a noul has two options".to_owned());
        }
        let stage = match text("applied_to")?.as_str() {
            "each order" => Stage::EachOrder,
            _ => Stage::Average,
        };
        let options = keys.len();
        let head = head_of(&record["head"], options)?;
        let head_bytes = head.as_ref().map_or(0, |head| match head {
            // Once as numbers, once as the text of the record, which has 16 characters for 3 of them.
            Form::Head { weights, .. } => weights.len() * (size_of::<f32>() + 6),
            Form::Bias(_) => 0,
        });
        let others: usize = fields.values().map(|value| value_bytes(value, 2)).sum();
        if others > RECORD_BYTES_MAX {
            return Err(format!(
                "it has {others} bytes beside its head, at most {RECORD_BYTES_MAX}"
            ));
        }
        let form = match head {
            Some(head) => Some(head),
            None => bias_of(&record["calibration"], options, is_noul)?,
        };
        let stage = if head_bytes > 0 { Stage::Average } else { stage };
        Ok(Self {
            id,
            task_key: text("task_key")?,
            fingerprint: text("fingerprint")?,
            correction: form.map(|form| Arc::new(Correction { stage, form })),
            certificate: certificate_of(&record["certificate"])?,
            head_bytes,
            traffic: Mutex::new(traffic_of(&record["examples"])),
            record: fields.clone(),
        })
    }

    /// The record; without `full` an array of a head is its shape alone.
    pub fn shown(&self, full: bool) -> Value {
        let mut record = self.record.clone();
        let head = record.get_mut("head").and_then(Value::as_object_mut).filter(|_| !full);
        let arrays = head.into_iter().flat_map(Map::iter_mut).filter(|(name, _)| is_array(name));
        for (_, array) in arrays {
            *array = json!({"shape": array["shape"]});
        }
        Value::Object(record)
    }

    /// The monitors, where there are some.
    pub fn traffic(&self) -> MutexGuard<'_, Option<Traffic>> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is applied, in words for lists.
    pub fn applied(&self) -> (bool, bool) {
        let is = |name: &str| self.record.get(name).is_some_and(|part| part["applied"] == true);
        (is("calibration"), is("head"))
    }
}

/// Whether a head's field is one of its arrays.
fn is_array(name: &str) -> bool {
    matches!(name, "A" | "c")
}

fn figures(record: &mut Map<String, Value>, cv: Option<&keep::CvFigures>) {
    let number = |value: f64, places| json!(rounded(value, places));
    if let Some(cv) = cv {
        record.insert("cv_logloss_plain".to_owned(), number(cv.logloss_plain, 5));
        record.insert("cv_logloss_fitted".to_owned(), number(cv.logloss_fitted, 5));
        record.insert("cv_acc_plain".to_owned(), number(cv.accuracy_plain, 4));
        record.insert("cv_acc_fitted".to_owned(), number(cv.accuracy_fitted, 4));
        record.insert("cv_t".to_owned(), cv.t.map_or(Value::Null, |t| number(t, 3)));
    }
}

fn calibration_record(fitted: &Fitted<'_>) -> Value {
    let found = fitted.calibration;
    // A noul's answers are listed as yes, no.
    let bias: Vec<f64> = if fitted.kind == "noul" {
        found.bias.iter().rev().copied().collect()
    } else {
        found.bias.clone()
    };
    let record = json!({
        "format": "decisio-task-prior/1",
        "task_id": fitted.id,
        "fingerprint": fitted.fingerprint,
        "K": found.options,
        "n_examples": found.examples,
        "bias": bias,
        "applied": found.applied && !fitted.head.is_some_and(head::Head::applied),
        "reason": if fitted.head.is_some_and(head::Head::applied) && found.applied {
            "the head is applied in its place".to_owned()
        } else {
            why(found)
        },
        "lambda": calibration::PENALTY,
    });
    let Value::Object(mut record) = record else { return Value::Null };
    figures(&mut record, found.cv.as_ref());
    Value::Object(record)
}

/// Why a calibration is applied or not; a gain that costs right answers is told as what it is.
fn why(found: &calibration::Calibration) -> String {
    let costs = |cv: &keep::CvFigures| {
        cv.logloss_fitted - cv.logloss_plain <= keep::GAIN && cv.accuracy_fitted < cv.accuracy_plain
    };
    if !found.applied && found.cv.as_ref().is_some_and(costs) {
        return "the log loss of held-out examples falls, and so does their accuracy".to_owned();
    }
    found.reason.to_string()
}

fn head_record(fitted: &Fitted<'_>, head: &head::Head) -> Value {
    let record = json!({
        "format": "decisio-intent-head/1",
        "task_id": fitted.id,
        "fingerprint": fitted.fingerprint,
        "K": head.options,
        "n_examples": head.examples,
        "applied": head.applied(),
        "reason": head.reason.to_string(),
        "lambda": head.lambda,
        "cv": head.cv.iter().map(|trial| json!([trial.lambda, trial.log_loss])).collect::<Vec<_>>(),
    });
    let Value::Object(mut record) = record else { return Value::Null };
    figures(&mut record, head.figures.as_ref());
    if let Some(weights) = &head.weights {
        record.insert("T".to_owned(), json!(weights.temperature));
        let options = weights.c.len();
        record.insert("A".to_owned(), array(&weights.a, &[weights.dimensions, options]));
        record.insert("c".to_owned(), array(&weights.c, &[options]));
    }
    Value::Object(record)
}

/// Why none was tried.
fn no_head(fitted: &Fitted<'_>) -> Value {
    let options = fitted.keys.len();
    let reason = if options < head::OPTIONS_MIN {
        head::Reason::TooFewOptions { options }.to_string()
    } else {
        "the engine gives no hidden states".to_owned()
    };
    json!({"format": "decisio-intent-head/1", "applied": false, "reason": reason, "K": options})
}

fn certificate_record(certificate: &Certificate, examples_min: usize) -> Value {
    let record = json!({
        "procedure": "learn-then-test: fixed sequence and Bonferroni arms, each at delta/2, \
                      Clopper-Pearson upper bounds",
        "alpha": certificate.alpha,
        "delta": certificate.delta,
        "n": certificate.examples,
        "accuracy": certificate.accuracy,
        "empirical_share_at_alpha": certificate.empirical_share,
    });
    let Value::Object(mut record) = record else { return Value::Null };
    let examples = certificate.examples;
    if examples < examples_min {
        let reason = format!("{examples} held-out examples, and min_examples is {examples_min}");
        record.insert("certified".to_owned(), json!(false));
        record.insert("reason".to_owned(), json!(reason));
    } else if let Outcome::Certified(found) = &certificate.outcome {
        record.insert("certified".to_owned(), json!(true));
        record.insert("threshold".to_owned(), json!(found.confidence));
        record.insert("certified_n".to_owned(), json!(found.examples));
        record.insert("certified_share".to_owned(), json!(found.share));
        record.insert("errors_at_threshold".to_owned(), json!(found.errors));
        record.insert("error_rate_at_threshold".to_owned(), json!(found.error_rate));
        record.insert("upper_bound_at_threshold".to_owned(), json!(found.upper_bound));
    } else {
        record.insert("certified".to_owned(), json!(false));
        record.insert("reason".to_owned(), json!(certificate.outcome.to_string()));
    }
    Value::Object(record)
}

fn traffic_of(examples: &Value) -> Option<Traffic> {
    let numbers = |name: &str| examples[name].as_array().cloned().unwrap_or_default();
    let counts: Vec<usize> = numbers("counts")
        .iter()
        .filter_map(|count| usize::try_from(count.as_u64()?).ok())
        .collect();
    let confidences: Vec<f64> = numbers("confidences").iter().filter_map(Value::as_f64).collect();
    Traffic::new(&counts, &confidences).ok()
}
