//! Bodies that nobody would send: each is decoded, or refused in the dialect's shape.

use serde_json::{Value as Wire, json};

use crate::dialect::problem::{Fault, FullStatus};
use crate::dialect::{Dialect, RequestLimits, Undecoded};
use crate::error::DecideError;
use crate::json::{Json, Limits};

const CASES: u64 = 10_000;

/// Requests and their answers, recorded beside the tests of the binary.
const VECTORS: [&str; 3] = [
    include_str!("../../../tests/conformance/data/vllm/answers.json"),
    include_str!("../../../tests/conformance/data/vllm/form.json"),
    include_str!("../../../tests/conformance/data/vllm/sense.json"),
];

/// A small generator (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }
}

fn strange(random: &mut Random) -> Wire {
    let all = [
        json!(null),
        json!(true),
        json!(-1e300),
        json!(0),
        json!(1.5),
        json!(""),
        json!("\u{0}\u{1f600}'\"\\"),
        json!("x".repeat(300)),
        json!([]),
        json!([null, {"a": [1]}]),
        json!({}),
        json!({"": {"type": "score", "criteria": [1, 1.0, true]}}),
        json!({"type": "choice", "criteria": {"": null, "a": {"b": []}}}),
        json!({"true": [], "false": {}}),
    ];
    let at = random.below(all.len());
    all[at].clone()
}

/// Changes a value at a random place.
fn mutate(value: &mut Wire, random: &mut Random) {
    let stays = random.below(4) > 0;
    match value {
        Wire::Object(members) if stays && !members.is_empty() => {
            let keys: Vec<String> = members.keys().cloned().collect();
            let key = keys[random.below(keys.len())].clone();
            match random.below(6) {
                0 => {
                    members.remove(&key);
                }
                1 => {
                    members.insert(format!("{key}x"), strange(random));
                }
                _ => mutate(&mut members[&key], random),
            }
        }
        Wire::Array(items) if stays && !items.is_empty() => {
            let at = random.below(items.len());
            mutate(&mut items[at], random);
        }
        Wire::Null
        | Wire::Bool(_)
        | Wire::Number(_)
        | Wire::String(_)
        | Wire::Array(_)
        | Wire::Object(_) => *value = strange(random),
    }
}

/// The text, with a few bytes changed now and then.
fn damaged(text: String, random: &mut Random) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    if random.below(4) == 0 {
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = u8::try_from(random.below(256)).unwrap();
        }
        bytes.truncate(bytes.len() - random.below(3).min(bytes.len()));
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<(), DecideError> {
    let body = Json::parse(bytes, Limits::default());
    let body = body.map_err(|problem| DecideError::Invalid(vec![problem]))?;
    let decoded = Dialect::Vllm.decision(body, &RequestLimits::default());
    decoded.map(|_| ()).map_err(|Undecoded { faults, .. }| DecideError::Invalid(faults))
}

#[test]
fn whatever_is_sent_is_decoded_or_refused_with_400() {
    let vectors = VECTORS.map(|text| serde_json::from_str::<Vec<Wire>>(text).unwrap()).concat();
    let bodies: Vec<&Wire> =
        vectors.iter().map(|vector| &vector["request"]["body"]).filter(|b| !b.is_null()).collect();
    assert!(bodies.len() >= 40);
    let mut random = Random(6);
    let mut accepted = 0;
    for case in 0..CASES {
        let mut body = bodies[random.below(bodies.len())].clone();
        for _ in 0..=random.below(3) {
            mutate(&mut body, &mut random);
        }
        let bytes = damaged(body.to_string(), &mut random);
        let Err(error) = decode(&bytes) else {
            accepted += 1;
            continue;
        };
        let refusal = Dialect::Vllm.refusal(&Fault::Decide(error), FullStatus::default());
        let told: Wire = serde_json::from_str(&refusal.body).unwrap();
        let told = &told["error"];
        assert_eq!(refusal.status, 400, "case {case}: {told}");
        assert!(told["message"].as_str().is_some_and(|text| !text.is_empty()), "case {case}");
        assert!(["BadRequestError", "Bad Request"].iter().any(|kind| told["type"] == *kind));
        assert_eq!(told["code"], 400);
        assert!(refusal.body.len() < 10_000, "case {case}: {} bytes", refusal.body.len());
    }
    assert!((500..9_500).contains(&accepted), "{accepted} of {CASES} accepted");
}
