//! Layouts composed of settings under decisio's flag names, for servers that take over its clients.
//!
//! What is shown of a state and a question follows decisio 0.11.1 (its rules for states, keys, nouls
//! and tails). Two things do not. Between state and question, where decisio
//! has a blank line alone, stand our mark and one space, so that the state's tokens are the same
//! whatever is asked (ARCHITECTURE D8). And the sentences that tell the model how to answer are ours.

use std::fmt::{self, Display};
use std::str::FromStr;

use thiserror::Error;

use super::{Closings, LabelStyle, Layout, LevelStyle, NoulStyle, PerKind};
use crate::prompt::labels::CodeSet;
use crate::prompt::options::Keys;
use crate::prompt::options::rules::KeyRules;
use crate::prompt::state::StateStyle;

/// How a noul is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoulRendering {
    /// By yes and no.
    Words,
    /// By letters, no first; a side is shown as what it means.
    Letters,
    /// The same with the side's name before what it means.
    LettersKeys,
}

/// How much stands between the parts of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptTail {
    /// Line breaks; a score's levels on one line.
    Compact,
    /// Blank lines; a score's levels listed as options are.
    Spaced,
}

/// Where the label is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerSlot {
    /// At the beginning of the model's turn.
    Template,
    /// After `Answer:`, written for the model.
    Prefill,
}

/// A word that names no value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{value:?} is none of {names}")]
pub struct UnknownValue {
    /// The word.
    pub value: String,
    /// The words that do, with commas between.
    pub names: String,
}

/// A setting that is one of a few words on the command line.
trait Named: Copy + 'static {
    const ALL: &'static [Self];

    fn name(self) -> &'static str;

    fn by_name(name: &str) -> Result<Self, UnknownValue> {
        let found = Self::ALL.iter().copied().find(|value| value.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|value| value.name()).collect();
            UnknownValue { value: name.to_owned(), names: names.join(", ") }
        })
    }
}

impl Named for NoulRendering {
    const ALL: &'static [Self] = &[Self::Words, Self::Letters, Self::LettersKeys];

    fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Letters => "letters",
            Self::LettersKeys => "letters-keys",
        }
    }
}

impl Named for PromptTail {
    const ALL: &'static [Self] = &[Self::Compact, Self::Spaced];

    fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Spaced => "spaced",
        }
    }
}

impl Named for AnswerSlot {
    const ALL: &'static [Self] = &[Self::Template, Self::Prefill];

    fn name(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Prefill => "prefill",
        }
    }
}

/// Gives a [`Named`] its text forms.
macro_rules! text_forms {
    ($($setting:ty),*) => {$(
        impl $setting {
            /// Its name on the command line.
            pub fn as_str(self) -> &'static str {
                self.name()
            }

            /// The names of all.
            pub fn names() -> Vec<&'static str> {
                Self::ALL.iter().map(|value| value.name()).collect()
            }
        }

        impl FromStr for $setting {
            type Err = UnknownValue;

            fn from_str(name: &str) -> Result<Self, UnknownValue> {
                Self::by_name(name)
            }
        }

        impl Display for $setting {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    )*};
}

text_forms!(NoulRendering, PromptTail, AnswerSlot);

/// What a layout is composed of; each field is a flag of decisio's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub struct LettersSettings {
    /// `--noul-rendering`.
    pub noul_rendering: NoulRendering,
    /// `--hide-index-keys`, see [`KeyRules::hide_index`].
    pub hide_index_keys: bool,
    /// `--describe-options`, see [`KeyRules::describe`].
    pub describe_options: bool,
    /// `--desnake-labels`, see [`KeyRules::desnake`].
    pub desnake_labels: bool,
    /// `--prompt-tail`.
    pub prompt_tail: PromptTail,
    /// `--answer-slot`.
    pub answer_slot: AnswerSlot,
    /// `--system-prompt`: a system turn that says how to answer.
    pub system_prompt: bool,
}

impl Default for LettersSettings {
    /// decisio's for its Gemma bases.
    fn default() -> Self {
        Self {
            noul_rendering: NoulRendering::Letters,
            hide_index_keys: true,
            describe_options: true,
            desnake_labels: true,
            prompt_tail: PromptTail::Spaced,
            answer_slot: AnswerSlot::Template,
            system_prompt: true,
        }
    }
}

impl LettersSettings {
    /// The id of the layout composed of them; it names every setting.
    pub fn layout_id(&self) -> String {
        let switch = |is_on: bool, name: &str| [if is_on { "" } else { "no-" }, name].concat();
        let parts = [
            self.prompt_tail.to_string(),
            self.noul_rendering.to_string(),
            switch(self.hide_index_keys, "hide"),
            switch(self.describe_options, "describe"),
            switch(self.desnake_labels, "desnake"),
            self.answer_slot.to_string(),
            switch(self.system_prompt, "system"),
        ];
        ["letters:", &parts.join("+")].concat()
    }

    fn key_rules(self) -> KeyRules {
        KeyRules {
            hide_index: self.hide_index_keys,
            describe: self.describe_options,
            desnake: self.desnake_labels,
        }
    }
}

const SYSTEM: &str = "You judge texts. Every message holds a text, a question about it and the \
    possible answers. Decide which answer holds, and reply with its letter, or with its word where \
    the answers are words. Add nothing to it.";

/// The words for no and yes.
const WORDS: [&str; 2] = ["no", "yes"];

