//! The layouts by name. Their wording is ours; which one a model gets is measured
//! (docs/BENCHMARKS.md), so the losers stay here for the next model.

use super::{Closings, LabelStyle, Layout, LevelStyle, NoulStyle, PerKind, examples};
use crate::prompt::labels::CodeSet;
use crate::prompt::options::Keys;
use crate::prompt::state::StateStyle;

const SHORT: Closings = Closings {
    choice: "Reply with the letter of the option that fits best.",
    score_up: "The levels go from lowest to highest. Reply with the letter of the level that fits best.",
    score_down: "The levels go from highest to lowest. Reply with the letter of the level that fits best.",
    noul: "Reply with the letter of the right answer.",
    words: "Reply with one word: {first} or {second}.",
};

const STRICT: Closings = Closings {
    choice: "Which letter is right? Write that letter and nothing else.",
    score_up: "From lowest to highest: which letter is right? Write that letter and nothing else.",
    score_down: "From highest to lowest: which letter is right? Write that letter and nothing else.",
    noul: "Which letter is right? Write that letter and nothing else.",
    words: "Write {first} or {second} and nothing else.",
};

/// Nothing behind the options: the head has said how to answer.
const NONE: Closings = Closings { choice: "", score_up: "", score_down: "", noul: "", words: "" };

const BRIEF: Closings = Closings {
    choice: "Which letter?",
    score_up: "Lowest first. Which letter?",
    score_down: "Highest first. Which letter?",
    noul: "Which letter?",
    words: "{first} or {second}?",
};

/// How to answer, for layouts that do not say so behind each question.
const HOW_TO_ANSWER: &str = "You read a text and answer a question about it. Below the question \
    stand the options, one a line, each behind its letter. Reply with the letter of the option \
    that fits best, and with nothing else.";

/// The state as it is, then the question.
pub const BARE: Layout = Layout {
    id: "bare",
    system: None,
    examples: &[],
    state: StateStyle::Json,
    state_header: "",
    mark: "\n\nQuestion:",
    asked: PerKind {
        noul: "Does this hold?",
        choice: "Which of these describes it best?",
        score: "Where on this scale does it belong?",
    },
    options_lead: "\n",
    label_style: LabelStyle::Dot,
    codes: CodeSet::AllLetters,
    keys: Keys::WhereNeeded,
    levels: LevelStyle::Plain,
    noul: NoulStyle::Letters { yes_first: false },
    closing_lead: "\n\n",
    closings: SHORT,
    prefill: "",
};

/// `bare` with yes as the first letter.
pub const BARE_YES: Layout =
    Layout { id: "bare-yes", noul: NoulStyle::Letters { yes_first: true }, ..BARE };

/// `bare` with the option's key beside its description, and numbers before levels.
pub const BARE_KEYS: Layout =
    Layout { id: "bare-keys", keys: Keys::Beside, levels: LevelStyle::Numbered, ..BARE };

/// `bare` with the option's key beside its description.
pub const KEYS: Layout = Layout { id: "keys", keys: Keys::Beside, ..BARE };

/// `keys`, the answer begun for the model.
pub const KEYS_PREFILL: Layout = Layout { id: "keys-prefill", prefill: "Answer:", ..KEYS };

/// A rule instead of a word before the question.
pub const RULE: Layout = Layout { id: "rule", mark: "\n\n---\n-", ..BARE };

/// Every part under its name.
pub const HEADERS: Layout = Layout {
    id: "headers",
    state_header: "State:\n",
    options_lead: "\n\nOptions:\n",
    closings: STRICT,
    ..BARE
};

/// `headers`, with labels in brackets.
pub const BRACKETS: Layout = Layout { id: "brackets", label_style: LabelStyle::Bracket, ..HEADERS };

/// `headers`, the answer begun for the model.
pub const PREFILL: Layout = Layout { id: "prefill", prefill: "Answer:", ..HEADERS };

/// `headers` after six worked examples.
pub const EXAMPLES: Layout = Layout { id: "examples", examples: &examples::SIX, ..HEADERS };

/// `bare`, nouls answered by words.
pub const WORDS: Layout = Layout {
    id: "words",
    noul: NoulStyle::Words { yes_first: true, words: ["no", "yes"] },
    ..BARE
};

/// `examples`, nouls answered by words.
pub const EXAMPLES_WORDS: Layout = Layout {
    id: "examples-words",
    noul: NoulStyle::Words { yes_first: true, words: ["no", "yes"] },
    ..EXAMPLES
};

/// `bare` under a system turn that says what is going on.
pub const SYSTEM: Layout = Layout {
    id: "system",
    system: Some("You sort texts. Read the text, then pick exactly one of the answers offered."),
    ..BARE
};

/// `keys`, with how to answer in the head instead of behind each question.
pub const KEYS_SHORT: Layout =
    Layout { id: "keys-short", system: Some(HOW_TO_ANSWER), closings: NONE, ..KEYS };

/// `keys-short` for choices; nouls and scores are closed as in `keys`.
pub const KEYS_MIXED: Layout =
    Layout { id: "keys-mixed", closings: Closings { choice: "", ..SHORT }, ..KEYS_SHORT };

/// `keys-short`, the answer begun for the model.
pub const KEYS_SHORT_PREFILL: Layout =
    Layout { id: "keys-short-prefill", prefill: "Answer:", ..KEYS_SHORT };

/// `keys-short` with a few words left behind the options, and the direction of a scale.
pub const KEYS_BRIEF: Layout =
    Layout { id: "keys-brief", closing_lead: "\n", closings: BRIEF, ..KEYS_SHORT };

/// State, question and options with little around them, nouls by words, as vLLM arranges its reads;
/// the wording is ours.
pub const PLAIN: Layout = Layout {
    id: "plain",
    label_style: LabelStyle::Colon,
    keys: Keys::Beside,
    levels: LevelStyle::Numbered,
    noul: NoulStyle::Words { yes_first: true, words: ["no", "yes"] },
    closing_lead: "\n",
    closings: Closings {
        choice: "Reply with one letter only.",
        score_up: "Lowest level first. Reply with one letter only.",
        score_down: "Highest level first. Reply with one letter only.",
        noul: "Reply with one letter only.",
        words: "Reply with {first} or {second} only.",
    },
    ..BARE
};

/// [`PLAIN`] for a tokenizer to which those words are no labels.
pub const PLAIN_LETTERS: Layout =
    Layout { id: "plain-letters", noul: NoulStyle::Letters { yes_first: true }, ..PLAIN };

/// All layouts.
pub const LAYOUTS: [&Layout; 19] = [
    &BARE,
    &BARE_YES,
    &BARE_KEYS,
    &KEYS,
    &KEYS_PREFILL,
    &RULE,
    &HEADERS,
    &BRACKETS,
    &PREFILL,
    &EXAMPLES,
    &WORDS,
    &EXAMPLES_WORDS,
    &SYSTEM,
    &KEYS_SHORT,
    &KEYS_MIXED,
    &KEYS_SHORT_PREFILL,
    &KEYS_BRIEF,
    &PLAIN,
    &PLAIN_LETTERS,
];
