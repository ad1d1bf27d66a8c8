//! Reading of single fields, with the faults and the unknown names collected on the way.

use std::time::Duration;

use actors::Lane;

use crate::dialect::staging::Waits;
use crate::dialect::{ECHO_CHARS_MAX, FAULTS_MAX, RequestLimits, Undecoded, echo};
use crate::error::{Problem, Step};
use crate::json::Json;
use crate::question::{Adaptive, Samples};

use super::staging;

/// Most ignored names that are kept; a response lists no more.
const IGNORED_MAX: usize = 16;

/// What a decoding has found out beside the request itself.
#[derive(Debug)]
pub(in crate::dialect) struct Findings {
    pub(in crate::dialect) faults: Vec<Problem>,
    pub(in crate::dialect) ignored: Vec<String>,
    /// Where the decoding is: the path of the object whose fields are read.
    pub(in crate::dialect) at: Vec<Step>,
}

impl Findings {
    pub(in crate::dialect) fn new() -> Self {
        Self { faults: Vec::new(), ignored: Vec::new(), at: Vec::new() }
    }

    /// Reports a fault of the field `path` below the current object.
    pub(in crate::dialect) fn fault(
        &mut self,
        path: Vec<Step>,
        code: &'static str,
        message: String,
    ) {
        if self.faults.len() < FAULTS_MAX {
            let path = self.at.iter().cloned().chain(path).collect();
            self.faults.push(Problem::new(path, code, message));
        }
    }

    /// Reports that `field` has a type it may not have.
    pub(in crate::dialect) fn wrong_type(&mut self, field: &str, expected: &str, found: &Json) {
        let message = format!(
            "{field} must be {expected}, not {}: {}",
            found.type_name(),
            found.excerpt(ECHO_CHARS_MAX)
        );
        self.fault(vec![field.into()], "wrong_type", message);
    }

    /// Notes a field that nobody reads.
    pub(in crate::dialect) fn ignore(&mut self, field: &str) {
        if self.ignored.len() >= IGNORED_MAX {
            return;
        }
        let steps = self.at.iter().map(|step| match step {
            Step::Key(key) => echo(key),
            Step::Index(index) => index.to_string(),
        });
        let name: Vec<String> = steps.chain([echo(field)]).collect();
        self.ignored.push(name.join("."));
    }

    /// Runs `read` with the current object at `step` below this one.
    pub(in crate::dialect) fn inside<T>(
        &mut self,
        step: Step,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.at.push(step);
        let value = read(self);
        self.at.pop();
        value
    }
}

impl From<Findings> for Undecoded {
    fn from(findings: Findings) -> Self {
        Self { faults: findings.faults, ignored: findings.ignored }
    }
}

/// Fields that docket adds to requests, each also under its name with `x_` in front.
#[derive(Debug, Clone, Default)]
pub(in crate::dialect) struct Extensions {
    pub(in crate::dialect) samples: Option<Samples>,
    pub(in crate::dialect) lane: Option<Lane>,
    pub(in crate::dialect) timeout: Option<Duration>,
    pub(in crate::dialect) diagnostics: Option<bool>,
    pub(in crate::dialect) ttl: Option<Duration>,
    pub(in crate::dialect) wait: Option<bool>,
    pub(in crate::dialect) state_text: Option<bool>,
    pub(in crate::dialect) profile: Option<String>,
    pub(in crate::dialect) context: Option<String>,
    pub(in crate::dialect) ask: Option<Vec<String>>,
    pub(in crate::dialect) stage_context: Option<bool>,
    pub(in crate::dialect) waits: Waits,
    auto_threshold: Option<f64>,
    auto_max: Option<u32>,
    /// Names seen, without `x_`: both spellings of one in a request contradict each other.
    seen: Vec<&'static str>,
}

