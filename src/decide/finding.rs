//! A question whose options are found in the state: what is read next, and what it comes to.

use std::sync::{Arc, OnceLock};

use super::asked::Unread;
use crate::extract::{
    CANDIDATES_MAX, Narrowing, NumberCandidate, NumberCriteria, Spans, first_numbers,
    number_answer, spans,
};
use crate::json::Json;
use crate::question::answer::{Citation, ExcerptFound, NumberFound, NumberRead, Part, Value};
use crate::question::{self, ChoiceOption, Finds, Kind, Question, Samples};

/// Most passages that are shown in one read, without the option that none is it. More are narrowed in
/// stages: a read of 16 sentences is about 500 tokens.
const PASSAGES_MAX: usize = 16;

/// Most stretches of a long state that are looked into.
const STRETCHES_MAX: usize = 2;

/// By how much the odds of "not stated" are raised over what is read: a model that is shown a list of
/// candidates takes one of them too readily. Measured: docs/BENCHMARKS.md, "Extraction".
const NOT_STATED_ODDS: f64 = 5.0;

/// The option that the state does not say it.
const NOT_STATED: &str = "not stated";

const OF_NUMBER: &str = "Which number answers this? Take not stated if the text does not say.";
const OF_EXCERPT: &str = "Which passage answers this? Take not stated if none does.";
const OF_CITATION: &str = "Which passage does the answer rest on? Take not stated if none.";

/// The text that is searched: the state's, as the model reads it.
#[derive(Debug)]
pub(super) struct Source {
    text: String,
    /// Its pieces; cut when they are first needed, off the runtime's workers.
    spans: OnceLock<Spans>,
}

