//! A question of a decision while it is being read.

use actors::ReadSpec;

use super::room::{Length, Room};
use crate::json::Json;
use crate::prompt::Prompter;
use crate::prompt::rendering::{Rendering, Within};
use crate::prompt::tokens::Gone;
use crate::prompt::tokens::fit::Unfit;
use crate::question::answer::{Answer, Learned};
use crate::question::{Kind, Question, Samples, Shown};
use crate::readout::{Reading, ReadingKind, ReadingSpec};

/// Bytes that an option adds to a text beside its own: its label and what stands around it.
const OPTION_BYTES: usize = 8;

/// A question with what has been read of it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) question: Question,
    pub(super) reading: Reading,
    /// Tokens of the question's own text, for usage.
    pub(super) own_tokens: u32,
}

/// How many orders are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Orders {
    /// Of a question that says nothing itself.
    pub(super) samples: Samples,
    /// At most.
    pub(super) samples_max: u32,
}

/// Why a question is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// It does not fit.
    TooLong(Length),
    /// The state has more different numbers than are looked at; their most.
    TooManyNumbers(usize),
    /// Nobody waits for it any more.
    Gone,
}

impl Asked {
    /// Begins a question: how long it is says in how many orders it is read.
    ///
    /// # Errors
    /// [`Unread`].
    pub(super) fn begin(
        prompter: &Prompter,
        question: Question,
        orders: Orders,
        room: Room,
        gone: &Gone,
    ) -> Result<Self, Unread> {
        let labels_max = prompter.labels_max(&question.kind);
        let rendering = Rendering::new(prompter, &question);
        let own_tokens = own_tokens(&rendering, &question.kind, labels_max, (room, gone))?;
        let mut spec = ReadingSpec {
            kind: reading_kind(&question.kind, prompter.yes_first(&question.kind)),
            labels_max,
            orders: 1,
            entropy_max: match question.samples.unwrap_or(orders.samples) {
                Samples::Adaptive(adaptive) => Some(adaptive.entropy_max),
                Samples::Auto | Samples::Count(_) => None,
            },
            temperature: question
                .temperature
                .unwrap_or_else(|| prompter.temperature(&question.kind)),
            correction: question.correction.clone(),
        };
        let wanted = prompter.orders(&question, orders.samples, orders.samples_max);
        let is_auto = question.samples.unwrap_or(orders.samples) == Samples::Auto;
        spec.orders = if is_auto && wanted > 1 {
            let first = Reading::new(spec.clone()).wanted();
            let tokens = order_tokens(&rendering, &first, own_tokens, (room, gone))?;
            Prompter::affordable(wanted, tokens)
        } else {
            wanted
        };
        Ok(Self { reading: Reading::new(spec), own_tokens, question })
    }

    /// The reads that the question wants next; none of them is longer than what fits.
    ///
    /// # Errors
    /// [`Unread`].
    pub(super) fn reads(
        &self,
        prompter: &Prompter,
        room: Room,
        gone: &Gone,
    ) -> Result<Vec<ReadSpec>, Unread> {
        let wanted = self.reading.wanted();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let rendering = Rendering::new(prompter, &self.question);
        let want_hidden = self.question.needs_hidden();
        let read = |shown: &Shown| {
            let read = read(&rendering, shown, (room, gone))?;
            Ok(ReadSpec { want_hidden, want_mass: self.question.wants_mass, ..read })
        };
        wanted.iter().map(read).collect()
    }

    /// Bytes of text that rendering what it wants next handles, roughly.
    pub(super) fn wanted_bytes(&self) -> usize {
        match self.reading.wanted().len() {
            0 => 0,
            reads => text_bytes(&self.question).saturating_mul(reads),
        }
    }

    /// The answer, once nothing more is wanted.
    pub(super) fn answer(mut self) -> Answer {
        let hidden = self.reading.take_hidden();
        let raw = self.reading.raw();
        let (value, diagnostics) = self.reading.finish();
        let (id, learned) = (self.question.id, Learned::default());
        Answer { id, value, diagnostics, raw, hidden, learned, citations: None }
    }
}

/// Bytes of a question's texts, roughly.
pub(super) fn text_bytes(question: &Question) -> usize {
    let one = |text: &Option<Json>| text.as_ref().map_or(0, Prompter::state_bytes);
    let criteria: usize = match &question.kind {
        Kind::Noul { when_true, when_false } => one(when_true) + one(when_false),
        Kind::Choice { options } => {
            options.iter().map(|option| option.key.len() + one(&option.description)).sum()
        }
        Kind::Score { levels } => levels.iter().map(Prompter::state_bytes).sum(),
    };
    one(&question.instructions) + criteria + OPTION_BYTES * question.kind.options()
}

/// Tokens of a question's own text, unless some read of it is certainly too long: with more options
/// than labels that text is read in several lists.
fn own_tokens(
    rendering: &Rendering<'_>,
    kind: &Kind,
    labels_max: usize,
    (room, gone): (Room, &Gone),
) -> Result<u32, Unread> {
    let lists = kind.options().div_ceil(labels_max).max(1);
    let tokens_max = room.context.saturating_mul(lists);
    rendering.own_tokens(Within { tokens_max, gone }).map_err(|unfit| match unfit {
        Unfit::AtLeast(tokens) => Unread::TooLong(Length::AtLeast(tokens.div_ceil(lists))),
        Unfit::Gone => Unread::Gone,
    })
}

