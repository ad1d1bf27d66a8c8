//! The generator: random numbers, slots, forms, themes, and the published cases.

use crate::devset;
use crate::forms::{Body, render};
use crate::random::Random;
use crate::slots::Slots;
use crate::themes::{choice, noul, score};

#[test]
fn the_stream_is_the_published_one() {
    // First output of SplitMix64 for seed 0, from its authors' reference program.
    assert_eq!(Random::new(0).next(), 0xe220_a839_7b1d_cdaf);
}

#[test]
fn a_shuffle_loses_nothing() {
    let mut items: Vec<usize> = (0..50).collect();
    Random::new(7).shuffle(&mut items);
    assert_ne!(items, (0..50).collect::<Vec<_>>());
    items.sort_unstable();
    assert_eq!(items, (0..50).collect::<Vec<_>>());
}

#[test]
fn a_slot_has_one_value_and_a_bracket_gives_one_part() {
    let mut random = Random::new(1);
    let slots = Slots::draw(&mut random);
    let text = slots.fill("{person} and {person} [like|love] {other}", &mut random);
    let person = slots.value("person");
    let ends: Vec<String> = ["like", "love"]
        .map(|verb| format!("{person} and {person} {verb} {}", slots.value("other")))
        .into();
    assert!(ends.contains(&text), "{text}");
}

#[test]
fn every_form_shows_every_sentence() {
    let mut random = Random::new(3);
    let slots = Slots::draw(&mut random);
    let sentences = ["Opening one.", "Middle two.", "Closing three."].map(str::to_owned);
    let body = Body { subject: "Subject".to_owned(), sentences: sentences.clone().into() };
    for form in ["note", "mail", "chat", "log", "review", "ticket", "order"] {
        let state = format!("{:?}", render(form, &body, &slots, &mut random));
        assert!(sentences.iter().all(|sentence| state.contains(sentence)), "{form}: {state}");
    }
}

#[test]
fn every_theme_is_complete() {
    for theme in choice().iter().chain(&score()).chain(&noul()) {
        let name = &theme.name;
        assert!(!theme.forms.is_empty() && !theme.asks.is_empty(), "{name}");
        assert!(!theme.opens.is_empty() && !theme.closes.is_empty(), "{name}");
        assert!(theme.answers.iter().all(|answer| answer.evidence.len() >= 2), "{name}");
    }
}

#[test]
fn choices_have_six_options_that_can_be_denied() {
    for theme in choice() {
        assert_eq!(theme.answers.len(), 6, "{}", theme.name);
        for answer in &theme.answers {
            assert!(!answer.denials.is_empty() && !answer.description.is_empty());
        }
    }
}

#[test]
fn scores_have_four_themes_of_each_length_and_nouls_five_lines_a_side() {
    for levels in 3..=5 {
        assert_eq!(score().iter().filter(|t| t.answers.len() == levels).count(), 4);
    }
    for theme in noul() {
        assert!(theme.answers.len() == 2, "{}", theme.name);
        assert!(theme.answers.iter().all(|a| a.evidence.len() == 5), "{}", theme.name);
        assert!(theme.meanings.is_none_or(|[no, _]| !no.is_empty()), "{}", theme.name);
    }
}

#[test]
fn each_kind_of_line_is_mapped() {
    let line = |kind: &str, criteria: &str, gold: &str| {
        format!(
            r#"{{"id":"x","type":"{kind}","state":"s","instructions":"i",
            "criteria":{criteria},"gold":{gold},"note":"ignored"}}"#
        )
    };
    let choice = devset::case(&line("choice", r#"{"b":"B","a":"A","c":"C"}"#, r#""a""#)).unwrap();
    assert_eq!((choice.gold, choice.question.kind.options()), (1, 3));
    let noul = devset::case(&line("noul", r#"{"true":"T","false":"F"}"#, "true")).unwrap();
    assert_eq!(noul.gold, 1);
    let score = devset::case(&line("score", r#"["low","high"]"#, "0")).unwrap();
    assert_eq!((score.id.as_str(), score.gold), ("dev-x", 0));
}

#[test]
fn a_line_whose_answer_is_none_of_its_own_is_refused() {
    let line = r#"{"id":"x","type":"score","state":"s","instructions":"i",
        "criteria":["low","high"],"gold":2}"#;
    assert!(devset::case(line).is_none());
}
