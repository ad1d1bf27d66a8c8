//! A decision's questions, stage after stage: which are asked, and what they are shown of earlier ones.

use std::collections::HashMap;

use super::inquiry::Inquiry;
use crate::error::{DecideError, Problem};
use crate::json::Json;
use crate::prompt::Prompter;
use crate::question::answer::{Answer, Diagnostics, Learned, Value};
use crate::question::stages::{name, skipped, stages};
use crate::question::{Decision, Finds, Question};
use crate::telemetry;

/// The stages of a decision while they are read.
#[derive(Debug)]
pub(super) struct Staged {
    /// Places of the questions, stage after stage; taken from the front.
    waiting: std::vec::IntoIter<Vec<usize>>,
    /// The questions that have not been asked, by place.
    questions: Vec<Option<Question>>,
    /// What each question asks in words, by id, where later ones are shown earlier answers.
    words: HashMap<String, String>,
    /// The places of those that are being read; a place comes again with the search for what the answer
    /// rests on.
    reading: Vec<usize>,
    /// By place.
    answers: Vec<Option<Answer>>,
    /// Places by id.
    places: HashMap<String, usize>,
    /// Ids of what was read, stage after stage.
    read: Vec<Vec<String>>,
    own_tokens: u64,
    shows_answers: bool,
}

impl Staged {
    /// # Errors
    /// [`DecideError::Invalid`] where questions wait for each other, which decoding has refused.
    pub(super) fn new(prompter: &Prompter, decision: &Decision) -> Result<Self, DecideError> {
        let questions = &decision.questions;
        let stages = stages(questions).map_err(|_| {
            let message = "questions depend on each other in a circle".to_owned();
            DecideError::Invalid(vec![Problem::new(vec!["questions".into()], "cycle", message)])
        })?;
        let words = |question: &Question| (question.id.clone(), prompter.question_words(question));
        let shows_answers = decision.stage_context && stages.len() > 1;
        let cites = |question: &Question| question.cites && question.finds.is_none();
        let needs_words = shows_answers || questions.iter().any(cites);
        let words = questions.iter().filter(|_| needs_words).map(words).collect();
        let places = questions.iter().enumerate();
        let places = places.map(|(place, question)| (question.id.clone(), place)).collect();
        Ok(Self {
            waiting: stages.into_iter(),
            questions: Vec::new(),
            words,
            reading: Vec::new(),
            answers: (0..questions.len()).map(|_| None).collect(),
            places,
            read: Vec::new(),
            own_tokens: 0,
            shows_answers,
        })
    }

    /// Takes the questions; those of the first stage, in which nothing is skipped.
    pub(super) fn begin(&mut self, questions: Vec<Question>) -> Vec<Question> {
        self.questions = questions.into_iter().map(Some).collect();
        self.next().unwrap_or_default()
    }

    /// The questions of the next stage of which one at least is asked; skips the others.
    pub(super) fn next(&mut self) -> Option<Vec<Question>> {
        while let Some(stage) = self.waiting.next() {
            let mut asked = Vec::new();
            for place in stage {
                asked.extend(self.ask(place));
            }
            if !asked.is_empty() {
                let own = asked.iter().filter(|question| !question.is_citation);
                self.read.push(own.map(|question| question.id.clone()).collect());
                return Some(asked);
            }
        }
        None
    }

    /// What is read for the question at `place`: itself, and what its answer rests on; nothing where
    /// it is skipped.
    fn ask(&mut self, place: usize) -> Vec<Question> {
        let Some(question) = self.questions.get_mut(place).and_then(Option::take) else {
            return Vec::new();
        };
        if let Some(value) = skipped(&question, |id| self.value(id)) {
            self.answers[place] = Some(unread(question.id, value));
            return Vec::new();
        }
        let search = self.search(&question);
        let asked: Vec<_> = [self.informed(question)].into_iter().chain(search).collect();
        self.reading.extend(asked.iter().map(|_| place));
        asked
    }

    /// Takes what a stage gave.
    pub(super) fn end(&mut self, asked: Vec<Inquiry>) {
        for (place, asked) in std::mem::take(&mut self.reading).into_iter().zip(asked) {
            self.own_tokens += u64::from(asked.own_tokens);
            let answer = &mut self.answers[place];
            match answer {
                Some(answer) if asked.question.is_citation => {
                    answer.citations = Some(asked.citations());
                }
                Some(_) | None => {
                    telemetry::questions(asked.question.type_name(), 1);
                    *answer = asked.answer();
                }
            }
        }
    }

    /// The answers in the order of the questions, the ids of what was read, and the tokens of its own
    /// text.
    pub(super) fn finish(self) -> (Vec<Answer>, Vec<Vec<String>>, u64) {
        (self.answers.into_iter().flatten().collect(), self.read, self.own_tokens)
    }

    fn value(&self, id: &str) -> Option<&Value> {
        let place = *self.places.get(id)?;
        self.answers[place].as_ref().map(|answer| &answer.value)
    }

    /// The search for the passages that the answer rests on, where they are wanted and not found with
    /// the answer itself.
    fn search(&self, question: &Question) -> Option<Question> {
        let words = self.words.get(&question.id).filter(|_| question.cites)?;
        if question.finds.is_some() {
            return None;
        }
        let words = Some(Json::String(words.clone()));
        let search = Question::finding(question.id.clone(), Finds::Excerpt, words);
        Some(Question { is_citation: true, ..search })
    }

