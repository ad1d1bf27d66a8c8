//! One round of a decision's reads: rendered together, checked together, given back together.

use std::sync::Arc;
use std::time::Instant;

use actors::{DecisionMeta, EngineError, ReadError, ReadOutcome, ReadSpec};

use super::asked::{Orders, Unread, text_bytes};
use super::inquiry::{Inquiry, Terms};
use super::room::Room;
use crate::error::{DecideError, Problem};
use crate::prompt::Prompter;
use crate::prompt::tokens::{Gone, off_thread};
use crate::question::Question;
use crate::readout::LabelReading;
use crate::telemetry;

/// Most tokens of all reads of one round, without the state's: 16 MiB of ids, and more than a CPU
/// reads in the longest time that a request may take.
pub(super) const TOKENS_MAX: usize = 4 << 20;

/// Questions that are too long after which no more of them are looked for.
const FAULTS_MAX: usize = 8;

/// Reads of one round: whose they are, and the reads themselves.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Number of reads of each question, in the questions' order.
    reads: Vec<usize>,
    /// All reads, question after question; none once everything is decided.
    pub(super) specs: Vec<ReadSpec>,
    tokens: usize,
}

impl Round {
    /// Begins the questions and renders their first reads, off the workers where they have much
    /// text.
    ///
    /// # Errors
    /// [`DecideError::Invalid`] with the questions that do not fit, the first [`FAULTS_MAX`].
    pub(super) async fn first(
        prompter: &Arc<Prompter>,
        questions: Vec<Question>,
        terms: &Terms,
        room: Room,
    ) -> Result<(Vec<Inquiry>, Self), DecideError> {
        let (prompter, terms) = (Arc::clone(prompter), terms.clone());
        let bytes = |question: &Question| {
            let Orders { samples, samples_max } = terms.orders;
            let orders = prompter.orders(question, samples, samples_max);
            let searched = terms.source.as_ref().filter(|_| question.finds.is_some());
            let searched = searched.map_or(0, |source| source.text().len());
            searched + text_bytes(question).saturating_mul(orders as usize + 1)
        };
        off_thread(questions.iter().map(bytes).sum(), move |gone| {
            let begun = questions.into_iter().map(|question| {
                let id = question.id.clone();
                let begun = Inquiry::begin(&prompter, question, &terms, room, gone);
                begun.map_err(|unread| (id, unread))
            });
            Self::of(&prompter, begun, room, gone)
        })
        .await
    }

    /// Renders what the questions want next, likewise.
    ///
    /// # Errors
    /// As [`Self::first`].
    pub(super) async fn next(
        prompter: &Arc<Prompter>,
        asked: Vec<Inquiry>,
        room: Room,
    ) -> Result<(Vec<Inquiry>, Self), DecideError> {
        let prompter = Arc::clone(prompter);
        off_thread(asked.iter().map(Inquiry::wanted_bytes).sum(), move |gone| {
            Self::of(&prompter, asked.into_iter().map(Ok), room, gone)
        })
        .await
    }

    fn of(
        prompter: &Prompter,
        begun: impl Iterator<Item = Result<Inquiry, (String, Unread)>>,
        room: Room,
        gone: &Gone,
    ) -> Result<(Vec<Inquiry>, Self), DecideError> {
        let began = Instant::now();
        let (mut all, mut round, mut problems) = (Vec::new(), Self::default(), Vec::new());
        for begun in begun {
            let reads = begun.and_then(|mut asked| match asked.reads(prompter, room, gone) {
                Ok(reads) => Ok((asked, reads)),
                Err(unread) => Err((asked.question.id, unread)),
            });
            match reads {
                Ok((asked, reads)) => {
                    round.add(reads)?;
                    all.push(asked);
                }
                Err((id, Unread::TooLong(length))) => {
                    problems.push(room.question_too_long(&id, length));
                }
                Err((id, Unread::TooManyNumbers(count_max))) => {
                    problems.push(too_many_numbers(&id, count_max));
                }
                Err((_, Unread::Gone)) => return Err(ReadError::Cancelled.into()),
            }
            if problems.len() == FAULTS_MAX {
                break;
            }
        }
        if !round.specs.is_empty() {
            telemetry::round_prompted(began.elapsed());
        }
        if problems.is_empty() { Ok((all, round)) } else { Err(DecideError::Invalid(problems)) }
    }

    /// Takes the reads of the next question.
    fn add(&mut self, reads: Vec<ReadSpec>) -> Result<(), DecideError> {
        self.tokens += reads.iter().map(|read| read.suffix.len()).sum::<usize>();
        self.reads.push(reads.len());
        self.specs.extend(reads);
        if self.tokens <= TOKENS_MAX {
            return Ok(());
        }
        Err(DecideError::Invalid(vec![Problem::new(
            vec!["questions".into()],
            "too_long",
            format!(
                "the questions in all their orders are at least {} tokens, at most {TOKENS_MAX} \
                 are read for one request",
                self.tokens
            ),
        )]))
    }

