//! The quality bench's own arithmetic and its generated cases.
//!
//! Goal: the numbers in docs/BENCHMARKS.md can be trusted. Method: the bench's modules are compiled
//! into this test as well (a bench target runs no tests); hand-worked numbers, and counts over all
//! generated cases.

#![expect(dead_code, reason = "the bench uses more of these modules than their tests do")]

#[path = "../bench/quality/cases.rs"]
mod cases;
#[path = "../bench/quality/computed.rs"]
mod computed;
#[path = "../bench/quality/devset.rs"]
mod devset;
#[path = "../bench/quality/fit.rs"]
mod fit;
#[path = "../bench/quality/forms.rs"]
mod forms;
#[path = "../bench/quality/measures.rs"]
mod measures;
#[path = "../bench/quality/random.rs"]
mod random;
#[path = "../bench/quality/record.rs"]
mod record;
#[path = "../bench/quality/slots.rs"]
mod slots;
#[path = "../bench/quality/table.rs"]
mod table;
#[path = "../bench/quality/themes.rs"]
mod themes;

mod arithmetic;
mod report;
mod texts;

use std::collections::{BTreeMap, BTreeSet};

use docket::json::Json;
use docket::question::Kind;

use cases::{CASES_PER_KIND, Case};

#[cfg(test)]
mod support {
    use super::{BTreeMap, Case, Kind};

    /// How often each (number of options, right one) occurs among cases of this kind.
    pub(crate) fn places(cases: &[Case], kind: &str) -> BTreeMap<(usize, usize), usize> {
        let mut counts = BTreeMap::new();
        for case in cases.iter().filter(|case| case.question.kind.name() == kind) {
            *counts.entry((case.question.kind.options(), case.gold)).or_insert(0) += 1;
        }
        counts
    }

    pub(crate) fn keys(kind: &Kind) -> Vec<String> {
        match kind {
            Kind::Choice { options } => options.iter().map(|option| option.key.clone()).collect(),
            Kind::Score { levels } => levels.iter().map(|level| format!("{level:?}")).collect(),
            Kind::Noul { .. } => vec!["yes".to_owned(), "no".to_owned()],
        }
    }
}

#[test]
fn the_right_answer_is_at_every_place_equally_often() {
    let cases = cases::generated();
    assert_eq!(cases.len(), 3 * CASES_PER_KIND);
    let choice = support::places(&cases, "choice");
    assert!(choice.len() == 20 && choice.values().all(|count| *count == 6), "{choice:?}");
    let score = support::places(&cases, "score");
    assert!(score.len() == 12 && score.values().all(|count| *count == 10), "{score:?}");
    let noul = support::places(&cases, "noul");
    assert!(noul.len() == 2 && noul.values().all(|count| *count == 60), "{noul:?}");
}

#[test]
fn the_first_sixty_are_balanced() {
    let first = &cases::generated()[..60];
    let choice = support::places(first, "choice");
    assert!(choice.len() == 20 && choice.values().all(|count| *count == 1), "{choice:?}");
    let noul = support::places(first, "noul");
    assert!(noul.len() == 2 && noul.values().all(|count| *count == 10), "{noul:?}");
    assert_eq!(support::places(first, "score").values().sum::<usize>(), 20);
}

#[test]
fn two_runs_give_the_same_cases_and_no_two_cases_are_alike() {
    let (one, two) = (cases::generated(), cases::generated());
    let texts = |cases: &[Case]| -> Vec<String> {
        cases.iter().map(|case| format!("{:?} {:?}", case.state, case.question)).collect()
    };
    assert_eq!(texts(&one), texts(&two));
    assert_eq!(texts(&one).iter().collect::<BTreeSet<_>>().len(), one.len());
}

#[test]
fn options_are_distinct_and_every_slot_is_filled() {
    for case in cases::generated() {
        let keys = support::keys(&case.question.kind);
        assert!(keys.iter().collect::<BTreeSet<_>>().len() == keys.len(), "{}: {keys:?}", case.id);
        assert!(case.gold < keys.len(), "{}", case.id);
        for text in [&case.state].into_iter().chain(&case.question.instructions) {
            if let Json::String(text) = text {
                assert!(!text.contains(['{', '}', '[', ']', '|']), "{}: {text}", case.id);
            }
        }
    }
}
