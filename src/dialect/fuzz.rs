//! Ten thousand damaged requests of a dialect: none may be more than the caller's fault, and each is
//! told so in the dialect's shape.
//!
//! Method: the bodies of the dialect's vectors, with one to three values, names or bytes changed.

use std::path::Path;

use serde_json::{Map, Value as Wire, json};

use super::problem::{Fault, FullStatus};
use super::{Dialect, RequestLimits};
use crate::error::DecideError;
use crate::json::{Json, Limits};

/// Bodies tried of each dialect.
const CASES: usize = 10_000;

/// Longest body that is damaged: what is longer tests limits of size.
const BODY_BYTES_MAX: usize = 1_000;

/// A seeded generator (xorshift64*), and what it puts where other values were.
struct Random {
    seed: u64,
    values: Vec<Wire>,
}

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        let mixed = self.seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(mixed).unwrap() % bound
    }

    fn value(&mut self) -> Wire {
        let index = self.below(self.values.len());
        self.values[index].clone()
    }
}

fn bodies(folder: &str) -> Vec<Wire> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/data").join(folder);
    let mut bodies = Vec::new();
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let file: Wire = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let vectors = file.as_array().or(file["vectors"].as_array()).cloned().unwrap_or_default();
        bodies.extend(vectors.iter().map(|vector| vector["request"]["body"].clone()));
    }
    bodies.retain(|body| body.is_object() && body.to_string().len() < BODY_BYTES_MAX);
    assert!(bodies.len() > 20, "{folder}: {} bodies", bodies.len());
    bodies
}

/// Values to put where other ones were.
fn values() -> Vec<Wire> {
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0.5),
        json!(u64::MAX),
        json!(""),
        json!(" \u{0}\u{202e}"),
        json!("x".repeat(1_000)),
        json!([]),
        json!([null, "a", "a", {}]),
        json!({}),
        json!({"": null, "type": "noul", "url": 1}),
        deep,
    ]
}

/// Changes one value or name somewhere in `body`.
fn change(body: &mut Wire, random: &mut Random) {
    match body {
        Wire::Object(members) if !members.is_empty() && random.below(5) > 0 => {
            let index = random.below(members.len());
            let name = members.keys().nth(index).unwrap().clone();
            match random.below(6) {
                0 => drop(members.remove(&name)),
                1 => rename(members, &name),
                _ => change(&mut members[&name], random),
            }
        }
        Wire::Array(items) if !items.is_empty() && random.below(5) > 0 => {
            let index = random.below(items.len());
            match random.below(6) {
                0 => drop(items.remove(index)),
                1 => items.push(items[index].clone()),
                _ => change(&mut items[index], random),
            }
        }
        Wire::Null
        | Wire::Bool(_)
        | Wire::Number(_)
        | Wire::String(_)
        | Wire::Array(_)
        | Wire::Object(_) => *body = random.value(),
    }
}

fn rename(members: &mut Map<String, Wire>, name: &str) {
    let value = members.remove(name).unwrap();
    members.insert(format!("{name}s"), value);
}

/// The text with a few bytes changed, half of the time.
fn text(body: &Wire, random: &mut Random) -> Vec<u8> {
    let mut text = body.to_string().into_bytes();
    if random.below(4) == 0 {
        for _ in 0..=random.below(3) {
            let at = random.below(text.len());
            text[at] = u8::try_from(random.below(256)).unwrap();
        }
    }
    text
}

/// Decodes damaged bodies; `check` sees the body of every refusal.
fn fuzz(dialect: Dialect, folder: &str, check: fn(&Wire)) {
    let bodies = bodies(folder);
    let mut random = Random { seed: 0x9E37_79B9_7F4A_7C15, values: values() };
    let mut refused = 0;
    for case in 0..CASES {
        let mut body = bodies[case % bodies.len()].clone();
        for _ in 0..=random.below(3) {
            change(&mut body, &mut random);
        }
        let text = text(&body, &mut random);
        let decoded = Json::parse(&text, Limits::default())
            .map_err(|problem| vec![problem])
            .and_then(|json| {
                dialect.decision(json, &RequestLimits::default()).map_err(|other| other.faults)
            });
        let Err(faults) = decoded else { continue };
        let fault = Fault::from(DecideError::Invalid(faults));
        let refusal = dialect.refusal(&fault, FullStatus::default());
        assert!((400..500).contains(&refusal.status), "{refusal:?}");
        assert!(refusal.body.len() < 20_000, "{} bytes of refusal", refusal.body.len());
        check(&serde_json::from_str(&refusal.body).unwrap());
        refused += 1;
    }
    assert!((CASES / 10..CASES).contains(&refused), "{refused} of {CASES} refused");
}

#[test]
fn ten_thousand_damaged_requests_of_systemone_are_told_in_its_shape() {
    fuzz(Dialect::Systemone, "gmlx", |body| {
        for entry in body["detail"].as_array().expect("a list of faults") {
            assert!(entry["loc"].is_array() && entry["msg"].is_string(), "{body}");
            assert!(entry["type"].is_string(), "{body}");
        }
    });
}

#[test]
fn ten_thousand_damaged_requests_of_decisio_are_told_in_its_shape() {
    fuzz(Dialect::Decisio, "gmlx", |body| {
        let detail = &body["detail"];
        let is_entry = |entry: &Wire| entry["loc"].is_array() && entry["type"].is_string();
        let is_list = detail.as_array().is_some_and(|entries| entries.iter().all(is_entry));
        assert!(detail.is_string() || is_list, "{body}");
    });
}

#[test]
fn ten_thousand_damaged_requests_of_self_are_told_in_its_shape() {
    fuzz(Dialect::SelfServe, "self", |body| {
        let error = &body["error"];
        assert!(error["type"].is_string() && error["message"].is_string(), "{body}");
        assert_eq!(error.as_object().map(Map::len), Some(2), "{body}");
    });
}

#[test]
fn ten_thousand_damaged_requests_of_openai_are_told_in_its_shape() {
    fuzz(Dialect::Openai, "openai", |body| {
        let error = &body["error"];
        assert!(error["type"].is_string() && error["message"].is_string(), "{body}");
        assert!(error["param"].is_string() || error["param"].is_null(), "{body}");
        assert!(error["code"].is_string(), "{body}");
        assert_eq!(error.as_object().map(Map::len), Some(4), "{body}");
    });
}
