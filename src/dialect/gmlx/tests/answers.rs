//! Responses, of decisions, prewarms and the list of models.

use std::collections::BTreeMap;
use std::time::Duration;

use actors::{Lane, Tier};
use serde_json::{Value as Wire, json};

use super::{accepted, asked, noul, parsed, recorded, refused};
use crate::dialect::problem::FullStatus;
use crate::dialect::{Dialect, Extras, RequestLimits};
use crate::error::DecideError;
use crate::question::answer::{Answer, Cost, Diagnostics, Learned, RowTokens, Value};
use crate::question::stages::{skipped, stages};
use crate::readout::confidence;
use crate::service::{Decided, ModelEntry, Prefixes, Prewarmed, Warmed};

fn answer(id: &str, value: Value) -> Answer {
    let diagnostics =
        Diagnostics { label_mass: Some(0.9), orders: 1, reads: 1, ..Diagnostics::default() };
    Answer {
        id: id.to_owned(),
        value,
        diagnostics,
        raw: Vec::new(),
        hidden: None,
        learned: Learned::default(),
        citations: None,
    }
}

fn cost() -> Cost {
    let time = Duration::from_millis(1);
    Cost {
        lane: Lane::Normal,
        input_tokens: 12,
        prompt_tokens: 100,
        computed_tokens: 60,
        cached_tokens: 40,
        prepare: time,
        queue_wait: time,
        state_wait: time,
        state_time: time,
        engine_wait: time,
        engine_time: time,
        steps_time: time,
        behind_registration: false,
        state_tokenisations: 1,
        rows: vec![RowTokens { prompt: 50, cached: 20 }; 2],
        prefix_tokens: 40,
        runs: 1,
    }
}

fn decided(answers: Vec<Answer>, stages: Vec<Vec<String>>) -> Decided {
    Decided {
        answers,
        cost: cost(),
        tasks: Vec::new(),
        model: "m".to_owned(),
        stages,
        reused: false,
        tier: Tier::Exact,
        state_text: None,
        state_key: None,
        served: Box::new(|| {}),
    }
}

fn encode(decided: &Decided) -> Wire {
    let extras = Extras { total: Duration::from_millis(250), ..Extras::default() };
    serde_json::from_str(&Dialect::Gmlx.decided(decided, &extras).unwrap()).unwrap()
}

/// Asks the recorded questions: billing is answered, infra is wanted.
#[test]
fn the_recorded_cascade_comes_out() {
    let recorded = recorded();
    let recorded = &recorded["stages"];
    let asked_if = |ask_if: Wire| json!({"type": "noul", "instructions": "x", "ask_if": ask_if});
    let decision = accepted(&asked(&json!({
        "team": {"type": "choice", "instructions": "x", "criteria": {"billing": "", "infra": ""}},
        "refund": asked_if(json!({"team": ["infra"]})),
        "amount": asked_if(json!({"refund": ["yes", "no"]})),
        "other": noul(),
    })));
    let probabilities = vec![0.971_513_137_200_066_3, 0.028_486_862_799_933_63];
    let mut values: BTreeMap<String, Value> = BTreeMap::from([
        ("other".to_owned(), Value::Noul { yes: 0.873_206_990_038_450_1 }),
        (
            "team".to_owned(),
            Value::Choice {
                chosen: 0,
                keys: vec!["billing".to_owned(), "infra".to_owned()],
                confidence: confidence::of_choice(&probabilities),
                probabilities,
            },
        ),
    ]);
    let mut read = Vec::new();
    for stage in stages(&decision.questions).unwrap() {
        let mut ids = Vec::new();
        for place in stage {
            let question = &decision.questions[place];
            match skipped(question, |id| values.get(id)) {
                Some(value) => drop(values.insert(question.id.clone(), value)),
                None => ids.push(question.id.clone()),
            }
        }
        read.extend((!ids.is_empty()).then_some(ids));
    }
    let answers = decision.questions.iter().map(|q| answer(&q.id, values[&q.id].clone()));
    let body = encode(&decided(answers.collect(), read));
    let mut expected = recorded["final"].clone();
    let found = body["answers"]["team"]["confidence"].as_f64().unwrap();
    assert!((found - expected["team"]["confidence"].as_f64().unwrap()).abs() < 1e-12);
    expected["team"]["confidence"] = json!(found);
    assert_eq!(body["answers"], expected);
    assert_eq!(body["diagnostics"]["stages"], recorded["stages"]);
    assert_eq!(body["diagnostics"]["skipped"], recorded["skipped"]);
    let order = body["answers"].as_object().unwrap().keys();
    assert!(order.eq(["team", "refund", "amount", "other"]));
}

