//! Prewarm: one state or many, and what is said of each.

use std::time::Duration;

use actors::{Lane, ReadError, RejectReason, Tier};
use serde_json::{Value as Wire, json};

use super::{cost, places};
use crate::dialect::problem::FullStatus;
use crate::dialect::{Decoded, Dialect, FAULTS_MAX, RequestLimits, STATES_MAX, Undecoded};
use crate::error::{DecideError, Problem};
use crate::json::{Json, Limits};
use crate::service::{Prefixes, Prewarm, Prewarmed, States, Warmed};

fn decode(body: &Wire) -> Result<Decoded<Prewarm>, Undecoded> {
    let body = Json::parse(body.to_string().as_bytes(), Limits::default()).unwrap();
    Dialect::Systemone.prewarm(body, &RequestLimits::default())
}

fn faults(body: &Wire) -> Vec<(&'static str, String)> {
    places(&decode(body).unwrap_err().faults)
}

fn encode(prefixes: Prefixes, full: FullStatus) -> Wire {
    let prewarmed = Prewarmed { model: "m".to_owned(), prefixes, cost: cost(), state_key: None };
    serde_json::from_str(&Dialect::Systemone.prewarmed(&prewarmed, full)).unwrap()
}

fn warmed(tier: Tier, reused: bool, stored: bool) -> Warmed {
    let handle = Some("00ff".to_owned());
    Warmed { prompt_tokens: 17, reused, stored, tier, expires_at: Some(1_800_000_000), handle }
}

