//! The rules of a workload that its types do not say. All faults are found at once; each names the
//! field, the value and the limit.

use super::{Length, Questions, StateSet, Traffic, Workload};
use crate::arrivals::Pattern;
use crate::retries::RETRIES_MAX;

/// Most states of a set.
pub(super) const STATES_MAX: u32 = 1_000_000;
/// Most states of a set that are prewarmed before a run.
pub(super) const RESIDENT_MAX: u32 = 10_000;
/// Longest state, in words.
pub(super) const WORDS_MAX: u32 = 200_000;
/// Longest state, in bytes.
pub(super) const BYTES_MAX: u32 = 4_000_000;
/// Most kinds of request, and most tenants: each has histograms.
const ENTRIES_MAX: usize = 64;
/// Most questions of a request; the server has its own limit.
const QUESTIONS_MAX: u32 = 1_024;
/// Most different questions to draw from.
const VARIANTS_MAX: u32 = 10_000;
/// Longest wait of a client, ten minutes more than any server should need.
pub(super) const WAIT_MS_MAX: u32 = 3_600_000;

/// Faults, in words.
#[derive(Debug, Default)]
struct Faults(Vec<String>);

impl Faults {
    fn range<N: Copy + PartialOrd + std::fmt::Display>(
        &mut self,
        field: &str,
        value: N,
        [low, high]: [N; 2],
    ) {
        // Written so that what is not a number fails too.
        if !(value >= low && value <= high) {
            self.0.push(format!("{field} is {value}, must be from {low} to {high}"));
        }
    }

    fn pair(&mut self, field: &str, [low, high]: [u32; 2], limits: [u32; 2]) {
        self.range(&format!("{field}[0]"), low, limits);
        self.range(&format!("{field}[1]"), high, limits);
        if low > high {
            self.0.push(format!("{field} is [{low}, {high}], the first must not be the larger"));
        }
    }

    /// Weights: none negative, and one positive.
    fn weights(&mut self, field: &str, weights: &[f64]) {
        for weight in weights {
            self.range(field, *weight, [0.0, 1e9]);
        }
        if weights.iter().sum::<f64>() <= 0.0 {
            self.0.push(format!("{field} adds up to 0, must be more"));
        }
    }

    fn say(&mut self, broken: bool, text: impl FnOnce() -> String) {
        if broken {
            self.0.push(text());
        }
    }
}

impl Workload {
    /// Every rule that is broken.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Faults::default();
        faults.range("burst", self.burst, [1, 100_000]);
        for fault in self.arrivals.iter().flat_map(Pattern::faults) {
            faults.0.push(format!("arrivals.{fault}"));
        }
        faults.range("tenants: their number", self.tenants.len(), [0, ENTRIES_MAX]);
        faults.range("traffic: its number", self.traffic.len(), [1, ENTRIES_MAX]);
        faults.range("states: their number", self.states.len(), [1, ENTRIES_MAX]);
        if !self.tenants.is_empty() {
            let weights: Vec<f64> = self.tenants.values().copied().collect();
            faults.weights("tenants", &weights);
        }
        if !self.scripts.is_empty() {
            let weights: Vec<f64> = self.scripts.values().copied().collect();
            faults.weights("scripts", &weights);
        }
        let weights: Vec<f64> = self.traffic.iter().map(|traffic| traffic.share).collect();
        faults.weights("traffic.share", &weights);
        for (name, set) in &self.states {
            check_set(&mut faults, &format!("states.{name}"), set);
        }
        for (index, traffic) in self.traffic.iter().enumerate() {
            self.check_traffic(&mut faults, &format!("traffic[{index}]"), traffic);
        }
        faults.0
    }

    fn check_traffic(&self, faults: &mut Faults, at: &str, traffic: &Traffic) {
        faults.say(!self.states.contains_key(&traffic.states), || {
            let names: Vec<&str> = self.states.keys().map(String::as_str).collect();
            format!("{at}.states is {:?}, must be one of {}", traffic.states, names.join(", "))
        });
        if let Some(tenant) = &traffic.tenant {
            faults.say(!self.tenants.contains_key(tenant), || {
                let names = self.tenant_names().join(", ");
                format!("{at}.tenant is {tenant:?}, must be one of tenants: {names}")
            });
        }
        check_questions(faults, &format!("{at}.questions"), &traffic.questions);
        faults.range(&format!("{at}.patience_ms"), traffic.patience_ms, [1, WAIT_MS_MAX]);
        for (field, wait_ms) in [("timeout_ms", traffic.timeout_ms), ("limit_ms", traffic.limit_ms)]
        {
            faults.range(&format!("{at}.{field}"), wait_ms.unwrap_or(1), [1, WAIT_MS_MAX]);
        }
        faults.range(&format!("{at}.retries"), traffic.retries.unwrap_or(0), [0, RETRIES_MAX]);
        if let Some(samples) = &traffic.samples {
            let number = samples.as_integer().is_some_and(|samples| (1..=255).contains(&samples));
            faults.say(!number && samples.as_str() != Some("auto"), || {
                format!("{at}.samples is {samples}, must be \"auto\" or from 1 to 255")
            });
        }
        if let Some(disconnect) = &traffic.disconnect {
            faults.range(&format!("{at}.disconnect.share"), disconnect.share, [0.0, 1.0]);
            let field = format!("{at}.disconnect.after_ms");
            faults.range(&field, disconnect.after_ms, [1, traffic.patience_ms]);
        }
    }
}

