//! Worked examples that a layout may put ahead of the state. They are fixed, so they are head text:
//! computed once and shared by every request.

use super::{Example, ExampleKind};

/// Two of each kind; no letter is right more than twice.
pub const SIX: [Example; 6] = [
    Example {
        state: "The parcel left the depot on Monday and was handed to the customer on Tuesday.",
        instructions: "Has the parcel been delivered?",
        kind: ExampleKind::Noul,
        answer: 1,
    },
    Example {
        state: "Since the update my screen stays black. I can only hear the fan.",
        instructions: "Which team should handle this?",
        kind: ExampleKind::Choice(&["Sales", "Accounting", "Technical support"]),
        answer: 2,
    },
    Example {
        state: "The soup was all right, nothing special. We waited a little, but not long.",
        instructions: "How satisfied is the guest?",
        kind: ExampleKind::Score(&["unhappy", "neither happy nor unhappy", "happy"]),
        answer: 1,
    },
    Example {
        state: "Minutes of the council: the vote on the new playground was moved to next month.",
        instructions: "Was the playground approved?",
        kind: ExampleKind::Noul,
        answer: 0,
    },
    Example {
        state: "Could you send me last year's invoice again? I cannot find it anywhere.",
        instructions: "What does the writer want?",
        kind: ExampleKind::Choice(&["a copy of a document", "their money back", "to cancel"]),
        answer: 0,
    },
    Example {
        state: "Water is coming through the ceiling of the server room as I write.",
        instructions: "How urgent is this?",
        kind: ExampleKind::Score(&["it can wait", "this week", "today", "at once"]),
        answer: 3,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_one_of_its_options_and_no_letter_prevails() {
        let mut times = [0; 4];
        for example in SIX {
            let options = match example.kind {
                ExampleKind::Noul => 2,
                ExampleKind::Choice(options) | ExampleKind::Score(options) => options.len(),
            };
            assert!(example.answer < options, "{}", example.instructions);
            times[example.answer] += 1;
        }
        assert!(times.iter().all(|&times| (1..=2).contains(&times)), "{times:?}");
    }
}