/// Tokens of all reads in one order, about: `first` are those of the first round, and the winners of
/// several lists are read once more.
fn order_tokens(
    rendering: &Rendering<'_>,
    first: &[Shown],
    own_tokens: u32,
    (room, gone): (Room, &Gone),
) -> Result<u64, Unread> {
    if first.len() == 1 {
        return Ok(u64::from(own_tokens));
    }
    let mut tokens = 0;
    for shown in first {
        tokens += read(rendering, shown, (room, gone))?.suffix.len();
    }
    let winners = tokens.div_ceil(first.len().max(1));
    Ok((tokens + winners) as u64)
}

fn read(
    rendering: &Rendering<'_>,
    shown: &Shown,
    (room, gone): (Room, &Gone),
) -> Result<ReadSpec, Unread> {
    let within = Within { tokens_max: room.context, gone };
    let read = rendering.read(shown, within).map_err(unread)?;
    room.check(&read).map_err(Unread::TooLong)?;
    Ok(read)
}

fn unread(unfit: Unfit) -> Unread {
    match unfit {
        Unfit::AtLeast(tokens) => Unread::TooLong(Length::AtLeast(tokens)),
        Unfit::Gone => Unread::Gone,
    }
}

fn reading_kind(kind: &Kind, yes_first: bool) -> ReadingKind {
    match kind {
        Kind::Noul { .. } => ReadingKind::Noul { yes_first },
        Kind::Choice { options } => {
            ReadingKind::Choice { keys: options.iter().map(|option| option.key.clone()).collect() }
        }
        Kind::Score { levels } => ReadingKind::Score { legend: levels.iter().map(text).collect() },
    }
}

/// A level as the legend shows it: a string as it is, other JSON as its text.
fn text(level: &Json) -> String {
    match level {
        Json::String(text) => text.clone(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            level.compact()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::prompt::layout::profile_for;
    use crate::prompt::tokens::bytes::ByteTokenizer;
    use crate::question::ChoiceOption;

    /// One token a byte, 52 labels, and the default profile: 4 orders of a choice.
    fn prompter() -> Prompter {
        let bytes = Arc::new(ByteTokenizer::new());
        Prompter::new(bytes, &ByteTokenizer::facts(), profile_for("", None), "model").unwrap()
    }

    fn choice(options: usize, key_bytes: usize) -> Question {
        let key = |number| format!("{number:0key_bytes$}");
        let options = (0..options).map(|n| ChoiceOption { key: key(n), description: None });
        let kind = Kind::Choice { options: options.collect() };
        Question::new("q".to_owned(), kind, None)
    }

    fn begun(question: Question, samples: Samples, context: u32) -> Result<Asked, Unread> {
        let room = Room::new(10, context);
        let orders = Orders { samples, samples_max: 32 };
        Asked::begin(&prompter(), question, orders, room, &Gone::default())
    }

    fn reads(question: Question, samples: Samples) -> usize {
        begun(question, samples, 32_768).unwrap().reading.wanted().len()
    }

    #[test]
    fn a_short_question_is_read_in_the_profiles_orders() {
        assert_eq!(reads(choice(8, 20), Samples::Auto), 4);
    }

    #[test]
    fn a_long_question_has_fewer_orders_unless_they_are_asked_for() {
        assert_eq!(reads(choice(8, 200), Samples::Auto), 2, "about 1,700 tokens an order");
        assert_eq!(reads(choice(8, 1_000), Samples::Auto), 1, "one order is always read");
        assert_eq!(reads(choice(8, 1_000), Samples::Count(4)), 4);
        let own = Question { samples: Some(Samples::Count(3)), ..choice(8, 1_000) };
        assert_eq!(reads(own, Samples::Auto), 3);
        let own = Question { samples: Some(Samples::Auto), ..choice(8, 1_000) };
        assert_eq!(reads(own, Samples::Count(3)), 1);
    }

    #[test]
    fn the_lists_of_a_question_with_more_options_than_labels_count_together() {
        assert_eq!(reads(choice(53, 3), Samples::Auto), 2 * 4, "two lists in all orders");
        assert_eq!(reads(choice(255, 8), Samples::Auto), 5, "five lists in one order");
        assert_eq!(reads(choice(255, 8), Samples::Count(4)), 5 * 4);
    }

    #[test]
    fn a_question_that_does_not_fit_is_refused_with_its_length() {
        let question = || choice(3, 400);
        let asked = begun(question(), Samples::Auto, 1_000).unwrap();
        let read = asked.reads(&prompter(), Room::new(10, 1_000), &Gone::default());
        assert!(matches!(read, Err(Unread::TooLong(Length::Exactly(1_201..1_500)))), "{read:?}");
        let refused = begun(question(), Samples::Auto, 50).err();
        assert!(
            matches!(refused, Some(Unread::TooLong(Length::AtLeast(1_201..1_500)))),
            "{refused:?}"
        );
    }

    #[test]
    fn more_options_than_labels_may_be_longer_than_the_context_together() {
        let asked = begun(choice(104, 20), Samples::Count(1), 2_000).unwrap();
        assert!(asked.own_tokens > 2_000, "{}", asked.own_tokens);
        let reads = asked.reads(&prompter(), Room::new(10, 2_000), &Gone::default()).unwrap();
        assert_eq!(reads.len(), 2);
    }

    #[test]
    fn nothing_is_read_once_nobody_waits() {
        let gone = Gone::default();
        let asked = begun(choice(3, 9), Samples::Auto, 1_000).unwrap();
        gone.set();
        let read = asked.reads(&prompter(), Room::new(10, 1_000), &gone);
        assert!(matches!(read, Err(Unread::Gone)));
    }
}