fn check_set(faults: &mut Faults, at: &str, set: &StateSet) {
    faults.range(&format!("{at}.count"), set.count, [1, STATES_MAX]);
    if set.resident {
        faults.range(&format!("{at}.count, as they are resident,"), set.count, [1, RESIDENT_MAX]);
    }
    faults.range(&format!("{at}.zipf"), set.zipf.unwrap_or(0.0), [0.0, 10.0]);
    faults.range(&format!("{at}.in_turn"), set.in_turn.unwrap_or(1), [1, STATES_MAX]);
    faults.range(
        &format!("{at}.prewarm_lead_ms"),
        set.prewarm_lead_ms.unwrap_or(0),
        [0, WAIT_MS_MAX],
    );
    faults.say(set.zipf.is_some() == set.in_turn.is_some(), || {
        format!("{at} must have either zipf or in_turn")
    });
    faults.range(&format!("{at}.length: its number"), set.length.len(), [1, ENTRIES_MAX]);
    let weights: Vec<f64> = set.length.iter().map(|length| length.share).collect();
    faults.weights(&format!("{at}.length.share"), &weights);
    for (index, length) in set.length.iter().enumerate() {
        check_length(faults, &format!("{at}.length[{index}]"), length);
    }
    if let Some(growth) = &set.growth {
        faults.range(&format!("{at}.growth.words"), growth.words, [1, WORDS_MAX]);
        faults.range(&format!("{at}.growth.max_words"), growth.max_words, [1, WORDS_MAX]);
        faults.say(set.length.iter().any(|length| length.bytes.is_some()), || {
            format!("{at}.growth is in words, and so must be the lengths, not in bytes")
        });
    }
}

fn check_length(faults: &mut Faults, at: &str, length: &Length) {
    let limits = match (length.words, length.bytes) {
        (Some(words), None) => Some(("words", words, WORDS_MAX)),
        (None, Some(bytes)) => Some(("bytes", bytes, BYTES_MAX)),
        (None, None) | (Some(_), Some(_)) => None,
    };
    faults.say(limits.is_none(), || format!("{at} must have either words or bytes"));
    if let Some((unit, value, most)) = limits {
        faults.range(&format!("{at}.{unit}"), value, [1, most]);
        faults.range(&format!("{at}.max"), length.max.unwrap_or(most), [1, most]);
    }
    faults.range(&format!("{at}.sigma"), length.sigma, [0.0, 4.0]);
}

fn check_questions(faults: &mut Faults, at: &str, questions: &Questions) {
    let Questions { count, kinds, options, variants } = questions;
    faults.pair(&format!("{at}.count"), *count, [1, QUESTIONS_MAX]);
    faults.pair(&format!("{at}.options"), *options, [2, 255]);
    faults.range(&format!("{at}.variants"), *variants, [1, VARIANTS_MAX]);
    faults.weights(&format!("{at}.kinds"), &[kinds.noul, kinds.choice, kinds.score]);
}