#[test]
fn one_state_or_a_list_of_states_is_read() {
    let one = decode(&json!({"state": {"a": 1}, "ttl_s": 60, "x_priority": "idle"})).unwrap();
    let States::One(state) = one.request.states else { panic!("one state was sent") };
    assert_eq!(state.compact(), r#"{"a":1}"#);
    assert_eq!(one.request.ttl, Some(Duration::from_mins(1)));
    assert_eq!((one.request.lane, one.request.wait), (Some(Lane::Idle), true));
    let many = decode(&json!({"states": ["a", {"b": 2}], "wait": false})).unwrap();
    let States::Many(states) = many.request.states else { panic!("a list was sent") };
    let texts: Vec<_> = states.iter().map(Json::compact).collect();
    assert_eq!(texts, [r#""a""#, r#"{"b":2}"#]);
    assert!(!many.request.wait);
    let list = decode(&json!({"state": ["a", "b"]})).unwrap();
    assert!(matches!(list.request.states, States::One(_)), "a list may be a state");
}

#[test]
fn what_a_decision_ignores_a_prewarm_ignores() {
    let fields = json!({"model": "jev-latest", "profile": "p", "instructions": "be brief",
                        "chat_template_kwargs": {"enable_thinking": true}, "state": "s"});
    let ignored = ["instructions", "chat_template_kwargs"];
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let prewarm = decode(&fields).unwrap();
    let mut decision = fields.clone();
    decision["questions"] = json!({"q": {"type": "noul"}});
    let decision = super::decode(&decision).unwrap();
    let profile = Some("p".to_owned());
    assert_eq!((&prewarm.request.profile, &decision.request.profile), (&profile, &profile));
    assert_eq!(sorted(prewarm.ignored.clone()), sorted(decision.ignored));
    assert_eq!(sorted(prewarm.ignored), sorted(ignored.map(str::to_owned).to_vec()));
}

#[test]
fn each_wrong_list_of_states_is_named() {
    for (body, code, path) in [
        (json!({}), "missing", "state"),
        (json!({"state": null}), "wrong_type", "state"),
        (json!({"states": null}), "wrong_type", "states"),
        (json!({"states": "a"}), "wrong_type", "states"),
        (json!({"states": {"a": 1}}), "wrong_type", "states"),
        (json!({"states": []}), "too_few", "states"),
        (json!({"states": vec!["a"; STATES_MAX + 1]}), "too_many", "states"),
        (json!({"states": ["a", null]}), "wrong_type", "states.1"),
        (json!({"state": "a", "states": ["b"]}), "duplicate_key", "states"),
    ] {
        assert_eq!(faults(&body), [(code, path.to_owned())], "{body}");
    }
    assert!(decode(&json!({"states": vec!["a"; STATES_MAX]})).is_ok());
    assert_eq!(faults(&json!({"states": vec![Wire::Null; STATES_MAX]})).len(), FAULTS_MAX);
}

#[test]
fn a_prewarm_answer_has_the_known_shape() {
    assert_eq!(
        encode(Prefixes::One(warmed(Tier::Exact, false, true)), FullStatus::default()),
        json!({"model": "m", "ok": true, "prompt_tokens": 17,
               "prefix": {"reused": false, "stored": true, "tier": "exact"},
               "expires_at": 1_800_000_000, "handle": "00ff"})
    );
    let off = encode(Prefixes::One(warmed(Tier::Off, false, false)), FullStatus::default());
    assert_eq!((&off["ok"], &off["prefix"]["tier"]), (&json!(false), &json!("off")));
    let pending = encode(Prefixes::One(warmed(Tier::Pending, false, false)), FullStatus::default());
    assert_eq!(pending["ok"], json!(true));
}

#[test]
fn several_states_are_answered_in_order_and_together() {
    let both = [warmed(Tier::Exact, true, false), warmed(Tier::Exact, false, true)];
    let body = encode(Prefixes::Many(both.map(Ok).to_vec()), FullStatus::default());
    assert_eq!(
        body,
        json!({"model": "m", "ok": true, "prompt_tokens": 34,
               "prefix": {"reused": false, "stored": true, "tier": "exact"},
               "prefixes": [
                   {"ok": true, "prompt_tokens": 17,
                    "prefix": {"reused": true, "stored": false, "tier": "exact"},
                    "expires_at": 1_800_000_000, "handle": "00ff"},
                   {"ok": true, "prompt_tokens": 17,
                    "prefix": {"reused": false, "stored": true, "tier": "exact"},
                    "expires_at": 1_800_000_000, "handle": "00ff"}]})
    );
    let one_off = [warmed(Tier::Exact, true, false), warmed(Tier::Off, false, false)];
    let body = encode(Prefixes::Many(one_off.map(Ok).to_vec()), FullStatus::default());
    assert_eq!((&body["ok"], &body["prefix"]["tier"]), (&json!(false), &json!("off")));
}

#[test]
fn a_state_that_failed_says_why_beside_those_that_did_not() {
    let retry_after = Duration::from_millis(1_500);
    let full = RejectReason::QueueFull { reads_waiting: 7, reads_max: 4, retry_after };
    let problem = Problem::new(vec!["states".into(), 2.into()], "too_long", "x".to_owned());
    let prefixes = vec![
        Ok(warmed(Tier::Exact, true, false)),
        Err(ReadError::Rejected(full).into()),
        Err(DecideError::Invalid(vec![problem])),
    ];
    let body = encode(Prefixes::Many(prefixes), FullStatus::ServiceUnavailable);
    assert_eq!((&body["ok"], &body["prompt_tokens"]), (&json!(false), &json!(17)));
    assert_eq!(body["prefix"], json!({"reused": false, "stored": false, "tier": "exact"}));
    assert_eq!(
        body["prefixes"][1],
        json!({"ok": false, "error": {
            "status": 503, "reason": "queue_full", "retry_after_ms": 1_500,
            "detail": {"error_type": "rate_limit_error",
                       "message": "7 reads wait, at most 4 may"}}})
    );
    assert_eq!(
        body["prefixes"][2]["error"],
        json!({"status": 422, "reason": "too_long",
               "detail": [{"loc": ["body", "states", 2], "msg": "x", "type": "too_long"}]})
    );
}
