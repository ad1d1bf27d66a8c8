//! A question whose options are found in the state: what is read next, and what it comes to.

use std::sync::{Arc, OnceLock};

use super::asked::Unread;
use super::room::OptionLimits;
use crate::extract::{
    CANDIDATES_MAX, Narrowing, Node, NumberAnswer, NumberCriteria, NumberSearch, NumberWanted,
    OPTION_CHARS_MAX, SHOWN_CHARS_MAX, Spans, first_numbers, number_answer, spans,
};
use crate::json::Json;
use crate::question::answer::{Citation, ExcerptFound, NumberFound, NumberRead, Part, Value};
use crate::question::{self, ChoiceOption, Finds, Kind, Question, Samples};

/// Most passages that are shown in one read, without the option that none is it. More are narrowed in
/// stages: a read of 16 sentences is about 500 tokens.
const PASSAGES_MAX: usize = 16;

/// Most numbers that are shown in one read where the text can be narrowed to them.
const NUMBERS_MAX: usize = 32;

/// Most different numbers of a state that are searched, far more than fit a prompt.
const NUMBERS_SEARCHED_MAX: usize = 1 << 18;

/// Most stretches of a long state that are looked into.
const STRETCHES_MAX: usize = 2;

/// By how much the odds of "not stated" are raised over what is read: a model that is shown a list of
/// candidates takes one of them too readily. Measured: docs/BENCHMARKS.md, "Extraction".
const NOT_STATED_ODDS: f64 = 5.0;

/// The option that the state does not say it.
const NOT_STATED: &str = "not stated";

const OF_NUMBER: &str = "Which number answers this? Take not stated if the text does not say.";
const OF_STRETCH: &str =
    "In which passage is the number that answers this? Take not stated if in none.";
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
    Number(NumberSearch),
    /// Passages.
    Passages {
        search: Narrowing,
        for_citation: bool,
    },
}

impl Finding {
    /// Begins a search.
    ///
    /// * `words`: the question in words.
    /// * `limits`: of one read.
    /// * `for_citation`: whether the passages are those that the answer to another question rests on.
    pub(super) fn begin(
        question: &Question,
        finds: Finds,
        (source, words): (&Arc<Source>, String),
        limits: OptionLimits,
        for_citation: bool,
    ) -> Self {
        let spans = source.spans();
        let sought = match finds {
            Finds::Number(criteria) => {
                let criteria = criteria_of(criteria);
                let all = first_numbers(source.text(), &criteria, NUMBERS_SEARCHED_MAX);
                let numbers = limits.shown(NUMBERS_MAX, OPTION_CHARS_MAX);
                let stretches = limits.shown(PASSAGES_MAX, SHOWN_CHARS_MAX);
                Sought::Number(NumberSearch::new(spans, all, numbers, stretches))
            }
            Finds::Excerpt => {
                let search = Narrowing::new(
                    spans,
                    limits.shown(PASSAGES_MAX, SHOWN_CHARS_MAX),
                    STRETCHES_MAX,
                );
                Sought::Passages { search, for_citation }
            }
        };
        Self { source: Arc::clone(source), words, samples: question.samples, sought }
    }

    /// The choices to be read next; none once the search is over.
    ///
    /// # Errors
    /// [`Unread::TooManyNumbers`] where one piece of the text has more than can be told apart.
    pub(super) fn wanted(&self) -> Result<Vec<Question>, Unread> {
        let (text, spans) = (self.source.text(), self.source.spans());
        let wanted = match &self.sought {
            Sought::Number(search) => match search.wanted(spans) {
                NumberWanted::Nothing | NumberWanted::Numbers([]) => Vec::new(),
                NumberWanted::Numbers(candidates) if candidates.len() > CANDIDATES_MAX => {
                    return Err(Unread::TooManyNumbers(CANDIDATES_MAX));
                }
                NumberWanted::Numbers(candidates) => {
                    let shown = |candidate| spans.number_option(text, candidate);
                    vec![self.choice(OF_NUMBER, candidates.iter().map(shown).collect(), true)]
                }
                NumberWanted::Stretches(nodes, asks_not_stated) => {
                    let shown = |node: Node| spans.option(text, node).shown;
                    let options = nodes.into_iter().map(|nodes| nodes.into_iter().map(shown));
                    let choice =
                        |options: Vec<String>| self.choice(OF_STRETCH, options, asks_not_stated);
                    options.map(|options| choice(options.collect())).collect()
                }
            },
            Sought::Passages { search, for_citation } => {
                let ask = if *for_citation { OF_CITATION } else { OF_EXCERPT };
                let wanted = search.wanted().into_iter().map(|wanted| {
                    let options = spans.options(text, &wanted.node, search.options_max());
                    let options = options.into_iter().map(|option| option.shown).collect();
                    self.choice(ask, options, wanted.asks_not_stated)
                });
                wanted.collect()
            }
        };
        Ok(wanted)
    }

