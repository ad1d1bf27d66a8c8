//! Layouts: how a prompt is arranged, as data, and which one each model gets.
//!
//! Layouts move small models as much as sampling does, so they are not code: a bench can rank them,
//! and a profile names the one that was measured best. A layout's id is part of every segment key.

pub mod examples;
pub mod letters;
pub mod named;

use super::labels::CodeSet;
use super::options::{Keys, rules};
use super::state::StateStyle;
use crate::files::Architecture;
use crate::question::Kind;

/// How a prompt is arranged.
///
/// The user's turn is `state_header`, the state, `mark`, one space, the instructions,
/// `options_lead`, the options, `closing_lead` and a closing line. All text is fixed: nothing here
/// depends on a request. What stands behind the state is computed for every read, a system turn and
/// examples once: `docs/BENCHMARKS.md`, "Tokens of a question".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Its name on the command line and in diagnostics. Changing anything else in a layout changes
    /// prompts, so a changed layout gets a new id.
    pub id: &'static str,
    /// A system turn, where there is one.
    pub system: Option<&'static str>,
    /// Worked examples: turns ahead of the user's.
    pub examples: &'static [Example],
    /// How a state that is no string is shown.
    pub state: StateStyle,
    /// Ahead of the state.
    pub state_header: &'static str,
    /// Between the state and the question; the prefix ends with it. It does not end in white space,
    /// so that the tokens before it do not depend on what follows (ARCHITECTURE D8).
    pub mark: &'static str,
    /// Instructions of a question that comes without any.
    pub asked: PerKind<&'static str>,
    /// Between the instructions and the first option.
    pub options_lead: &'static str,
    /// How a label stands before its option.
    pub label_style: LabelStyle,
    /// Which codes may be labels.
    pub codes: CodeSet,
    /// Whether keys are shown beside descriptions.
    pub keys: Keys,
    /// How the levels of a score are shown.
    pub levels: LevelStyle,
    /// How a noul is asked.
    pub noul: NoulStyle,
    /// Between the last option and the closing line; not written where that is empty.
    pub closing_lead: &'static str,
    /// The closing lines.
    pub closings: Closings,
    /// The beginning of the answer, written for the model; empty for none. A label follows it after
    /// a space, and stands at the reply's beginning where it is empty.
    pub prefill: &'static str,
}

/// How a label stands before its option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelStyle {
    /// `A. text`
    Dot,
    /// `A) text`
    Paren,
    /// `[A] text`
    Bracket,
    /// `A: text`
    Colon,
    /// `A = text`
    Equals,
}

impl LabelStyle {
    /// An option's line, without its end.
    pub fn line(self, label: &str, text: &str) -> String {
        match self {
            Self::Dot => format!("{label}. {text}"),
            Self::Paren => format!("{label}) {text}"),
            Self::Bracket => format!("[{label}] {text}"),
            Self::Colon => format!("{label}: {text}"),
            Self::Equals => format!("{label} = {text}"),
        }
    }
}

/// How the levels of a score are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelStyle {
    /// The level's text.
    Plain,
    /// `0: text`, counted from the lowest.
    Numbered,
    /// All on one line that ends in a full stop, `A = text; B = text.`, whatever stands around the
    /// options of a choice.
    OneLine {
        /// Between the instructions and the first level.
        lead: &'static str,
    },
}

/// How a noul is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoulStyle {
    /// As a choice between two letters.
    Letters {
        /// Whether the first order shows yes as A.
        yes_first: bool,
    },
    /// The labels are words.
    Words {
        /// Whether the first order names yes first.
        yes_first: bool,
        /// The words for no and for yes.
        words: [&'static str; 2],
    },
    /// As a choice between two letters, no first, each side shown as what it means; by words, yes
    /// first, where both sides would read the same.
    Sides {
        /// Whether a side's name stands before what it means. Named sides never read the same.
        named: bool,
        /// The words for no and for yes. Without them, sides that read the same are named.
        words: Option<[&'static str; 2]>,
    },
}

impl NoulStyle {
    /// Whether the first order of this noul has yes before no.
    pub fn yes_first(self, kind: &Kind) -> bool {
        match self {
            Self::Letters { yes_first } | Self::Words { yes_first, .. } => yes_first,
            Self::Sides { named, .. } => !named && rules::sides_read_alike(kind),
        }
    }

    /// The words for no and for yes by which this question is asked; none for one asked by letters.
    pub fn words(self, kind: &Kind) -> Option<[&'static str; 2]> {
        match (kind, self) {
            (Kind::Choice { .. } | Kind::Score { .. }, _) | (_, Self::Letters { .. }) => None,
            (Kind::Noul { .. }, Self::Words { words, .. }) => Some(words),
            (Kind::Noul { .. }, Self::Sides { words, .. }) => {
                words.filter(|_| self.yes_first(kind))
            }
        }
    }

    /// Whether this noul's sides are shown with their names beside what they mean.
    pub fn names_sides(self, kind: &Kind) -> bool {
        match self {
            Self::Letters { .. } | Self::Words { .. } => true,
            Self::Sides { named, .. } => named || rules::sides_read_alike(kind),
        }
    }
}

/// What the model is told to do, in the last line before its turn; empty where the head says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closings {
    /// For a choice.
    pub choice: &'static str,
    /// For a score whose levels are shown lowest first.
    pub score_up: &'static str,
    /// For a score whose levels are shown highest first.
    pub score_down: &'static str,
    /// For a noul asked by letters.
    pub noul: &'static str,
    /// For a noul asked by words; `{first}` and `{second}` stand for them in displayed order.
    pub words: &'static str,
}

