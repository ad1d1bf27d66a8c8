//! A question as text: instructions, options in displayed order, closing line.
//!
//! The text depends on the question and the order alone: neither on its id, nor on the state, nor on
//! other questions.

use std::borrow::Cow;

use super::layout::{Example, ExampleKind, LabelStyle, Layout, LevelStyle};
use super::options::{Keys, shown_texts};
use super::state::compact_text;
use crate::json::Json;
use crate::question::{ChoiceOption, Kind, Question, Shown};

/// The texts of a question that all its orders share, made once for all of them.
#[derive(Debug)]
pub struct Texts<'q> {
    layout: &'q Layout,
    kind: &'q Kind,
    instructions: Cow<'q, str>,
    /// By option index.
    options: Vec<String>,
}

impl<'q> Texts<'q> {
    /// Makes them.
    pub fn new(layout: &'q Layout, question: &'q Question) -> Self {
        let options = shown_texts(layout, &question.kind);
        Self { layout, kind: &question.kind, instructions: instructions(layout, question), options }
    }

    /// Appends the text of the question in one order. It begins with neither a space nor a line
    /// break.
    ///
    /// * `codes`: the labels; option `shown.options[i]` gets code `i` (they begin again where there
    ///   are more options than codes).
    pub fn push(&self, text: &mut String, shown: &Shown, codes: &[String]) {
        let Self { layout, kind, .. } = self;
        let options = shown.options.iter().map(|&option| self.options[option].len());
        text.reserve(self.instructions.len() + options.sum::<usize>());
        text.push_str(&self.instructions);
        if let Some(words) = layout.noul.words(kind) {
            push_meanings(text, layout, kind, shown);
            push_closing(text, layout, &words_closing(layout, words, shown));
            return;
        }
        let listing = Listing::of(layout, kind);
        text.push_str(listing.lead);
        for (index, (&option, code)) in shown.options.iter().zip(codes.iter().cycle()).enumerate() {
            text.push_str(if index == 0 { "" } else { listing.between });
            let shown_text = option_text(layout, kind, option, &self.options[option]);
            text.push_str(&listing.label_style.line(code, &shown_text));
        }
        text.push_str(listing.end);
        push_closing(text, layout, closing(layout, kind, shown));
    }
}

/// What stands around a question's options.
struct Listing {
    lead: &'static str,
    label_style: LabelStyle,
    between: &'static str,
    end: &'static str,
}

impl Listing {
    fn of(layout: &Layout, kind: &Kind) -> Self {
        match (kind, layout.levels) {
            (Kind::Score { .. }, LevelStyle::OneLine { lead }) => {
                Self { lead, label_style: LabelStyle::Equals, between: "; ", end: "." }
            }
            (Kind::Noul { .. } | Kind::Choice { .. }, _)
            | (_, LevelStyle::Plain | LevelStyle::Numbered) => {
                let Layout { options_lead: lead, label_style, .. } = *layout;
                Self { lead, label_style, between: "\n", end: "" }
            }
        }
    }
}

/// What a question says ahead of its options and closing line: its instructions and, where it is
/// asked by words, what they mean.
pub fn instructions_text(layout: &Layout, question: &Question) -> String {
    let Question { kind, .. } = question;
    let mut text = instructions(layout, question).into_owned();
    if layout.noul.words(kind).is_some() {
        push_meanings(&mut text, layout, kind, &first_order(layout, kind));
    }
    text
}

/// The text of a question in one order, see [`Texts::push`].
pub fn question_text(
    layout: &Layout,
    question: &Question,
    shown: &Shown,
    codes: &[String],
) -> String {
    let mut text = String::new();
    Texts::new(layout, question).push(&mut text, shown, codes);
    text
}

/// The order in which a question is shown first: the request's; for a noul the layout's.
pub fn first_order(layout: &Layout, kind: &Kind) -> Shown {
    let mut options: Vec<usize> = (0..kind.options()).collect();
    if matches!(kind, Kind::Noul { .. }) && layout.noul.yes_first(kind) {
        options.reverse();
    }
    Shown { options }
}

/// A worked example as a question.
pub fn example_question(example: &Example) -> Question {
    let string = |text: &&str| Json::String((*text).to_owned());
    let kind = match example.kind {
        ExampleKind::Noul => Kind::Noul { when_true: None, when_false: None },
        ExampleKind::Choice(options) => Kind::Choice {
            options: options
                .iter()
                .map(|key| ChoiceOption { key: (*key).to_owned(), description: None })
                .collect(),
        },
        ExampleKind::Score(levels) => Kind::Score { levels: levels.iter().map(string).collect() },
    };
    let instructions = Some(string(&example.instructions));
    Question::new(String::new(), kind, instructions)
}

/// The question in words, trimmed; where it is absent or blank, the layout's default of its kind.
pub(super) fn instructions<'q>(layout: &Layout, question: &'q Question) -> Cow<'q, str> {
    let given = question.instructions.as_ref().filter(|json| **json != Json::Null);
    match given.map(compact_text) {
        Some(Cow::Borrowed(text)) if !text.trim().is_empty() => Cow::Borrowed(text.trim()),
        Some(Cow::Owned(text)) => Cow::Owned(text),
        Some(Cow::Borrowed(_)) | None => Cow::Borrowed(layout.asked.of(&question.kind)),
    }
}

fn option_text<'a>(layout: &Layout, kind: &Kind, option: usize, text: &'a str) -> Cow<'a, str> {
    match (kind, layout.levels) {
        (Kind::Score { .. }, LevelStyle::Numbered) => Cow::Owned(format!("{option}: {text}")),
        (Kind::Noul { .. } | Kind::Choice { .. }, LevelStyle::Numbered)
        | (_, LevelStyle::Plain | LevelStyle::OneLine { .. }) => Cow::Borrowed(text),
    }
}

fn push_closing(text: &mut String, layout: &Layout, line: &str) {
    if !line.is_empty() {
        text.push_str(layout.closing_lead);
        text.push_str(line);
    }
}

fn closing(layout: &Layout, kind: &Kind, shown: &Shown) -> &'static str {
    match kind {
        Kind::Noul { .. } => layout.closings.noul,
        Kind::Choice { .. } => layout.closings.choice,
        Kind::Score { .. } if shown.options.first() > shown.options.last() => {
            layout.closings.score_down
        }
        Kind::Score { .. } => layout.closings.score_up,
    }
}

fn words_closing(layout: &Layout, words: [&str; 2], shown: &Shown) -> String {
    let word = |position: usize| words[shown.options[position]];
    layout.closings.words.replace("{first}", word(0)).replace("{second}", word(1))
}

/// What yes and no mean, where the request says so: in displayed order, and yes first in every order
/// by decisio's rules.
fn push_meanings(text: &mut String, layout: &Layout, kind: &Kind, shown: &Shown) {
    let Kind::Noul { when_true, when_false } = kind else { return };
    let sides = [("No", when_false), ("Yes", when_true)];
    let order = match layout.keys {
        Keys::WhereNeeded | Keys::Beside => shown.options.as_slice(),
        Keys::Rules(_) => &[1, 0],
    };
    for &option in order {
        let (name, criterion) = sides[option];
        if let Some(meaning) = layout.keys.meaning(criterion.as_ref()) {
            text.push_str(&["\n", name, " means: ", &meaning].concat());
        }
    }
}
