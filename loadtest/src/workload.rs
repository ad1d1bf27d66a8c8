//! Workloads: who asks what about which states, as a small TOML file, or the user's own requests.
//!
//! A workload says nothing of rates or clients: the same file serves the open and the closed loop.

mod check;
pub(crate) mod decision;
mod draw;
mod recorded;
mod requests;
mod tenants;
mod texts;
mod wording;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

use crate::arrivals::Pattern;
use check::WAIT_MS_MAX;
pub(crate) use draw::Planned;
use recorded::Recorded;
pub(crate) use requests::{PRIORITY, Request, Requests, Route, TIMEOUT, headers};
use tenants::Tenants;
pub(crate) use texts::TextKey;

use crate::prose::Script;

/// The workloads that come with the program: name and file.
const SHIPPED: [(&str, &str); 21] = [
    ("shared-states", include_str!("../workloads/shared-states.toml")),
    ("distinct-states", include_str!("../workloads/distinct-states.toml")),
    ("mixed-lanes", include_str!("../workloads/mixed-lanes.toml")),
    ("hog-tenant", include_str!("../workloads/hog-tenant.toml")),
    ("long-prefill", include_str!("../workloads/long-prefill.toml")),
    ("burst", include_str!("../workloads/burst.toml")),
    ("tiny", include_str!("../workloads/tiny.toml")),
    ("overload", include_str!("../workloads/overload.toml")),
    ("disconnects", include_str!("../workloads/disconnects.toml")),
    ("smoke", include_str!("../workloads/smoke.toml")),
    ("classes", include_str!("../workloads/classes.toml")),
    ("prewarm-0", include_str!("../workloads/prewarm-0.toml")),
    ("prewarm-500", include_str!("../workloads/prewarm-500.toml")),
    ("prewarm-5000", include_str!("../workloads/prewarm-5000.toml")),
    ("registration", include_str!("../workloads/registration.toml")),
    ("live-sessions", include_str!("../workloads/live-sessions.toml")),
    ("short-decisions", include_str!("../workloads/short-decisions.toml")),
    ("zipf", include_str!("../workloads/zipf.toml")),
    ("scripts", include_str!("../workloads/scripts.toml")),
    ("peers-shared", include_str!("../workloads/peers-shared.toml")),
    ("peers-distinct", include_str!("../workloads/peers-distinct.toml")),
];

/// A workload file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Workload {
    /// What it is for.
    pub(crate) about: String,
    /// Requests of the open loop that start at the same moment.
    #[serde(default = "one")]
    pub(crate) burst: u32,
    /// How the starts of the open loop are spread; none is Poisson.
    pub(crate) arrivals: Option<Pattern>,
    /// Weights of the scripts; a state is in one of them, and none given means that all are in Latin.
    #[serde(default)]
    pub(crate) scripts: BTreeMap<Script, f64>,
    /// Sets of states, by name.
    pub(crate) states: BTreeMap<String, StateSet>,
    /// Tenants and their shares of the requests; none means one without a name.
    #[serde(default)]
    pub(crate) tenants: BTreeMap<String, f64>,
    /// Kinds of request.
    pub(crate) traffic: Vec<Traffic>,
    /// The user's own requests, which then are sent instead of drawn ones.
    #[serde(skip)]
    pub(crate) recorded: Option<Rc<Recorded>>,
}

/// A set of states and the order in which they are asked about.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StateSet {
    /// How many.
    pub(crate) count: u32,
    /// A mixture of lengths; each state draws one.
    pub(crate) length: Vec<Length>,
    /// Zipf's exponent over the states: 0 picks all alike, 1 the first twice as often as the second.
    pub(crate) zipf: Option<f64>,
    /// Instead of `zipf`: requests in a row on one state, before the next has its turn.
    pub(crate) in_turn: Option<u32>,
    /// Of the texts, instead of the run's: so that a run finds what an earlier one has left.
    pub(crate) seed: Option<u64>,
    /// How a state grows from request to request.
    pub(crate) growth: Option<Growth>,
    /// Whether all states are prewarmed before the run, outside its measures.
    #[serde(default)]
    pub(crate) resident: bool,
    /// Milliseconds by which a prewarm precedes the first request on a state, in the open loop.
    pub(crate) prewarm_lead_ms: Option<u32>,
}

/// One part of a mixture of lengths: fixed, or lognormal where `sigma` is given.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Length {
    /// Weight in the mixture.
    #[serde(default = "all")]
    pub(crate) share: f64,
    /// Length, or median, in words.
    pub(crate) words: Option<u32>,
    /// Length, or median, in bytes.
    pub(crate) bytes: Option<u32>,
    /// Deviation of the logarithm.
    #[serde(default)]
    pub(crate) sigma: f64,
    /// Longest, in the unit of the length.
    pub(crate) max: Option<u32>,
}

/// A transcript: each request sees the state longer than the one before.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Growth {
    /// Words that each request adds.
    pub(crate) words: u32,
    /// Words at which the transcript ends and another takes its place.
    pub(crate) max_words: u32,
}