const SPACED_CLOSINGS: Closings = Closings {
    choice: "Which option applies? Reply with its letter alone.",
    score_up: "The levels go from lowest to highest. Which one applies? Reply with its letter alone.",
    score_down: "The levels go from highest to lowest. Which one applies? Reply with its letter alone.",
    noul: "Which of the two applies? Reply with its letter alone.",
    words: "Which is right, {first} or {second}? Reply with that word alone.",
};

const COMPACT_CLOSINGS: Closings = Closings {
    choice: "Reply with one letter.",
    score_up: "Lowest level first. Reply with one letter.",
    score_down: "Highest level first. Reply with one letter.",
    noul: "Reply with one letter.",
    words: "Reply {first} or {second}.",
};

/// All that does not depend on a setting, and the spaced tail.
const SPACED: Layout = Layout {
    id: "letters",
    system: None,
    examples: &[],
    state: StateStyle::Lines,
    state_header: "",
    mark: "\n\nQuestion:",
    asked: PerKind {
        noul: "Is this true?",
        choice: "Which option applies?",
        score: "Which level applies?",
    },
    options_lead: "\n\nOptions:\n",
    label_style: LabelStyle::Dot,
    codes: CodeSet::Capitals,
    keys: Keys::Rules(KeyRules { hide_index: true, describe: true, desnake: true }),
    levels: LevelStyle::Plain,
    noul: NoulStyle::Sides { named: false, words: Some(WORDS) },
    closing_lead: "\n\n",
    closings: SPACED_CLOSINGS,
    prefill: "",
};

const COMPACT: Layout = Layout {
    options_lead: "\nOptions:\n",
    levels: LevelStyle::OneLine { lead: "\nLevels: " },
    closing_lead: "\n",
    closings: COMPACT_CLOSINGS,
    ..SPACED
};

/// The layout that the settings give. It is allocated for the rest of the process: call this once at
/// start.
pub fn letters(settings: &LettersSettings) -> &'static Layout {
    let tail = match settings.prompt_tail {
        PromptTail::Compact => COMPACT,
        PromptTail::Spaced => SPACED,
    };
    let noul = match settings.noul_rendering {
        NoulRendering::Words => NoulStyle::Words { yes_first: true, words: WORDS },
        NoulRendering::Letters => NoulStyle::Sides { named: false, words: Some(WORDS) },
        NoulRendering::LettersKeys => NoulStyle::Sides { named: true, words: None },
    };
    let prefill = match settings.answer_slot {
        AnswerSlot::Template => "",
        AnswerSlot::Prefill => "Answer:",
    };
    Box::leak(Box::new(Layout {
        id: settings.layout_id().leak(),
        system: settings.system_prompt.then_some(SYSTEM),
        keys: Keys::Rules(settings.key_rules()),
        noul,
        prefill,
        ..tail
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::prompt::layout;

    /// Every combination of settings.
    fn all() -> Vec<LettersSettings> {
        let mut all = Vec::new();
        for bits in 0..32_u8 {
            let is_on = |bit: u8| bits & (1 << bit) != 0;
            for (noul_rendering, prompt_tail) in pairs() {
                all.push(LettersSettings {
                    noul_rendering,
                    hide_index_keys: is_on(0),
                    describe_options: is_on(1),
                    desnake_labels: is_on(2),
                    prompt_tail,
                    answer_slot: AnswerSlot::ALL[usize::from(is_on(3))],
                    system_prompt: is_on(4),
                });
            }
        }
        all
    }

    fn pairs() -> impl Iterator<Item = (NoulRendering, PromptTail)> {
        let tails = |&noul: &NoulRendering| PromptTail::ALL.iter().map(move |&tail| (noul, tail));
        NoulRendering::ALL.iter().flat_map(tails)
    }

    #[test]
    fn the_id_names_every_setting() {
        let expected = "letters:spaced+letters+hide+describe+desnake+template+system";
        assert_eq!(letters(&LettersSettings::default()).id, expected);
        let ids: HashSet<String> = all().iter().map(LettersSettings::layout_id).collect();
        assert_eq!(ids.len(), 32 * 6);
        assert!(
            ids.contains("letters:compact+words+no-hide+no-describe+no-desnake+prefill+no-system")
        );
        assert!(layout::named::LAYOUTS.iter().all(|layout| !ids.contains(layout.id)));
    }

    #[test]
    fn settings_are_read_as_they_are_written() {
        for (noul, tail) in pairs() {
            assert_eq!(noul.as_str().parse(), Ok(noul));
            assert_eq!(tail.to_string().parse(), Ok(tail));
        }
        assert_eq!("prefill".parse(), Ok(AnswerSlot::Prefill));
        let error = "Letters".parse::<NoulRendering>().unwrap_err();
        assert_eq!(error.to_string(), "\"Letters\" is none of words, letters, letters-keys");
    }

    #[test]
    fn every_composed_layout_keeps_the_boundary_clean_and_says_how_to_answer() {
        for settings in all() {
            let Layout { mark, prefill, closings, options_lead, closing_lead, .. } =
                *letters(&settings);
            assert!(mark.starts_with("\n\n") && mark.ends_with(':'));
            assert!(!prefill.ends_with(char::is_whitespace));
            assert!(options_lead.ends_with('\n') && closing_lead.ends_with('\n'));
            assert!(closings.words.contains("{first}") && closings.words.contains("{second}"));
            let Closings { choice, score_up, score_down, noul, .. } = closings;
            assert!(
                [choice, score_up, score_down, noul].iter().all(|line| line.contains("letter"))
            );
        }
    }
}
