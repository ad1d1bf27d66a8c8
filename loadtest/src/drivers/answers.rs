//! The answers of System One, its dialects and `OpenAI`'s decisions, read as distributions.

use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::exchange::tokens;
use crate::workload::decision::{Kind, Question};

/// A question's name in bodies: its id, or its place.
pub(super) struct Named<'q>(pub(super) &'q Question, pub(super) usize);

impl fmt::Display for Named<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.id {
            Some(id) => out.write_str(id),
            None => write!(out, "q{}", self.1),
        }
    }
}

/// A whole body of answers.
#[derive(Debug, PartialEq)]
pub(super) struct Read {
    /// A distribution for each question, where they are wanted and can be read.
    pub(super) distributions: Option<Vec<Vec<f64>>>,
    /// `usage.input_tokens`.
    pub(super) input_tokens: Option<u64>,
}

/// A body, of whose answers `A` is made.
#[derive(Deserialize)]
struct Body<'b, A> {
    answers: A,
    /// Whatever it is: a usage of another shape does not spoil the answers.
    #[serde(borrow)]
    usage: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
}

/// Reads a body; none where it does not have one answer for each question, by name where answers have
/// one.
pub(super) fn read(body: &[u8], asked: &[Rc<Question>], wants: bool) -> Option<Read> {
    let input_tokens = |usage: Option<&RawValue>| {
        let usage = serde_json::from_str::<Usage>(usage?.get()).ok()?;
        Some(tokens(Some(usage.input_tokens)))
    };
    if wants && let Ok(whole) = serde_json::from_slice::<Body<'_, Entries<Option<One>>>>(body) {
        let Entries(entries, _) = whole.answers;
        let distributions = Some(distributions(&entries, asked)?);
        let input_tokens = input_tokens(whole.usage);
        return (entries.len() == asked.len()).then_some(Read { distributions, input_tokens });
    }
    let whole = serde_json::from_slice::<Body<'_, Names>>(body).ok()?;
    let input_tokens = input_tokens(whole.usage);
    whole.answers.are_of(asked).then_some(Read { distributions: None, input_tokens })
}

/// A distribution for each question; an empty one where its answer has none. None where one has no
/// answer.
fn distributions(
    entries: &[(Option<String>, Option<One>)],
    asked: &[Rc<Question>],
) -> Option<Vec<Vec<f64>>> {
    let answer = |(index, question): (usize, &Rc<Question>)| {
        let name = Named(question, index).to_string();
        // Nearly always they come in the order asked.
        let same =
            |(key, _): &&(Option<String>, Option<One>)| key.as_ref().is_none_or(|key| *key == name);
        let found = entries.get(index).filter(same);
        let found = found.or_else(|| entries.iter().find(|(key, _)| key.as_ref() == Some(&name)));
        let (_, one) = found?;
        Some(one.as_ref().map_or(Vec::new(), |one| one.distribution(question)))
    };
    asked.iter().enumerate().map(answer).collect()
}

/// The part of an answer that is looked at.
#[derive(Debug, Deserialize)]
struct One {
    noul: Option<f64>,
    /// `OpenAI`'s word for it.
    probability: Option<f64>,
    probabilities: Option<Entries<f64, Listed>>,
}

/// A probability beside what it is of.
#[derive(Debug, Deserialize)]
struct Listed {
    probability: f64,
}

impl From<Listed> for f64 {
    fn from(listed: Listed) -> Self {
        listed.probability
    }
}

impl One {
    fn distribution(&self, question: &Question) -> Vec<f64> {
        let named = |names: [&str; 2], index: usize| {
            let Entries(kept, _) = self.probabilities.as_ref()?;
            let is_named =
                |key: &Option<String>| key.as_ref().is_none_or(|key| names.contains(&key.as_str()));
            let found = kept.get(index).filter(|(key, _)| is_named(key));
            let found =
                found.or_else(|| kept.iter().find(|(key, _)| key.is_some() && is_named(key)));
            found.map(|(_, probability)| *probability)
        };
        let all = |name: &dyn Fn(usize) -> String| {
            let options = question.options.iter().enumerate();
            let found: Option<Vec<f64>> =
                options.map(|(index, option)| named([&name(index), &option.name], index)).collect();
            found.unwrap_or_default()
        };
        match question.kind {
            Kind::Noul => {
                let yes = self.noul.or(self.probability);
                yes.or_else(|| named(["yes", "true"], 0)).into_iter().collect()
            }
            Kind::Choice => all(&|index| question.options[index].name.clone()),
            Kind::Score => all(&|index| index.to_string()),
            Kind::Other => Vec::new(),
        }
    }
}

/// Names of the entries of a JSON object, or how many a list has.
enum Names {
    Of(Vec<String>),
    None(usize),
}

impl Names {
    /// Whether each question has one of them.
    fn are_of(&self, asked: &[Rc<Question>]) -> bool {
        let Self::Of(names) = self else {
            return matches!(self, Self::None(count) if *count == asked.len());
        };
        let has = |(index, question): (usize, &Rc<Question>)| {
            let name = Named(question, index).to_string();
            // Nearly always they come in the order asked.
            names.get(index) == Some(&name) || names.contains(&name)
        };
        names.len() == asked.len() && asked.iter().enumerate().all(has)
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object or a list")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Names, M::Error> {
        let mut names = Vec::new();
        while let Some((name, IgnoredAny)) = map.next_entry()? {
            names.push(name);
        }
        Ok(Names::Of(names))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Names, S::Error> {
        let mut count = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Names::None(count))
    }
}

