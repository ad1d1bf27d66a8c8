//! Random decision sets: a state of any form and a few questions of any kind, from a seed.

use serde_json::{Map, Value, json};

use super::draw::Draw;

/// Words of states and options: common and rare ones, numbers, and other scripts.
const WORDS: [&str; 40] = [
    "the",
    "invoice",
    "of",
    "March",
    "was",
    "charged",
    "twice",
    "and",
    "no",
    "refund",
    "has",
    "come",
    "parcel",
    "late",
    "bearing",
    "temperature",
    "95",
    "degrees",
    "pump",
    "3",
    "customer",
    "asks",
    "why",
    "login",
    "fails",
    "since",
    "update",
    "7.3.1",
    "naïve",
    "Zürich",
    "東京",
    "отчёт",
    "😀",
    "{id:17}",
    "\"quoted\"",
    "a/b",
    "not",
    "angry",
    "yesterday",
    "antidisestablishmentarianism",
];

/// Tasks of questions.
const TASKS: [&str; 6] = [
    "Which team should handle this?",
    "Is a refund due?",
    "How urgent is it?",
    "What does the writer want?",
    "Is anything said about money?",
    "How sure is the writer?",
];

/// Words of a long state: about 800 tokens, many small chunks or one large one.
const LONG: usize = 400;

/// One request, and its state.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) state: Value,
    pub(super) request: Value,
}

impl Set {
    /// One with a state of `times` [`LONG`] words, and one question in one order.
    pub(super) fn long(draw: &mut Draw, times: usize) -> Self {
        let state = Value::String(text(draw, times * LONG));
        let mut question = question(draw);
        question["samples"] = 1.into();
        Self::of(state, &json!({ "only": question }))
    }

    /// One with a state of any form and one to three questions.
    pub(super) fn short(draw: &mut Draw) -> Self {
        let words = 24 + draw.below(56);
        let text = text(draw, words);
        let state = match draw.below(3) {
            0 => {
                json!({ "message": text, "tier": draw.pick(&WORDS), "number": draw.below(10_000) })
            }
            1 => json!([{ "role": "user", "content": text }, { "role": "agent", "content": "?" }]),
            _ => Value::String(text),
        };
        let count = 1 + draw.below(3);
        let questions: Map<_, _> = (0..count).map(|n| (format!("q{n}"), question(draw))).collect();
        Self::of(state, &Value::Object(questions))
    }

    /// The same questions about the same words the other way round: a state of the same length.
    pub(super) fn rival(&self) -> Value {
        let words = self.state.as_str().expect("a long state is a text").split(' ').rev();
        let mut request = self.request.clone();
        request["state"] = words.collect::<Vec<_>>().join(" ").into();
        request
    }

    fn of(state: Value, questions: &Value) -> Self {
        let request = json!({ "state": state, "questions": questions, "diagnostics": true });
        Self { state, request }
    }
}

fn text(draw: &mut Draw, words: usize) -> String {
    let words: Vec<_> = (0..words).map(|_| *draw.pick(&WORDS)).collect();
    words.join(" ")
}

fn question(draw: &mut Draw) -> Value {
    let (task, samples) = (*draw.pick(&TASKS), 1 + draw.below(2));
    let (kind, options) = (draw.below(3), 2 + draw.below(6));
    let texts: Vec<String> = (0..options).map(|n| format!("{n} {}", text(draw, 3))).collect();
    let (kind, criteria) = match kind {
        0 => ("noul", json!({ "true": texts[1], "false": texts[0] })),
        1 => {
            let option =
                |text: &String| (text.clone(), draw.pick(&[json!(null), json!("so")]).clone());
            ("choice", Value::Object(texts.iter().map(option).collect()))
        }
        _ => ("score", json!(texts)),
    };
    json!({ "type": kind, "instructions": task, "samples": samples, "criteria": criteria })
}
