//! A question of a decision while it is being read.

use crate::json::Json;
use crate::prompt::Prompter;
use crate::question::answer::Answer;
use crate::question::{Kind, Question, Samples};
use crate::readout::{Reading, ReadingKind, ReadingSpec};

/// A question with what has been read of it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) question: Question,
    pub(super) reading: Reading,
}

impl Asked {
    /// Begins a question; `samples` is what holds where it says nothing itself.
    pub(super) fn new(
        prompter: &Prompter,
        question: &Question,
        samples: Samples,
        samples_max: u32,
    ) -> Self {
        let spec = ReadingSpec {
            kind: reading_kind(&question.kind, prompter.yes_first()),
            labels_max: prompter.labels_max(&question.kind),
            orders: prompter.orders(question, samples, samples_max),
            temperature: prompter.temperature(&question.kind),
        };
        Self { question: question.clone(), reading: Reading::new(spec) }
    }

    /// Bytes of text that rendering it handles, roughly.
    pub(super) fn text_bytes(&self) -> usize {
        let one = |text: &Option<Json>| text.as_ref().map_or(0, Prompter::state_bytes);
        let criteria: usize = match &self.question.kind {
            Kind::Noul { when_true, when_false } => one(when_true) + one(when_false),
            Kind::Choice { options } => {
                options.iter().map(|option| option.key.len() + one(&option.description)).sum()
            }
            Kind::Score { levels } => levels.iter().map(Prompter::state_bytes).sum(),
        };
        one(&self.question.instructions) + criteria
    }

    /// The answer, once nothing more is wanted.
    pub(super) fn answer(self) -> Answer {
        let (value, diagnostics) = self.reading.finish();
        Answer { id: self.question.id, value, diagnostics }
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
