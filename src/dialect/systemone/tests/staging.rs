//! Questions that wait for others, those that are asked for, and when `auto` reads on.

use serde_json::{Value as Wire, json};

use super::{decode, faults};
use crate::question::{Adaptive, Decision, Samples};

fn noul() -> Wire {
    json!({"type": "noul"})
}

fn waiting(ask_if: &Wire) -> Wire {
    let team = json!({"type": "choice", "criteria": ["billing", "infra"]});
    let refund = json!({"type": "noul", "ask_if": ask_if});
    json!({"state": "s", "questions": {"team": team, "refund": refund}})
}

fn accepted(body: &Wire) -> Decision {
    decode(body).unwrap().request
}

#[test]
fn a_condition_names_a_question_and_some_of_its_answers() {
    let decision = accepted(&waiting(&json!({"team": ["infra"]})));
    let condition = &decision.questions[1].ask_if[0];
    assert_eq!(
        (condition.question.as_str(), &condition.answers[..]),
        ("team", &["infra".to_owned()][..])
    );
    let mut body = waiting(&json!(null));
    body["questions"]["refund"]["x_ask_if"] = json!({"team": ["billing"]});
    body["questions"]["refund"].as_object_mut().unwrap().remove("ask_if");
    assert_eq!(accepted(&body).questions[1].ask_if[0].answers, ["billing"]);
}

#[test]
fn each_wrong_condition_is_named_with_its_place() {
    let at = "questions.refund.ask_if";
    for (ask_if, code, path) in [
        (json!([]), "ask_if_invalid", at.to_owned()),
        (json!({"team": []}), "ask_if_invalid", at.to_owned()),
        (json!({"team": "infra"}), "ask_if_invalid", at.to_owned()),
        (json!({"team": ["infra", true]}), "ask_if_invalid", format!("{at}.team.1")),
        (json!({"team": ["sales"]}), "ask_if_invalid", format!("{at}.team.0")),
        (json!({"nobody": ["yes"]}), "unknown_question", at.to_owned()),
        (json!({"refund": ["yes"]}), "unknown_question", at.to_owned()),
    ] {
        assert_eq!(faults(&waiting(&ask_if)), [(code, path)], "{ask_if}");
    }
    let mut circle = waiting(&json!({"team": ["infra"]}));
    circle["questions"]["team"]["ask_if"] = json!({"refund": ["yes"]});
    assert_eq!(faults(&circle), [("cycle", "questions".to_owned())]);
    let message = &decode(&circle).unwrap_err()[0].message;
    assert!(message.contains("\"team\", \"refund\""), "{message}");
}

#[test]
fn what_a_question_depends_on_counts_where_it_is_shown_the_answers() {
    let mut body = waiting(&json!(null));
    body["questions"]["refund"]["depends_on"] = json!(["team", "team"]);
    let decoded = decode(&body).unwrap();
    assert_eq!(decoded.ignored, ["questions.refund.depends_on"]);
    assert!(decoded.request.questions[1].depends_on.is_empty() && !decoded.request.stage_context);
    body["stage_context"] = json!(true);
    let decoded = decode(&body).unwrap();
    assert_eq!(decoded.ignored, Vec::<String>::new());
    assert!(decoded.request.stage_context);
    assert_eq!(decoded.request.questions[1].depends_on, ["team"]);
    body["questions"]["refund"]["depends_on"] = json!(["x"]);
    let at = "questions.refund.depends_on".to_owned();
    assert_eq!(faults(&body), [("unknown_question", at.clone())]);
    body["questions"]["refund"]["depends_on"] = json!([1]);
    assert_eq!(faults(&body), [("wrong_type", at)]);
}

#[test]
fn only_what_is_asked_for_is_read() {
    let mut body = waiting(&json!({"team": ["infra"]}));
    body["ask"] = json!(["team"]);
    let decision = accepted(&body);
    assert_eq!((decision.questions.len(), decision.questions[0].id.as_str()), (1, "team"));
    for (ask, code, path) in [
        (json!([]), "too_few", "ask"),
        (json!("team"), "wrong_type", "ask"),
        (json!(["team", "x"]), "unknown_question", "ask.1"),
        (json!(["refund"]), "ask_incomplete", "ask"),
    ] {
        body["ask"] = ask;
        assert_eq!(faults(&body), [(code, path.to_owned())]);
    }
}

#[test]
fn auto_adapts_where_the_request_says_when() {
    let samples = |fields: Wire| {
        let mut body = json!({"state": "s", "questions": {"q": noul()}});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        accepted(&body).samples
    };
    let adaptive =
        |entropy_max, orders_max| Some(Samples::Adaptive(Adaptive { entropy_max, orders_max }));
    assert_eq!(samples(json!({"samples": "auto"})), Some(Samples::Auto));
    assert_eq!(samples(json!({"samples": "auto", "auto_max": 3})), adaptive(0.1, 3));
    assert_eq!(samples(json!({"auto_threshold": 0.25})), adaptive(0.25, 4));
    let body = json!({"state": "s", "samples": 2, "x_auto_max": 3, "questions": {"q": noul()}});
    let decoded = decode(&body).unwrap();
    assert_eq!(
        (decoded.request.samples, decoded.ignored),
        (Some(Samples::Count(2)), vec!["auto_max".to_owned()])
    );
    let mut body = json!({"state": "s", "auto_max": 3, "questions": {"q": noul(), "r": noul()}});
    body["questions"]["q"]["samples"] = json!("auto");
    body["questions"]["r"]["samples"] = json!(1);
    let of =
        |decision: Decision| decision.questions.into_iter().map(|q| q.samples).collect::<Vec<_>>();
    assert_eq!(of(accepted(&body)), [adaptive(0.1, 3), Some(Samples::Count(1))]);
    for (field, value) in
        [("auto_max", json!(0)), ("auto_threshold", json!(-1)), ("auto_threshold", json!("x"))]
    {
        body[field] = value;
    }
    let codes = faults(&body);
    assert!(codes.iter().all(|(code, _)| *code == "samples_invalid") && codes.len() == 2);
}

#[test]
fn a_profile_is_a_name() {
    let body =
        |profile: Wire| json!({"state": "s", "profile": profile, "questions": {"q": noul()}});
    assert_eq!(accepted(&body(json!("fast"))).profile.as_deref(), Some("fast"));
    assert_eq!(accepted(&body(json!(null))).profile, None);
    assert_eq!(faults(&body(json!(3))), [("wrong_type", "profile".to_owned())]);
}