    /// The question with the answers of those that it names ahead of its own words.
    fn informed(&self, question: Question) -> Question {
        if !self.shows_answers {
            return question;
        }
        let mut lines: Vec<String> = Vec::new();
        for id in question.names() {
            let known = self.words.get(id).zip(self.value(id).and_then(told));
            let Some((words, answer)) = known else { continue };
            let line = format!("Known: {words} - {answer}");
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let Some(own) = self.words.get(&question.id).filter(|_| !lines.is_empty()) else {
            return question;
        };
        lines.push(own.clone());
        Question { instructions: Some(Json::String(lines.join("\n"))), ..question }
    }
}

/// An answer as a later question is shown it.
fn told(value: &Value) -> Option<String> {
    match value {
        Value::Noul { .. } | Value::Choice { .. } | Value::Score { .. } => name(value),
        Value::Number(found) => {
            Some(found.value.map_or_else(|| "not stated".to_owned(), |number| number.to_string()))
        }
        Value::Excerpt(found) => {
            let text = found.found.as_ref().map(|part| part.text.clone());
            Some(text.unwrap_or_else(|| "not stated".to_owned()))
        }
        Value::Skipped { .. } => None,
    }
}

/// The answer of a question that was not asked.
fn unread(id: String, value: Value) -> Answer {
    Answer {
        id,
        value,
        diagnostics: Diagnostics::default(),
        raw: Vec::new(),
        hidden: None,
        learned: Learned::default(),
        citations: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::prompt::layout::profile_for;
    use crate::prompt::tokens::bytes::ByteTokenizer;
    use crate::question::{Condition, Kind};

    fn prompter() -> Prompter {
        let bytes = Arc::new(ByteTokenizer::new());
        Prompter::new(bytes, &ByteTokenizer::facts(), profile_for("", None), "model").unwrap()
    }

    fn noul(id: &str, words: &str) -> Question {
        let kind = Kind::Noul { when_true: None, when_false: None };
        Question::new(id.to_owned(), kind, Some(Json::String(words.to_owned())))
    }

    fn decision(questions: Vec<Question>, stage_context: bool) -> Decision {
        let state = Json::String("s".to_owned());
        Decision { stage_context, ..Decision::new(state, questions) }
    }

    /// Begins a decision, and ends its first question with a yes.
    fn answered(decision: Decision) -> (Staged, Vec<Question>, Option<Vec<Question>>) {
        let mut staged = Staged::new(&prompter(), &decision).unwrap();
        let first = staged.begin(decision.questions);
        staged.reading.clear();
        staged.answers[0] = Some(unread("a".to_owned(), Value::Noul { yes: 0.9 }));
        let second = staged.next();
        (staged, first, second)
    }

    fn words(question: &Question) -> &str {
        question.instructions.as_ref().and_then(Json::as_str).unwrap()
    }

    #[test]
    fn a_question_is_shown_the_answers_that_it_depends_on_where_that_is_asked_for() {
        let follows = Question { depends_on: vec!["a".to_owned()], ..noul("b", "And this?") };
        let both = || vec![noul("a", "Is it  so?"), follows.clone()];
        let (_, first, second) = answered(decision(both(), true));
        assert_eq!((first.len(), words(&first[0])), (1, "Is it  so?"));
        assert_eq!(words(&second.unwrap()[0]), "Known: Is it so? - yes\nAnd this?");
        let (_, _, second) = answered(decision(both(), false));
        assert_eq!(words(&second.unwrap()[0]), "And this?");
    }

    #[test]
    fn a_stage_of_which_nothing_is_asked_is_left_out() {
        let condition = |answer: &str| {
            vec![Condition { question: "a".to_owned(), answers: vec![answer.to_owned()] }]
        };
        let no = Question { ask_if: condition("no"), ..noul("b", "b?") };
        let (staged, _, second) = answered(decision(vec![noul("a", "a?"), no], false));
        assert_eq!(second, None);
        let (answers, read, _) = staged.finish();
        assert_eq!(read, [["a"]]);
        assert!(matches!(answers[1].value, Value::Skipped { .. }));
        let yes = Question { ask_if: condition("yes"), ..noul("b", "b?") };
        let (staged, _, second) = answered(decision(vec![noul("a", "a?"), yes], false));
        assert_eq!(second.map(|stage| stage.len()), Some(1));
        assert_eq!(staged.finish().1, [["a"], ["b"]]);
    }

    #[test]
    fn what_an_answer_rests_on_is_searched_beside_it_and_is_no_question_of_its_own() {
        let cites = Question { cites: true, ..noul("a", "a?") };
        let (staged, first, _) = answered(decision(vec![cites, noul("b", "b?")], false));
        let ids: Vec<_> = first.iter().map(|one| (one.id.as_str(), one.is_citation)).collect();
        assert_eq!(ids, [("a", false), ("a", true), ("b", false)]);
        assert_eq!(first[1].finds, Some(Finds::Excerpt));
        assert_eq!(staged.finish().1, [["a", "b"]]);
    }
}
