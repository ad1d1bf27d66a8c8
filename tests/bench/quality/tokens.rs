//! Tokens of a layout: the head once, and what each question costs behind a resident state.
//!
//! Nothing is computed for it: prompts are made and counted.

use docket::prompt::fixed::FixedTokens;

use crate::CaseSet;
use crate::cases::Case;
use crate::measures::mean;
use crate::model::ModelLayout;

/// Kinds in the order of the tables.
const KINDS: [&str; 3] = ["noul", "choice", "score"];

/// Head of the table.
const HEAD: &str = "| layout | head | cases | kind | fixed a read | a read | a question, all orders \
                    | a question, orders of the profile |\n|---|--:|---|---|--:|--:|--:|--:|\n";

/// Mean tokens a read and a question for each layout and kind.
pub(crate) fn table(layouts: &[(String, ModelLayout)], sets: &[CaseSet]) -> String {
    let mut text = HEAD.to_owned();
    for (id, layout) in layouts {
        for set in sets {
            let rows = KINDS.iter().map(|kind| row((id, layout), set, kind));
            text.extend(rows);
        }
    }
    text
}

fn row((id, layout): (&str, &ModelLayout), set: &CaseSet, kind: &str) -> String {
    let of_kind = |case: &&Case| case.question.kind.name() == kind;
    let cases: Vec<&Case> = set.cases.iter().filter(of_kind).collect();
    let Some(first) = cases.first() else { return String::new() };
    let fixed = shown(layout.fixed(&first.question.kind));
    let reads: Vec<Vec<f64>> = cases.iter().map(|case| layout.suffixes(case)).collect();
    let sampled = |(case, reads): (&&Case, &Vec<f64>)| {
        reads.iter().take(layout.orders(&case.question)).sum::<f64>()
    };
    format!(
        "| {id} | {} | {} | {kind} | {fixed} | {:.1} | {:.1} | {:.1} |\n",
        layout.head_tokens(),
        set.name,
        mean(reads.iter().flatten().copied()),
        mean(reads.iter().map(|reads| reads.iter().sum())),
        mean(cases.iter().zip(&reads).map(sampled)),
    )
}

fn shown(FixedTokens { read, option }: FixedTokens) -> String {
    if option == 0 { read.to_string() } else { format!("{read} + {option} an option") }
}