    /// Takes the distributions of what was wanted.
    pub(super) fn read(&mut self, mut distributions: Vec<Vec<f64>>) {
        let spans = self.source.spans();
        match &mut self.sought {
            Sought::Number(search) => {
                if !matches!(search.wanted(spans), NumberWanted::Stretches(_, false)) {
                    distributions = distributions.into_iter().map(weighed).collect();
                }
                search.read(spans, distributions);
            }
            Sought::Passages { search, .. } => {
                let each = search.wanted().into_iter().zip(&mut distributions);
                for (_, distribution) in each.filter(|(wanted, _)| wanted.asks_not_stated) {
                    *distribution = weighed(std::mem::take(distribution));
                }
                search.read(spans, &distributions);
            }
        }
    }

    /// The answer, once nothing more is wanted.
    pub(super) fn value(&self) -> Value {
        let (text, spans) = (self.source.text(), self.source.spans());
        match &self.sought {
            Sought::Number(search) => {
                let answer = self.number(search);
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
                let answer = search.excerpt(text, spans);
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
            Sought::Number(search) => {
                let answer = self.number(search);
                let value = answer.value;
                let stated =
                    search.candidates().iter().find(|candidate| Some(candidate.value) == value);
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

    fn number(&self, search: &NumberSearch) -> NumberAnswer {
        let (text, spans) = (self.source.text(), self.source.spans());
        number_answer(text, spans, search.candidates(), &search.distribution())
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

fn criteria_of(criteria: question::NumberCriteria) -> NumberCriteria {
    let question::NumberCriteria { min, max, precision } = criteria;
    NumberCriteria { min, max, precision }
}

fn part(found: crate::extract::Part) -> Part {
    Part { text: found.text, start: found.start, end: found.end }
}

#[cfg(test)]
mod tests {
    use super::super::room::{OPTION_TOKENS, QUESTION_TOKENS};
    use super::*;

    fn finding(text: &str, finds: Finds) -> Finding {
        begun(text, finds, 9_999)
    }

    fn begun(text: &str, finds: Finds, tokens: usize) -> Finding {
        let source = Arc::new(Source::new(text.to_owned()));
        let question = Question::finding("q".to_owned(), finds, None);
        let limits = OptionLimits { labels: 52, tokens };
        Finding::begin(&question, finds, (&source, "What?".to_owned()), limits, false)
    }

    #[test]
    fn a_piece_with_more_numbers_than_can_be_told_apart_is_refused_and_none_left_out() {
        // So many lines that two of them are one piece.
        let line =
            |from: u32| (from..from + 150).map(|n| n.to_string()).collect::<Vec<_>>().join(";");
        let text = format!("{}\n{}\n{}", line(100), line(300), "a\n".repeat(5_000));
        let wanted = |criteria| finding(&text, Finds::Number(criteria)).wanted();
        let all = question::NumberCriteria::default();
        assert_eq!(wanted(all), Err(Unread::TooManyNumbers(CANDIDATES_MAX)));
        let fewer = wanted(question::NumberCriteria { min: Some(200.0), ..all }).unwrap();
        assert_eq!(keys(&fewer[0]).len(), 50 + 150 + 1);
    }

    #[test]
    fn many_numbers_are_narrowed_by_the_passages_they_stand_in() {
        let lines: Vec<String> = (0..300).map(|n| format!("Part {n} is spare.\n")).collect();
        let mut search = finding(&lines.concat(), number());
        let first = search.wanted().unwrap();
        assert_eq!((first.len(), keys(&first[0]).len()), (1, PASSAGES_MAX + 1));
        assert!(format!("{:?}", first[0].instructions).contains(OF_STRETCH));
        let mut distribution = vec![0.0; PASSAGES_MAX + 1];
        distribution[2] = 1.0;
        search.read(vec![distribution]);
        let second = search.wanted().unwrap();
        let options = keys(&second[0]);
        let count = options.len();
        assert!(second.len() == 1 && count <= NUMBERS_MAX + 1, "{options:?}");
        assert!(options[0].contains("is spare"), "{options:?}");
        let mut distribution = vec![0.0; count];
        distribution[0] = 1.0;
        search.read(vec![distribution]);
        assert_eq!(search.wanted(), Ok(Vec::new()));
        let Value::Number(found) = search.value() else { panic!("no number") };
        assert!(found.value.is_some_and(|value| (30.0..60.0).contains(&value)), "{found:?}");
        assert_eq!((found.candidates.len(), found.not_stated), (count - 1, 0.0));
    }

    #[test]
    fn fewer_options_are_shown_where_the_state_leaves_less_room() {
        let lines: Vec<String> = (0..60).map(|n| format!("Line {n}.\n")).collect();
        for (tokens, count) in [
            (9_999, PASSAGES_MAX),
            (QUESTION_TOKENS + 5 * (SHOWN_CHARS_MAX + OPTION_TOKENS), 5),
            (0, 2),
        ] {
            for finds in [Finds::Excerpt, number()] {
                let wanted = begun(&lines.concat(), finds, tokens).wanted().unwrap();
                assert_eq!(keys(&wanted[0]).len(), count + 1, "{tokens} {finds:?}");
            }
        }
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
        let wanted = search.wanted().unwrap();
        let options = keys(&wanted[0]);
        assert_eq!((wanted.len(), options.len(), options[2]), (1, 3, NOT_STATED));
        assert!(options[0].contains("45") && options[1].contains('3'), "{options:?}");
        search.read(vec![vec![0.8, 0.1, 0.1]]);
        assert_eq!(search.wanted(), Ok(Vec::new()));
        let Value::Number(found) = search.value() else { panic!("no number") };
        assert_eq!(found.value, Some(45.0));
        // .5 of 1.4: the odds of the last are five times what was read.
        assert!((found.not_stated - 0.5 / 1.4).abs() < 1e-12, "{found:?}");
        assert_eq!(search.citations()[0].part.text, "It costs 45 euros and weighs 3 kilograms.");
    }

    #[test]
    fn a_text_without_numbers_states_none_and_nothing_is_read() {
        let search = finding("Nothing here.", number());
        assert_eq!(search.wanted(), Ok(Vec::new()));
        let Value::Number(found) = search.value() else { panic!("no number") };
        assert_eq!((found.value, found.confidence, found.candidates.len()), (None, None, 0));
        assert_eq!(search.citations(), []);
    }

    #[test]
    fn a_long_text_is_narrowed_in_stages() {
        let lines: Vec<String> = (0..60).map(|line| format!("Line number {line}.\n")).collect();
        let text = lines.concat();
        let mut search = finding(&text, Finds::Excerpt);
        let first = search.wanted().unwrap();
        assert_eq!((first.len(), keys(&first[0]).len()), (1, PASSAGES_MAX + 1));
        let mut distribution = vec![0.0; PASSAGES_MAX + 1];
        distribution[3] = 1.0;
        search.read(vec![distribution]);
        let second = search.wanted().unwrap();
        let options = keys(&second[0]);
        assert!(second.len() == 1 && options.len() < PASSAGES_MAX, "{options:?}");
        let mut distribution = vec![0.0; options.len()];
        distribution[0] = 1.0;
        search.read(vec![distribution]);
        assert_eq!(search.wanted(), Ok(Vec::new()));
        let Value::Excerpt(found) = search.value() else { panic!("no excerpt") };
        let part = found.found.unwrap();
        let of_text: String = text.chars().skip(part.start).take(part.end - part.start).collect();
        assert_eq!((part.text, found.not_stated), (of_text, 0.0));
    }
}
