//! Whether two sides did the same work: without that no ratio means anything.

use std::collections::BTreeSet;

use super::pairs;
use super::runs::Run;

/// Settings of a run that are about the server or how it is reached, not about what is asked of it.
const OF_THE_SERVER: [&str; 8] =
    ["url", "driver", "path", "model", "template", "fan_out", "top", "connections"];
/// Most differences that are named.
const DIFFERENCES_MAX: usize = 20;

/// What the runs were, and by what they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Work {
    /// In a few words, that of the first A.
    pub(super) words: String,
    pub(super) differences: Vec<String>,
}

impl Work {
    /// Of two sides: pairs must agree in everything, runs of one side in everything but the seed.
    pub(super) fn of(a: &[Run], b: &[Run]) -> Self {
        let mut differences = Vec::new();
        for (n, (a, b)) in pairs(a, b).enumerate() {
            differences.extend(between(&format!("A{}", n + 1), a, &format!("B{}", n + 1), b));
        }
        for (side, runs) in [("A", a), ("B", b)] {
            let first = runs.first();
            for (n, (first, run)) in
                runs.iter().skip(1).filter_map(|run| first.map(|first| (first, run))).enumerate()
            {
                let found = between(&format!("{side}1"), first, &format!("{side}{}", n + 2), run);
                differences.extend(found.into_iter().filter(|found| !found.starts_with("seed")));
            }
        }
        let mut seen = BTreeSet::new();
        differences.retain(|difference| seen.insert(difference.clone()));
        differences.truncate(DIFFERENCES_MAX);
        Self { words: a.first().map(words).unwrap_or_default(), differences }
    }

    /// Whether it is the same.
    pub(super) fn is_same(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Settings of two runs that differ.
fn between(name: &str, one: &Run, other_name: &str, other: &Run) -> Vec<String> {
    let fields: BTreeSet<&str> = one.names("/run").into_iter().chain(other.names("/run")).collect();
    let fields = fields.into_iter().filter(|field| !OF_THE_SERVER.contains(field));
    let two = fields.map(|field| (field, one.word(field), other.word(field)));
    let differ = two.filter(|(_, one, other)| one != other);
    differ
        .map(|(field, one, other)| format!("{field}: {name} {one:?}, {other_name} {other:?}"))
        .collect()
}

fn words(run: &Run) -> String {
    let (workload, seed) = (run.word("workload"), run.word("seed"));
    match run.word("loop").as_str() {
        "open" => format!(
            "{workload}, open loop at {}/s for {} s, seed {seed}",
            run.word("rate"),
            run.word("duration_s")
        ),
        "knee" => format!(
            "{workload}, knee from {}/s in steps of {} s, seed {seed}",
            run.word("from"),
            run.word("duration_s")
        ),
        _ => format!("{workload}, closed loop of {} clients, seed {seed}", run.word("clients")),
    }
}