#[test]
fn a_response_has_the_diagnostics_of_the_letter_readout() {
    let mut made =
        decided(vec![answer("q", Value::Noul { yes: 0.25 })], vec![vec!["q".to_owned()]]);
    assert_eq!(
        encode(&made),
        json!({
            "model": "m",
            "answers": {"q": {"type": "noul", "noul": 0.25}},
            "usage": {"input_tokens": 100, "output_tokens": 0},
            "diagnostics": {
                "engine": "docket",
                "readout": "letters",
                "stages": [["q"]],
                "skipped": {},
                "orderings": 1,
                "prefix": {"tokens": 40, "reused": false, "stored": true, "tier": "exact"},
                "passes": 2,
                "prompt_tokens": 100,
                "computed_tokens": 60,
                "path": "logits",
                "timing": {"total_ms": 250.0, "reads": 1},
            },
        })
    );
    made.answers[0].diagnostics.label_mass = None;
    made.reused = true;
    let diagnostics = &encode(&made)["diagnostics"];
    assert_eq!(diagnostics["path"], "rows");
    assert_eq!(diagnostics["prefix"]["stored"], false, "it was there already");
    (made.reused, made.tier) = (false, Tier::Off);
    let prefix = &encode(&made)["diagnostics"]["prefix"];
    assert_eq!(*prefix, json!({"tokens": 40, "reused": false, "stored": false, "tier": "off"}));
}

#[test]
fn two_levels_of_one_name_are_two_levels() {
    let probabilities = vec![0.5, 0.25, 0.25];
    let value = Value::Score {
        mean: 0.75,
        legend: ["same", "same", "other"].map(str::to_owned).to_vec(),
        confidence: confidence::of_score(&probabilities),
        probabilities,
    };
    let body = encode(&decided(vec![answer("s", value)], Vec::new()));
    let answer = &body["answers"]["s"];
    let recorded = recorded();
    assert_eq!(answer["legend"], recorded["dup_levels"]["s"]["legend"]);
    assert_eq!(answer["probabilities"], json!({"0": 0.5, "1": 0.25, "2": 0.25}));
    assert!(matches!(encode_number(f64::NAN), Err(DecideError::Internal { .. })));
}

fn encode_number(yes: f64) -> Result<String, DecideError> {
    let made = decided(vec![answer("q", Value::Noul { yes })], Vec::new());
    Dialect::Gmlx.decided(&made, &Extras::default())
}

#[test]
fn a_prewarm_takes_state_model_and_profile() {
    let prewarm = |body: &Wire| Dialect::Gmlx.prewarm(parsed(body), &RequestLimits::default());
    let body =
        json!({"model": "openjev@fast", "state": "s", "questions": {}, "ttl_s": 60, "wait": false});
    let decoded = prewarm(&body).unwrap();
    assert_eq!(decoded.request.profile.as_deref(), Some("fast"));
    assert_eq!(decoded.request.ttl, Some(Duration::from_mins(1)));
    assert!(decoded.request.wait);
    assert_eq!(decoded.ignored, ["questions", "wait"]);
    let refused = |body: &Wire| refused(DecideError::Invalid(prewarm(body).unwrap_err().faults));
    assert_eq!(refused(&json!({})).2, "state: required");
    assert_eq!(refused(&json!({"state": null})).0, 422);
    assert_eq!(refused(&json!({"state": "s", "images": ["x"]})).0, 400);
    assert_eq!(refused(&json!({"state": {"image": "data:image/png"}})).0, 400);
    assert_eq!(refused(&json!("s")).0, 400);
}

#[test]
fn a_prewarm_is_answered_in_gmlxs_shape() {
    let warmed = Warmed {
        prompt_tokens: 17,
        reused: false,
        stored: true,
        tier: Tier::Exact,
        expires_at: Some(1),
        handle: Some("beef".to_owned()),
    };
    let of = |warmed| {
        let prefixes = Prefixes::One(warmed);
        let (model, state_key) = ("openjev".to_owned(), None);
        let prewarmed = Prewarmed { model, prefixes, cost: cost(), state_key };
        let text = Dialect::Gmlx.prewarmed(&prewarmed, FullStatus::default());
        serde_json::from_str::<Wire>(&text).unwrap()
    };
    let prefix = json!({"reused": false, "stored": true, "tier": "exact"});
    let expected = json!({"model": "openjev", "ok": true, "prompt_tokens": 17, "prefix": prefix});
    assert_eq!(of(warmed.clone()), expected);
    let off = of(Warmed { stored: false, tier: Tier::Off, ..warmed });
    assert_eq!((&off["ok"], &off["prefix"]["tier"]), (&json!(false), &json!("off")));
}

#[test]
fn models_are_listed_as_openai_lists_them() {
    let entry = ModelEntry {
        name: "openjev".to_owned(),
        description: "x".to_owned(),
        release_date: String::new(),
        precision: None,
        context_tokens: None,
        is_readable: true,
    };
    let list: Wire = serde_json::from_str(&Dialect::Gmlx.models(&[entry]).unwrap()).unwrap();
    let model = json!({"id": "openjev", "object": "model", "created": 0, "owned_by": "docket"});
    assert_eq!(list, json!({"object": "list", "data": [model]}));
}