/// One kind of request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traffic {
    /// Weight among the kinds of request.
    #[serde(default = "all")]
    pub(crate) share: f64,
    /// `x-docket-priority`; none sends none.
    pub(crate) lane: Option<Lane>,
    /// Name of its set of states.
    pub(crate) states: String,
    /// Its only tenant, instead of one by the workload's shares.
    pub(crate) tenant: Option<String>,
    /// Its questions.
    pub(crate) questions: Questions,
    /// `samples` of the body: a whole number or "auto".
    pub(crate) samples: Option<toml::Value>,
    /// The deadline that the server is told, `x-docket-timeout-ms`; none leaves it to the server.
    pub(crate) timeout_ms: Option<u32>,
    /// How long the client waits before it gives up; a little longer than the server's deadline.
    #[serde(default = "patience_ms")]
    pub(crate) patience_ms: u32,
    /// Clients that go away.
    pub(crate) disconnect: Option<Disconnect>,
    /// Latency that counts as good, from the intended start.
    pub(crate) limit_ms: Option<u32>,
    /// How often a refused request is sent again, each time when the server said.
    pub(crate) retries: Option<u32>,
}

/// A lane of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Lane {
    Urgent,
    Normal,
    Batch,
    Idle,
}

impl Lane {
    /// The word of the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Urgent => "urgent",
            Self::Normal => "normal",
            Self::Batch => "batch",
            Self::Idle => "idle",
        }
    }
}

/// The questions of a request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Questions {
    /// Fewest and most in a request.
    pub(crate) count: [u32; 2],
    /// Weights of the kinds.
    pub(crate) kinds: Kinds,
    /// Fewest and most options of a choice, or levels of a score.
    #[serde(default = "options")]
    pub(crate) options: [u32; 2],
    /// Different questions to draw from.
    pub(crate) variants: u32,
}

/// Weights of the kinds of question.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Kinds {
    pub(crate) noul: f64,
    pub(crate) choice: f64,
    pub(crate) score: f64,
}

/// A share of clients that close the connection without an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disconnect {
    /// Share of the requests, 0 to 1.
    pub(crate) share: f64,
    /// Milliseconds from sending.
    pub(crate) after_ms: u32,
}

fn one() -> u32 {
    1
}

fn all() -> f64 {
    1.0
}

fn patience_ms() -> u32 {
    120_000
}

fn options() -> [u32; 2] {
    [3, 3]
}

/// The hash of a text that is written to it.
///
/// Source: Fowler, Noll and Vo, "FNV-1a", 64 bits.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.0 = text.bytes().fold(self.0, add);
        Ok(())
    }
}

impl Workload {
    /// The shipped workload of this name, or else the file at this path: TOML, or the user's own
    /// requests where its name ends in `.jsonl`.
    ///
    /// # Errors
    /// When there is neither, or the file breaks a rule; all faults are named at once.
    pub(crate) fn load(name: &str) -> anyhow::Result<Self> {
        if let Some((_, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            return Self::parse(name, text);
        }
        if !Path::new(name).is_file() {
            let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
            bail!("--workload {name:?} is neither a file nor one of {}", names.join(", "));
        }
        if Path::new(name).extension().is_some_and(|extension| extension == "jsonl") {
            return recorded::load(name);
        }
        let text = std::fs::read_to_string(name).with_context(|| format!("--workload {name}"))?;
        let mut workload = Self::parse(name, &text)?;
        if let Some(arrivals) = &mut workload.arrivals {
            arrivals.beside(Path::new(name));
        }
        Ok(workload)
    }

    fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let workload: Self = toml::from_str(text).with_context(|| format!("workload {name}"))?;
        let faults = workload.faults();
        if !faults.is_empty() {
            bail!("workload {name}: {}", faults.join("; "));
        }
        Ok(workload)
    }

    /// Gives every kind of request this limit, whatever limit it had.
    ///
    /// # Errors
    /// When the limit is out of its range.
    pub(crate) fn limit(&mut self, limit: Duration) -> anyhow::Result<()> {
        let limit_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        ensure!(
            (1..=WAIT_MS_MAX).contains(&limit_ms),
            "--limit is {limit_ms} ms, must be from 1 to {WAIT_MS_MAX}"
        );
        self.traffic.iter_mut().for_each(|traffic| traffic.limit_ms = Some(limit_ms));
        Ok(())
    }

    /// A number for what is asked: other numbers, other work. Words about it, arrivals and limits,
    /// which a report tells by themselves, are not in it.
    pub(crate) fn digest(&self) -> u64 {
        let mut asked = Self { about: String::new(), arrivals: None, ..self.clone() };
        asked.traffic.iter_mut().for_each(|traffic| traffic.limit_ms = None);
        let mut digest = Digest::default();
        // It takes whatever is written to it.
        let _ = write!(digest, "{asked:?}");
        digest.0
    }

    /// The longest limit of a kind of request; none where no kind has one.
    pub(crate) fn limit_longest(&self) -> Option<Duration> {
        let limits = self.traffic.iter().filter_map(|traffic| traffic.limit_ms);
        limits.max().map(|limit_ms| Duration::from_millis(limit_ms.into()))
    }

    /// Whether states are to be read ahead of their questions.
    pub(crate) fn wants_prewarms(&self) -> bool {
        let is_wanted = |set: &StateSet| set.resident || set.prewarm_lead_ms.is_some();
        self.states.values().any(is_wanted)
    }

    /// The tenants in the order of their numbers.
    pub(crate) fn tenant_names(&self) -> Vec<String> {
        self.tenants.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