/// A worked example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// The state.
    pub state: &'static str,
    /// The question in words.
    pub instructions: &'static str,
    /// Its type and options.
    pub kind: ExampleKind,
    /// Index of the right option (a noul's no is 0, its yes 1).
    pub answer: usize,
}

/// An example's type and options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleKind {
    /// Yes or no.
    Noul,
    /// Options, which are their own keys.
    Choice(&'static [&'static str]),
    /// Levels, lowest first.
    Score(&'static [&'static str]),
}

/// One value for each kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerKind<T> {
    /// For a noul.
    pub noul: T,
    /// For a choice.
    pub choice: T,
    /// For a score.
    pub score: T,
}

impl<T: Copy> PerKind<T> {
    /// The value for a question's kind.
    pub fn of(&self, kind: &Kind) -> T {
        match kind {
            Kind::Noul { .. } => self.noul,
            Kind::Choice { .. } => self.choice,
            Kind::Score { .. } => self.score,
        }
    }
}

/// A model's prompt settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Profile {
    /// Its name, for `/health`.
    pub name: &'static str,
    /// The layout.
    pub layout: &'static Layout,
    /// Divisor of the log-probabilities, fitted on labelled decisions; 1 leaves them as they are.
    pub temperature: PerKind<f64>,
    /// Orders read where a request leaves it to us.
    pub samples: PerKind<u32>,
}

/// Temperatures of a profile for which none have been fitted.
const UNFITTED: PerKind<f64> = PerKind { noul: 1.0, choice: 1.0, score: 1.0 };

/// Profile of a model that no rule names.
pub const DEFAULT_PROFILE: Profile = Profile {
    name: "default",
    layout: &named::BARE,
    temperature: UNFITTED,
    samples: PerKind { noul: 2, choice: 4, score: 2 },
};

/// Which models a profile is for.
struct Rule {
    /// Part of the model's name, in lower case; empty for any.
    name: &'static str,
    /// Its architecture, where that matters.
    architecture: Option<Architecture>,
    profile: Profile,
}

/// The first rule that fits gives the profile.
const RULES: [Rule; 3] = [
    Rule {
        name: "fake",
        architecture: None,
        profile: Profile {
            name: "fake",
            samples: PerKind { noul: 1, choice: 1, score: 1 },
            ..DEFAULT_PROFILE
        },
    },
    Rule {
        name: "qwen2.5-coder",
        architecture: Some(Architecture::Qwen2),
        // Measured on the 1.5 B: docs/BENCHMARKS.md, "Quality".
        profile: Profile {
            name: "qwen2.5-coder",
            layout: &named::KEYS,
            temperature: PerKind { choice: 0.52, ..UNFITTED },
            samples: PerKind { noul: 2, choice: 3, score: 2 },
        },
    },
    Rule {
        name: "smollm2",
        architecture: Some(Architecture::Llama),
        profile: Profile { name: "smollm2", ..DEFAULT_PROFILE },
    },
];

/// The profile for a model, by its catalogue or file name and, where there is a real one, its
/// architecture.
pub fn profile_for(name: &str, architecture: Option<Architecture>) -> Profile {
    let name = name.to_lowercase();
    let fits = |rule: &&Rule| {
        name.contains(rule.name)
            && (rule.architecture.is_none() || rule.architecture == architecture)
    };
    RULES.iter().find(fits).map_or(DEFAULT_PROFILE, |rule| rule.profile)
}

/// The layout of this id; all ids are those of [`named::LAYOUTS`].
pub fn layout(id: &str) -> Option<&'static Layout> {
    named::LAYOUTS.into_iter().find(|layout| layout.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_ids_are_distinct_and_find_their_layout() {
        for found in named::LAYOUTS {
            assert_eq!(layout(found.id), Some(found));
        }
        assert_eq!(layout("none such"), None);
    }

    #[test]
    fn every_mark_keeps_the_boundary_clean() {
        for layout in named::LAYOUTS {
            let last = layout.mark.chars().last().unwrap();
            assert!(!last.is_whitespace() && !last.is_alphanumeric(), "{}", layout.id);
            assert!(
                layout.mark.starts_with("\n\n"),
                "{}: the state ends in a paragraph",
                layout.id
            );
            assert!(!layout.prefill.ends_with(char::is_whitespace), "{}", layout.id);
            assert!(layout.options_lead.ends_with('\n') && layout.closing_lead.ends_with('\n'));
        }
    }

    #[test]
    fn every_closing_by_words_names_both() {
        for layout in named::LAYOUTS {
            let line = layout.closings.words;
            let names_both = line.contains("{first}") && line.contains("{second}");
            assert!(line.is_empty() || names_both, "{}", layout.id);
        }
    }

    #[test]
    fn a_layout_that_closes_with_nothing_says_before_the_question_how_to_answer() {
        for layout in named::LAYOUTS.into_iter().filter(|l| l.closings.choice.is_empty()) {
            let before = [layout.system.unwrap_or_default(), layout.state_header].concat();
            assert!(before.to_lowercase().contains("reply"), "{}", layout.id);
        }
    }

    #[test]
    fn a_profile_is_found_by_name_and_architecture() {
        let by = |name, architecture| profile_for(name, architecture).name;
        assert_eq!(by("qwen2.5-coder:1.5b", Some(Architecture::Qwen2)), "qwen2.5-coder");
        assert_eq!(
            by("Qwen2.5-Coder-0.5B-Instruct-Q4", Some(Architecture::Qwen2)),
            "qwen2.5-coder"
        );
        assert_eq!(by("qwen2.5-coder", Some(Architecture::Llama)), "default");
        assert_eq!(by("fake", None), "fake");
        assert_eq!(by("gemma-3-1b", Some(Architecture::Gemma3)), "default");
    }
}