impl Source {
    pub(super) fn new(text: String) -> Self {
        Self { text, spans: OnceLock::new() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn spans(&self) -> &Spans {
        self.spans.get_or_init(|| spans(&self.text))
    }
}

/// A search in progress.
#[derive(Debug)]
pub(super) struct Finding {
    source: Arc<Source>,
    /// The question in words.
    words: String,
    samples: Option<Samples>,
    sought: Sought,
}

#[derive(Debug)]
enum Sought {
    /// A number among these; what was read of them, the option for none of them last.
    Number { candidates: Vec<NumberCandidate>, distribution: Vec<f64> },
    /// Passages.
    Passages { search: Narrowing, for_citation: bool },
}

impl Finding {
    /// Begins a search.
    ///
    /// * `words`: the question in words.
    /// * `labels_max`: most options of one read.
    /// * `for_citation`: whether the passages are those that the answer to another question rests on.
    ///
    /// # Errors
    /// [`Unread::TooManyNumbers`].
    pub(super) fn begin(
        question: &Question,
        finds: Finds,
        (source, words): (&Arc<Source>, String),
        (labels_max, for_citation): (usize, bool),
    ) -> Result<Self, Unread> {
        let sought = match finds {
            Finds::Number(criteria) => {
                let (criteria, count_max) = (limits(criteria), CANDIDATES_MAX + 1);
                let candidates = first_numbers(source.text(), &criteria, count_max);
                if candidates.len() > CANDIDATES_MAX {
                    return Err(Unread::TooManyNumbers(CANDIDATES_MAX));
                }
                Sought::Number { candidates, distribution: Vec::new() }
            }
            Finds::Excerpt => {
                let options_max = PASSAGES_MAX.min(labels_max.saturating_sub(1));
                let search = Narrowing::new(source.spans(), options_max, STRETCHES_MAX);
                Sought::Passages { search, for_citation }
            }
        };
        Ok(Self { source: Arc::clone(source), words, samples: question.samples, sought })
    }

    /// The choices to be read next; none once the search is over.
    pub(super) fn wanted(&self) -> Vec<Question> {
        let text = self.source.text();
        match &self.sought {
            Sought::Number { candidates, distribution } => {
                if candidates.is_empty() || !distribution.is_empty() {
                    return Vec::new();
                }
                let spans = self.source.spans();
                let shown = |candidate| spans.number_option(text, candidate);
                let options = candidates.iter().map(shown).collect();
                vec![self.choice(OF_NUMBER, options, true)]
            }
            Sought::Passages { search, for_citation } => {
                let ask = if *for_citation { OF_CITATION } else { OF_EXCERPT };
                let wanted = search.wanted().into_iter().map(|wanted| {
                    let spans = self.source.spans();
                    let options = spans.options(text, &wanted.node, search.options_max());
                    let options = options.into_iter().map(|option| option.shown).collect();
                    self.choice(ask, options, wanted.asks_not_stated)
                });
                wanted.collect()
            }
        }
    }

    /// Takes the distributions of what was wanted.
    pub(super) fn read(&mut self, distributions: Vec<Vec<f64>>) {
        match &mut self.sought {
            Sought::Number { distribution, .. } => {
                *distribution = weighed(distributions.into_iter().next().unwrap_or_default());
            }
            Sought::Passages { search, .. } => {
                let mut distributions = distributions;
                let each = search.wanted().into_iter().zip(&mut distributions);
                for (_, distribution) in each.filter(|(wanted, _)| wanted.asks_not_stated) {
                    *distribution = weighed(std::mem::take(distribution));
                }
                search.read(self.source.spans(), &distributions);
            }
        }
    }

    /// The answer, once nothing more is wanted.
    pub(super) fn value(&self) -> Value {
        let (text, spans) = (self.source.text(), || self.source.spans());
        match &self.sought {
            Sought::Number { candidates, distribution } => {
                let answer = number_answer(text, spans(), candidates, distribution);
                let read = answer.candidates.into_iter().map(|candidate| NumberRead {
                    value: candidate.value,
                    probability: candidate.probability,
                    context: candidate.context,
                });
                Value::Number(NumberFound {
                    value: answer.value,
                    probability: answer.probability,
                    not_stated: answer.not_stated,
                    confidence: answer.confidence,
                    candidates: read.collect(),
                })
            }
            Sought::Passages { search, .. } => {
                let answer = search.excerpt(text, spans());
                let place = answer.start.zip(answer.end);
                let found = answer.text.zip(place);
                Value::Excerpt(ExcerptFound {
                    found: found.map(|(text, (start, end))| Part { text, start, end }),
                    probability: answer.probability,
                    not_stated: answer.not_stated,
                    parts: answer.parts.into_iter().map(part).collect(),
                })
            }
        }
    }

    /// The passages that the answer rests on: of a number that in which it stands.
    pub(super) fn citations(&self) -> Vec<Citation> {
        let (text, spans) = (self.source.text(), self.source.spans());
        match &self.sought {
            Sought::Number { candidates, distribution } => {
                let answer = number_answer(text, spans, candidates, distribution);
                let value = answer.value;
                let stated = candidates.iter().find(|candidate| Some(candidate.value) == value);
                let place = stated.and_then(|candidate| candidate.places.first());
                let passage = place.and_then(|place| spans.passage(text, place));
                let citation =
                    |found| Citation { part: part(found), probability: answer.probability };
                passage.map(citation).into_iter().collect()
            }
            Sought::Passages { search, .. } => {
                let citation = |found: crate::extract::Citation| Citation {
                    part: part(found.part),
                    probability: found.probability,
                };
                search.citations(text, spans).into_iter().map(citation).collect()
            }
        }
    }

    fn choice(&self, ask: &str, shown: Vec<String>, asks_not_stated: bool) -> Question {
        let none = asks_not_stated.then(|| NOT_STATED.to_owned());
        let options = shown.into_iter().chain(none);
        let options = options.map(|key| ChoiceOption { key, description: None }).collect();
        let words = [&self.words, "\n", ask].concat();
        let kind = Kind::Choice { options };
        let question = Question::new(String::new(), kind, Some(Json::String(words)));
        Question { samples: self.samples, ..question }
    }
}

/// A distribution with the odds of its last option, "not stated", raised by [`NOT_STATED_ODDS`].
fn weighed(mut distribution: Vec<f64>) -> Vec<f64> {
    let Some(last) = distribution.last_mut() else { return distribution };
    *last *= NOT_STATED_ODDS;
    let total: f64 = distribution.iter().sum();
    for p in &mut distribution {
        *p /= total;
    }
    distribution
}

fn limits(criteria: question::NumberCriteria) -> NumberCriteria {
    let question::NumberCriteria { min, max, precision } = criteria;
    NumberCriteria { min, max, precision }
}

fn part(found: crate::extract::Part) -> Part {
    Part { text: found.text, start: found.start, end: found.end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(text: &str, finds: Finds) -> Finding {
        let source = Arc::new(Source::new(text.to_owned()));
        let question = Question::finding("q".to_owned(), finds, None);
        Finding::begin(&question, finds, (&source, "What?".to_owned()), (52, false)).unwrap()
    }

    #[test]
    fn more_numbers_than_are_looked_at_are_refused_and_never_left_out() {
        let numbers: Vec<String> =
            (0..=CANDIDATES_MAX).map(|number| format!("v {number}\n")).collect();
        let source = Arc::new(Source::new(numbers.concat()));
        let begin = |criteria| {
            let question = Question::finding("q".to_owned(), Finds::Number(criteria), None);
            let words = (&source, String::new());
            Finding::begin(&question, Finds::Number(criteria), words, (52, false)).err()
        };
        let all = question::NumberCriteria::default();
        assert_eq!(begin(all), Some(Unread::TooManyNumbers(CANDIDATES_MAX)));
        assert_eq!(begin(question::NumberCriteria { min: Some(1.0), ..all }), None);
    }

    fn number() -> Finds {
        Finds::Number(question::NumberCriteria::default())
    }

    fn keys(question: &Question) -> Vec<&str> {
        let Kind::Choice { options } = &question.kind else { panic!("{question:?}") };
        options.iter().map(|option| option.key.as_str()).collect()
    }

    #[test]
    fn a_number_is_chosen_among_those_of_the_text_and_not_stated() {
        let mut search = finding("It costs 45 euros and weighs 3 kilograms.", number());
        let wanted = search.wanted();
        let options = keys(&wanted[0]);
        assert_eq!((wanted.len(), options.len(), options[2]), (1, 3, NOT_STATED));
        assert!(options[0].contains("45") && options[1].contains('3'), "{options:?}");
        search.read(vec![vec![0.8, 0.1, 0.1]]);
        assert_eq!(search.wanted(), []);
        let Value::Number(found) = search.value() else { panic!("no number") };
        assert_eq!(found.value, Some(45.0));
        // .5 of 1.4: the odds of the last are five times what was read.
        assert!((found.not_stated - 0.5 / 1.4).abs() < 1e-12, "{found:?}");
        assert_eq!(search.citations()[0].part.text, "It costs 45 euros and weighs 3 kilograms.");
    }

    #[test]
    fn a_text_without_numbers_states_none_and_nothing_is_read() {
        let search = finding("Nothing here.", number());
        assert_eq!(search.wanted(), []);
        let Value::Number(found) = search.value() else { panic!("no number") };
        assert_eq!((found.value, found.confidence, found.candidates.len()), (None, None, 0));
        assert_eq!(search.citations(), []);
    }

    #[test]
    fn a_long_text_is_narrowed_in_stages() {
        let lines: Vec<String> = (0..60).map(|line| format!("Line number {line}.\n")).collect();
        let text = lines.concat();
        let mut search = finding(&text, Finds::Excerpt);
        let first = search.wanted();
        assert_eq!((first.len(), keys(&first[0]).len()), (1, PASSAGES_MAX + 1));
        let mut distribution = vec![0.0; PASSAGES_MAX + 1];
        distribution[3] = 1.0;
        search.read(vec![distribution]);
        let second = search.wanted();
        let options = keys(&second[0]);
        assert!(second.len() == 1 && options.len() < PASSAGES_MAX, "{options:?}");
        let mut distribution = vec![0.0; options.len()];
        distribution[0] = 1.0;
        search.read(vec![distribution]);
        assert_eq!(search.wanted(), []);
        let Value::Excerpt(found) = search.value() else { panic!("no excerpt") };
        let part = found.found.unwrap();
        let of_text: String = text.chars().skip(part.start).take(part.end - part.start).collect();
        assert_eq!((part.text, found.not_stated), (of_text, 0.0));
    }
}