/// The entries of a JSON object with their keys, or of a list of `L` without.
#[derive(Debug)]
struct Entries<V, L = V>(Vec<(Option<String>, V)>, PhantomData<L>);

impl<'de, V, L> Deserialize<'de> for Entries<V, L>
where
    V: Deserialize<'de> + From<L>,
    L: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Collect(PhantomData))
    }
}

/// Collects [`Entries`].
struct Collect<V, L>(PhantomData<(V, L)>);

impl<'de, V, L> Visitor<'de> for Collect<V, L>
where
    V: Deserialize<'de> + From<L>,
    L: Deserialize<'de>,
{
    type Value = Entries<V, L>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object or a list")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry()? {
            entries.push((Some(key), value));
        }
        Ok(Entries(entries, PhantomData))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Self::Value, S::Error> {
        let mut entries = Vec::new();
        while let Some(value) = list.next_element::<L>()? {
            entries.push((None, value.into()));
        }
        Ok(Entries(entries, PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::decision::Answer;

    fn question(kind: Kind, options: &[&str]) -> Rc<Question> {
        let options = options.iter().copied().map(Answer::named).collect();
        let (instructions, json) = (String::new(), String::new());
        Rc::new(Question { id: None, kind, instructions, options, json })
    }

    fn asked() -> Vec<Rc<Question>> {
        vec![
            question(Kind::Noul, &["Yes", "No"]),
            question(Kind::Choice, &["b", "a"]),
            question(Kind::Score, &["calm", "cross", "furious"]),
        ]
    }

    fn expected() -> Vec<Vec<f64>> {
        vec![vec![0.91], vec![0.88, 0.12], vec![0.05, 0.1, 0.85]]
    }

    /// What is read where distributions are wanted; where they are not, the rest is the same.
    fn wanted(body: &[u8]) -> Option<Read> {
        let wanted = read(body, &asked(), true);
        let counted = read(body, &asked(), false);
        let input_tokens = wanted.as_ref().map(|read| read.input_tokens);
        assert_eq!(counted.as_ref().map(|read| read.input_tokens), input_tokens);
        assert!(counted.is_none_or(|read| read.distributions.is_none()));
        wanted
    }

    #[test]
    fn a_systemone_body_gives_a_distribution_a_question() {
        let body = br#"{"model": "m", "answers": {
            "q0": {"type": "noul", "noul": 0.91},
            "q1": {"type": "choice", "choice": "b", "confidence": 0.8,
                "probabilities": {"b": 0.88, "a": 0.12}},
            "q2": {"type": "score", "score": 1.8, "legend": {"0": "calm"},
                "probabilities": {"0": 0.05, "1": 0.1, "2": 0.85}}},
            "usage": {"input_tokens": 93, "output_tokens": 0}}"#;
        let read = wanted(body).unwrap();
        assert_eq!(
            (read.distributions.unwrap().as_slice(), read.input_tokens),
            (&expected()[..], Some(93))
        );
    }

    #[test]
    fn entries_are_found_in_any_order() {
        let body = br#"{"answers": {
            "q2": {"probabilities": {"furious": 0.85, "calm": 0.05, "cross": 0.1}},
            "q0": {"probabilities": {"no": 0.09, "yes": 0.91}},
            "q1": {"probabilities": {"a": 0.12, "b": 0.88}}}, "usage": "none"}"#;
        assert_eq!(
            wanted(body).unwrap(),
            Read { distributions: Some(expected()), input_tokens: None }
        );
    }

    #[test]
    fn a_list_of_answers_is_in_the_order_asked() {
        let body = br#"{"answers": [
            {"type": "predicate", "name": null, "probability": 0.91},
            {"type": "choice", "probabilities": [
                {"value": "b", "probability": 0.88}, {"value": true, "probability": 0.12}]},
            {"type": "score", "probabilities": [
                {"value": 0, "label": "calm", "probability": 0.05},
                {"value": 1, "probability": 0.1}, {"value": 2, "probability": 0.85}]}]}"#;
        assert_eq!(wanted(body).unwrap().distributions, Some(expected()));
    }

    #[test]
    fn what_has_no_distribution_is_empty() {
        let body =
            br#"{"answers": {"q0": null, "q1": {"probabilities": {"b": 1}}, "q2": {"noul": 0.5}}}"#;
        assert_eq!(wanted(body).unwrap().distributions, Some(vec![Vec::new(); 3]));
        // A shape that nobody knows is an answer all the same.
        let foreign = br#"{"answers": {"q0": 1, "q1": "b", "q2": []}}"#;
        assert_eq!(wanted(foreign).unwrap().distributions, None);
    }

    #[test]
    fn an_answer_to_every_question_is_wanted() {
        assert_eq!(wanted(br#"{"answers": {"q0": {"noul": 0.5}, "q1": {}}, "usage": {}}"#), None);
        for renamed in [
            &br#"{"answers": {"x": {}, "q1": {}, "q2": {}}}"#[..],
            br#"{"answers": {"x": 1, "q1": 1, "q2": 1}}"#,
        ] {
            assert_eq!((wanted(renamed), read(renamed, &asked(), false)), (None, None));
        }
        assert_eq!(wanted(br#"{"answers": {"q0": {}, "q1": {}, "q2": {}, "q3": {}}}"#), None);
        assert_eq!([&b"{\"answers\":"[..], b"[]", b""].map(wanted), [None, None, None]);
    }
}