impl Extensions {
    /// Reads `field` where it is one of `names`; `false` where it is not.
    pub(in crate::dialect) fn read(
        &mut self,
        names: &[&'static str],
        (field, value): (&str, &Json),
        limits: &RequestLimits,
        findings: &mut Findings,
    ) -> bool {
        let plain = field.strip_prefix("x_").unwrap_or(field);
        let Some(name) = names.iter().find(|name| **name == plain) else { return false };
        if self.seen.contains(name) {
            let message = format!("{name} and x_{name} are the same field, send one of them");
            findings.fault(vec![field.into()], "duplicate_key", message);
            return true;
        }
        self.seen.push(name);
        if *value == Json::Null {
            return true;
        }
        match *name {
            "samples" => self.samples = samples(field, value, findings),
            "priority" => self.lane = lane(field, value, findings),
            "timeout_ms" => self.timeout = timeout(field, value, limits, findings),
            "ttl_s" => self.ttl = ttl(field, value, findings),
            "wait" => self.wait = boolean(field, value, findings),
            "state_text" => self.state_text = boolean(field, value, findings),
            "profile" => self.profile = string(field, "the name of a profile", value, findings),
            "context" => self.context = string(field, "a string", value, findings),
            "ask" => self.ask = staging::ask(field, value, findings),
            "ask_if" => self.waits.ask_if = staging::ask_if(field, value, findings),
            "depends_on" => self.waits.depends_on = staging::depends_on(field, value, findings),
            "stage_context" => self.stage_context = boolean(field, value, findings),
            "auto_threshold" => self.auto_threshold = auto_threshold(field, value, findings),
            "auto_max" => self.auto_max = auto_max(field, value, findings),
            _ => self.diagnostics = boolean(field, value, findings),
        }
        true
    }

    /// When further orders are read, where the request says anything about it.
    pub(super) fn adaptive(&self) -> Option<Adaptive> {
        let usual = Adaptive::default();
        let is_said = self.auto_threshold.is_some() || self.auto_max.is_some();
        is_said.then(|| Adaptive {
            entropy_max: self.auto_threshold.unwrap_or(usual.entropy_max),
            orders_max: self.auto_max.unwrap_or(usual.orders_max),
        })
    }

    /// The samples of the whole request; what says when `auto` adds some is ignored beside a number.
    pub(super) fn samples_of_request(&self, findings: &mut Findings) -> Option<Samples> {
        if let Some(Samples::Count(_)) = self.samples {
            for name in self.seen.iter().filter(|name| name.starts_with("auto_")) {
                findings.ignore(name);
            }
            return self.samples;
        }
        self.adaptive().map(Samples::Adaptive).or(self.samples)
    }
}

fn string(field: &str, expected: &str, value: &Json, findings: &mut Findings) -> Option<String> {
    let text = value.as_str().map(str::to_owned);
    if text.is_none() {
        findings.wrong_type(field, expected, value);
    }
    text
}

fn auto_threshold(field: &str, value: &Json, findings: &mut Findings) -> Option<f64> {
    let nats = value.as_number().and_then(|spelling| spelling.parse().ok());
    let nats = nats.filter(|nats: &f64| nats.is_finite() && *nats >= 0.0);
    if nats.is_none() {
        let found = value.excerpt(ECHO_CHARS_MAX);
        let message = format!("{field} must be a number of at least 0, not {found}");
        findings.fault(vec![field.into()], "samples_invalid", message);
    }
    nats
}

fn auto_max(field: &str, value: &Json, findings: &mut Findings) -> Option<u32> {
    let count = value.as_number().and_then(whole).filter(|count| *count >= 1);
    if count.is_none() {
        let found = value.excerpt(ECHO_CHARS_MAX);
        let message = format!("{field} must be an integer of at least 1, not {found}");
        findings.fault(vec![field.into()], "samples_invalid", message);
    }
    count.map(|count| u32::try_from(count).unwrap_or(u32::MAX))
}

/// Longest time to live that a request may name; the server cuts it to its own limit.
const TTL_S_MAX: u64 = 7 * 24 * 3_600;

fn ttl(field: &str, value: &Json, findings: &mut Findings) -> Option<Duration> {
    let seconds = value.as_number().and_then(whole).filter(|s| (1..=TTL_S_MAX).contains(s));
    if seconds.is_none() {
        let message = format!(
            "{field} must be an integer from 1 to {TTL_S_MAX}, not {}",
            value.excerpt(ECHO_CHARS_MAX)
        );
        findings.fault(vec![field.into()], "ttl_invalid", message);
    }
    seconds.map(Duration::from_secs)
}

fn samples(field: &str, value: &Json, findings: &mut Findings) -> Option<Samples> {
    if value.as_str() == Some("auto") {
        return Some(Samples::Auto);
    }
    let count = value.as_number().and_then(whole).filter(|count| *count >= 1);
    if count.is_none() {
        let message = format!(
            "{field} must be \"auto\" or an integer of at least 1, not {}",
            value.excerpt(ECHO_CHARS_MAX)
        );
        findings.fault(vec![field.into()], "samples_invalid", message);
    }
    // A count beyond u32 is lowered to the number of orders anyway.
    count.map(|count| Samples::Count(u32::try_from(count).unwrap_or(u32::MAX)))
}

fn lane(field: &str, value: &Json, findings: &mut Findings) -> Option<Lane> {
    let lane = value.as_str().and_then(|name| name.parse().ok());
    if lane.is_none() {
        let message = format!(
            "{field} must be \"urgent\", \"normal\", \"batch\" or \"idle\", not {}",
            value.excerpt(ECHO_CHARS_MAX)
        );
        findings.fault(vec![field.into()], "priority_invalid", message);
    }
    lane
}

fn timeout(
    field: &str,
    value: &Json,
    limits: &RequestLimits,
    findings: &mut Findings,
) -> Option<Duration> {
    let limit_ms = limits.timeout_max.as_millis();
    let wait_ms = value
        .as_number()
        .and_then(whole)
        .filter(|wait| *wait >= 1 && u128::from(*wait) <= limit_ms);
    if wait_ms.is_none() {
        let message = format!(
            "{field} must be an integer from 1 to {limit_ms}, not {}",
            value.excerpt(ECHO_CHARS_MAX)
        );
        findings.fault(vec![field.into()], "timeout_invalid", message);
    }
    wait_ms.map(Duration::from_millis)
}

pub(in crate::dialect) fn boolean(
    field: &str,
    value: &Json,
    findings: &mut Findings,
) -> Option<bool> {
    if let Json::Bool(flag) = value {
        return Some(*flag);
    }
    findings.wrong_type(field, "true or false", value);
    None
}

/// The integer that a number's spelling stands for (`2`, `2.0`, `2e3`); the largest where it is
/// larger, `None` where it is negative or has a fraction.
pub(in crate::dialect) fn whole(spelling: &str) -> Option<u64> {
    let value: f64 = spelling.parse().ok()?;
    if value < 0.0 || value.fract() != 0.0 && value.is_finite() {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; the cast saturates, which is what is wanted"
    )]
    Some(value as u64)
}