    /// What admission must know: the reads up to `suffix_tokens` long.
    pub(super) fn short(&self, meta: &DecisionMeta, suffix_tokens: u32) -> DecisionMeta {
        let lengths = self.specs.iter().map(|spec| spec.suffix.len());
        let short: Vec<usize> =
            lengths.filter(|tokens| *tokens <= suffix_tokens as usize).collect();
        DecisionMeta {
            first_reads: short.len(),
            first_tokens: short.iter().map(|tokens| *tokens as u64).sum(),
            suffix_tokens_max: u32::try_from(short.into_iter().max().unwrap_or(1))
                .unwrap_or(u32::MAX),
            ..meta.clone()
        }
    }

    /// Counts the reads, which have given results, and their tokens by the kinds of their questions.
    pub(super) fn count(&self, asked: &[Inquiry]) {
        let mut specs = &self.specs[..];
        for (asked, reads) in asked.iter().zip(&self.reads) {
            let (own, others) = specs.split_at((*reads).min(specs.len()));
            let tokens = own.iter().map(|spec| spec.suffix.len() as u64).sum();
            telemetry::question_reads(asked.question.type_name(), own.len() as u64, tokens);
            specs = others;
        }
    }

    /// Gives each question the outcomes of its reads.
    pub(super) fn absorb(
        &self,
        asked: &mut [Inquiry],
        outcomes: Vec<ReadOutcome>,
    ) -> Result<(), DecideError> {
        let mut outcomes = outcomes.into_iter();
        for (asked, reads) in asked.iter_mut().zip(&self.reads).filter(|(_, reads)| **reads > 0) {
            let readings = outcomes.by_ref().take(*reads).map(|outcome| LabelReading {
                logprobs: outcome.row.logprobs,
                log_mass: outcome.row.log_mass,
                greedy_is_label: outcome.row.greedy_is_label,
                hidden: outcome.row.hidden,
            });
            let readings = readings.collect();
            let lost = |_| DecideError::Read(ReadError::Engine(EngineError::NonFinite));
            asked.absorb(readings).map_err(lost)?;
        }
        Ok(())
    }
}

fn too_many_numbers(id: &str, count_max: usize) -> Problem {
    let message = format!(
        "one sentence, line or value of the state has more than {count_max} different numbers, of \
         which no more can be told apart: leave some out with min and max, or put them on lines"
    );
    Problem::new(vec!["questions".into(), id.into()], "too_many_numbers", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Step;
    use crate::json::Json;
    use crate::prompt::layout::profile_for;
    use crate::prompt::tokens::bytes::ByteTokenizer;
    use crate::question::{Kind, Samples};

    fn noul(id: usize, bytes: usize) -> Question {
        let instructions = Some(Json::String("x".repeat(bytes)));
        let kind = Kind::Noul { when_true: None, when_false: None };
        Question::new(format!("q{id}"), kind, instructions)
    }

    async fn first(
        questions: Vec<Question>,
        context: u32,
    ) -> Result<(Vec<Inquiry>, Round), DecideError> {
        let (bytes, facts) = (Arc::new(ByteTokenizer::new()), ByteTokenizer::facts());
        let prompter = Prompter::new(bytes, &facts, profile_for("", None), "model").unwrap();
        let orders = Orders { samples: Samples::Count(2), samples_max: 32 };
        let terms = Terms { orders, source: None };
        Round::first(&Arc::new(prompter), questions, &terms, Room::new(10, context)).await
    }

    fn faults(refused: Result<(Vec<Inquiry>, Round), DecideError>) -> Vec<(Vec<Step>, String)> {
        let Err(DecideError::Invalid(problems)) = refused else { panic!("{refused:?}") };
        problems.into_iter().map(|problem| (problem.path, problem.message)).collect()
    }

    #[tokio::test]
    async fn every_question_that_is_too_long_is_named() {
        let questions = vec![noul(0, 5), noul(1, 1_200), noul(2, 5), noul(3, 90_000)];
        let faults = faults(first(questions, 1_000).await);
        let paths: Vec<_> = faults.iter().map(|(path, _)| path[1].clone()).collect();
        assert_eq!(paths, ["q1".into(), "q3".into()]);
        assert!(faults[0].1.starts_with("the prompt is 1"), "{}", faults[0].1);
        assert!(faults[1].1.starts_with("the prompt is at least 9"), "{}", faults[1].1);
    }

    #[tokio::test]
    async fn the_search_for_long_questions_ends() {
        let questions = (0..64).map(|id| noul(id, 1_200)).collect();
        assert_eq!(faults(first(questions, 1_000).await).len(), FAULTS_MAX);
    }

    #[tokio::test]
    async fn questions_that_nobody_could_wait_for_are_refused_together() {
        let questions = (0..64).map(|id| noul(id, 33_000)).collect();
        let faults = faults(first(questions, 40_000).await);
        assert_eq!(faults[0].0, ["questions".into()]);
        assert!(faults[0].1.contains("4194304"), "{}", faults[0].1);
    }

    #[tokio::test]
    async fn a_round_has_each_questions_reads_in_order() {
        let (asked, round) = first(vec![noul(0, 5), noul(1, 7)], 1_000).await.unwrap();
        assert_eq!((asked.len(), round.reads.as_slice()), (2, [2, 2].as_slice()));
        assert_eq!(round.specs[2].suffix.len() - round.specs[0].suffix.len(), 2);
    }
}
