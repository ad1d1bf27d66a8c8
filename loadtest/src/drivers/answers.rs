//! The answers of System One, its dialects and `OpenAI`'s decisions, read as distributions.

use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

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

/// How many answers a body has; none where it is no body of answers.
pub(super) fn count(body: &[u8]) -> Option<usize> {
    #[derive(Deserialize)]
    struct Body {
        answers: Entries<IgnoredAny>,
    }
    serde_json::from_slice::<Body>(body).ok().map(|body| body.answers.0.len())
}

/// `usage.input_tokens` of a body, where it has them.
pub(super) fn input_tokens(body: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Body {
        usage: Usage,
    }
    #[derive(Deserialize)]
    struct Usage {
        input_tokens: u64,
    }
    serde_json::from_slice::<Body>(body).ok().map(|body| body.usage.input_tokens)
}

/// A distribution for each question; an empty one where there is none to be read. None where an
/// answer is missing, or there are more.
pub(super) fn read(body: &[u8], asked: &[Rc<Question>]) -> Option<Vec<Vec<f64>>> {
    #[derive(Deserialize)]
    struct Body {
        answers: Entries<Option<One>>,
    }
    let Entries(entries, _) = serde_json::from_slice::<Body>(body).ok()?.answers;
    if entries.len() != asked.len() {
        return None;
    }
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

    const EXPECTED: [&[f64]; 3] = [&[0.91], &[0.88, 0.12], &[0.05, 0.1, 0.85]];

    #[test]
    fn a_systemone_body_gives_a_distribution_a_question() {
        let body = br#"{"model": "m", "answers": {
            "q0": {"type": "noul", "noul": 0.91},
            "q1": {"type": "choice", "choice": "b", "confidence": 0.8, "probabilities": {"b": 0.88, "a": 0.12}},
            "q2": {"type": "score", "score": 1.8, "legend": {"0": "calm"}, "probabilities": {"0": 0.05, "1": 0.1, "2": 0.85}}},
            "usage": {"input_tokens": 93, "output_tokens": 0}}"#;
        assert_eq!(read(body, &asked()).unwrap(), EXPECTED);
        assert_eq!((count(body), input_tokens(body)), (Some(3), Some(93)));
    }

    #[test]
    fn entries_are_found_in_any_order() {
        let body = br#"{"answers": {
            "q2": {"probabilities": {"furious": 0.85, "calm": 0.05, "cross": 0.1}},
            "q0": {"probabilities": {"no": 0.09, "yes": 0.91}},
            "q1": {"probabilities": {"a": 0.12, "b": 0.88}}}}"#;
        assert_eq!(read(body, &asked()).unwrap(), EXPECTED);
    }

    #[test]
    fn a_list_of_answers_is_in_the_order_asked() {
        let body = br#"{"answers": [
            {"type": "predicate", "name": null, "probability": 0.91},
            {"type": "choice", "probabilities": [{"value": "b", "probability": 0.88}, {"value": "a", "probability": 0.12}]},
            {"type": "score", "probabilities": [{"value": 0, "label": "calm", "probability": 0.05},
                {"value": 1, "probability": 0.1}, {"value": 2, "probability": 0.85}]}]}"#;
        assert_eq!(read(body, &asked()).unwrap(), EXPECTED);
        assert_eq!(count(body), Some(3));
    }

    #[test]
    fn what_has_no_distribution_is_empty() {
        let body =
            br#"{"answers": {"q0": null, "q1": {"probabilities": {"b": 1}}, "q2": {"noul": 0.5}}}"#;
        assert_eq!(read(body, &asked()).unwrap(), [[0.0; 0]; 3]);
    }

    #[test]
    fn an_answer_to_every_question_is_wanted() {
        let body = br#"{"answers":{"q0":{"noul":0.5},"q1":{}},"usage":{}}"#;
        assert_eq!((read(body, &asked()), count(body), input_tokens(body)), (None, Some(2), None));
        let other = br#"{"answers":{"q0":{},"q1":{},"q3":{}}}"#;
        assert_eq!(read(other, &asked()), None);
        assert_eq!((read(b"{\"answers\":", &asked()), count(b"[]")), (None, None));
    }
}
