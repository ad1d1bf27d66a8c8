//! A question of a decision on its way to an answer: one reading where its options are given, or
//! several, stage after stage, where they are found in the state.

use std::sync::Arc;

use actors::ReadSpec;

use super::asked::{Asked, Orders, Unread};
use super::finding::{Finding, Source};
use super::room::{OptionLimits, Room};
use crate::prompt::Prompter;
use crate::prompt::tokens::Gone;
use crate::question::answer::{Answer, Citation, Diagnostics, Learned, Value};
use crate::question::{Question, Samples};
use crate::readout::{LabelReading, NonFinite};

/// Orders in which what is found is read where their number is left to us: the lists are long.
const FOUND_ORDERS: u32 = 2;

/// What all questions of a decision have in common.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// In how many orders they are read.
    pub(super) orders: Orders,
    /// The text in which answers are found, where some question needs it.
    pub(super) source: Option<Arc<Source>>,
}

/// A question on its way.
#[derive(Debug)]
pub(super) struct Inquiry {
    pub(super) question: Question,
    /// Tokens of the question's own text, for usage.
    pub(super) own_tokens: u32,
    orders: Orders,
    /// What is being read: one thing, unless it is found in stages.
    parts: Vec<Asked>,
    finding: Option<Finding>,
    /// Of the stages that are over.
    diagnostics: Option<Diagnostics>,
}

impl Inquiry {
    /// Begins a question.
    ///
    /// # Errors
    /// [`Unread`].
    pub(super) fn begin(
        prompter: &Prompter,
        question: Question,
        terms: &Terms,
        room: Room,
        gone: &Gone,
    ) -> Result<Self, Unread> {
        let mut orders = terms.orders;
        if question.finds.is_some() && orders.samples == Samples::Auto {
            orders.samples = Samples::Count(FOUND_ORDERS);
        }
        let (finding, parts) = match (question.finds, &terms.source) {
            (Some(finds), Some(source)) => {
                let words = prompter.question_words(&question);
                let labels = prompter.labels_max(&question.kind);
                let limits = OptionLimits { labels, tokens: room.left() };
                let for_citation = question.is_citation;
                let finding =
                    Finding::begin(&question, finds, (source, words), limits, for_citation);
                let begin = |asked| Asked::begin(prompter, asked, orders, room, gone);
                let parts = finding.wanted()?.into_iter().map(begin).collect::<Result<_, _>>()?;
                (Some(finding), parts)
            }
            (Some(_), None) | (None, _) => {
                (None, vec![Asked::begin(prompter, question.clone(), orders, room, gone)?])
            }
        };
        let own_tokens = parts.iter().map(|asked: &Asked| asked.own_tokens).sum();
        Ok(Self { question, own_tokens, orders, parts, finding, diagnostics: None })
    }

    /// The reads that the question wants next; none once it is answered.
    ///
    /// # Errors
    /// [`Unread`].
    pub(super) fn reads(
        &mut self,
        prompter: &Prompter,
        room: Room,
        gone: &Gone,
    ) -> Result<Vec<ReadSpec>, Unread> {
        loop {
            let mut reads = Vec::new();
            for part in &self.parts {
                reads.extend(part.reads(prompter, room, gone)?);
            }
            let Some(finding) = self.finding.as_mut().filter(|_| reads.is_empty()) else {
                return Ok(reads);
            };
            if self.parts.is_empty() {
                return Ok(reads);
            }
            let read = std::mem::take(&mut self.parts).into_iter().map(Asked::answer);
            let (values, diagnostics): (Vec<_>, Vec<_>) =
                read.map(|answer| (answer.value, answer.diagnostics)).unzip();
            let all = self.diagnostics.take().into_iter().chain(diagnostics);
            self.diagnostics = all.reduce(|one, other| together(&one, &other));
            finding.read(values.into_iter().filter_map(distribution).collect());
            for asked in finding.wanted()? {
                self.parts.push(Asked::begin(prompter, asked, self.orders, room, gone)?);
            }
        }
    }

    /// Takes what the reads gave, in their order.
    ///
    /// # Errors
    /// [`NonFinite`].
    pub(super) fn absorb(&mut self, readings: Vec<LabelReading>) -> Result<(), NonFinite> {
        let mut readings = readings.into_iter();
        for part in &mut self.parts {
            let wanted = part.reading.wanted().len();
            if wanted > 0 {
                part.reading.absorb(readings.by_ref().take(wanted).collect())?;
            }
        }
        Ok(())
    }

    /// Bytes of text that rendering what it wants next handles, roughly.
    pub(super) fn wanted_bytes(&self) -> usize {
        self.parts.iter().map(Asked::wanted_bytes).sum()
    }

    /// The answer, once nothing more is wanted.
    pub(super) fn answer(mut self) -> Option<Answer> {
        let Some(finding) = self.finding else { return self.parts.pop().map(Asked::answer) };
        Some(Answer {
            id: self.question.id,
            value: finding.value(),
            diagnostics: self.diagnostics.unwrap_or_default(),
            raw: Vec::new(),
            hidden: None,
            learned: Learned::default(),
            citations: self.question.cites.then(|| finding.citations()),
        })
    }

    /// The passages that were found, of one that looks for those of another question's answer.
    pub(super) fn citations(self) -> Vec<Citation> {
        self.finding.map(|finding| finding.citations()).unwrap_or_default()
    }
}

/// The distribution of a choice.
fn distribution(value: Value) -> Option<Vec<f64>> {
    match value {
        Value::Choice { probabilities, .. } => Some(probabilities),
        Value::Noul { .. }
        | Value::Score { .. }
        | Value::Number(_)
        | Value::Excerpt(_)
        | Value::Skipped { .. } => None,
    }
}

/// Diagnostics of two readings of one question.
fn together(one: &Diagnostics, other: &Diagnostics) -> Diagnostics {
    Diagnostics {
        label_mass: one.label_mass.zip(other.label_mass).map(|(one, other)| one.min(other)),
        argmax_is_label: one.argmax_is_label && other.argmax_is_label,
        entropy: one.entropy.max(other.entropy),
        orders: one.orders.max(other.orders),
        order_consistency: one.order_consistency.min(other.order_consistency),
        reads: one.reads + other.reads,
    }
}
