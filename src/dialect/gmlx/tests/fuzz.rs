//! Damaged bodies: whatever is sent, the answer is a refusal in this dialect's shape or a decision.

use serde_json::{Map, Value as Wire, json};

use super::{Dialect, FullStatus, Json, Limits, RequestLimits, sent};
use crate::error::DecideError;

/// Bodies that are tried.
const BODIES: usize = 10_000;

/// Longest refusal: what was sent is repeated in part only.
const REFUSAL_BYTES_MAX: usize = 8 << 10;

/// A linear congruential generator, so that a failure comes again (Knuth's MMIX constants).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit.max(1)
    }

    /// A value that fields are not made for, or one that is near to what they are.
    fn value(&mut self) -> Wire {
        let values = [
            json!(null),
            json!(true),
            json!(-1),
            json!(1e300),
            json!(4.0),
            json!("auto"),
            json!("é\n:😀"),
            json!("x".repeat(3_000)),
            json!([]),
            json!({}),
            json!(["yes", 1, null]),
            json!({"a": ["yes"], "q": [[]]}),
            json!({"type": "score", "instructions": "x", "criteria": ["a", "a", null]}),
        ];
        values[self.below(values.len())].clone()
    }

    /// Changes one value somewhere inside.
    fn change(&mut self, value: &mut Wire) {
        let goes_on = self.below(4) > 0;
        if let Wire::Object(members) = value
            && goes_on
            && !members.is_empty()
        {
            return self.change_members(members);
        }
        if let Wire::Array(items) = value
            && goes_on
            && !items.is_empty()
        {
            let at = self.below(items.len());
            return self.change(&mut items[at]);
        }
        *value = self.value();
    }

    fn change_members(&mut self, members: &mut Map<String, Wire>) {
        let at = self.below(members.len());
        let Some(key) = members.keys().nth(at).cloned() else { return };
        match self.below(8) {
            0 => drop(members.remove(&key)),
            1 => {
                let fields = [
                    "ask",
                    "ask_if",
                    "samples",
                    "auto_max",
                    "auto_threshold",
                    "images",
                    "profile",
                    "a:b",
                    "",
                ];
                let field = fields[self.below(fields.len())];
                let value = self.value();
                members.insert(field.to_owned(), value);
            }
            _ => members.get_mut(&key).into_iter().for_each(|value| self.change(value)),
        }
    }

    /// Changes a byte or two of a text.
    fn damage(&mut self, text: &mut [u8]) {
        for _ in 0..=self.below(2) {
            let at = self.below(text.len());
            text[at] = b"{}[]\",:\\\x00\xff0u"[self.below(12)];
        }
    }
}

#[test]
fn damaged_bodies_are_refused_in_gmlxs_shape_and_never_as_our_fault() {
    let bodies: Vec<Wire> = sent().into_values().collect();
    let limits = RequestLimits::default();
    let mut draw = Draw(7);
    let mut refused = 0;
    for _ in 0..BODIES {
        let mut body = bodies[draw.below(bodies.len())].clone();
        for _ in 0..=draw.below(3) {
            draw.change(&mut body);
        }
        let mut text = body.to_string().into_bytes();
        if draw.below(5) == 0 {
            draw.damage(&mut text);
        }
        let decoded = Json::parse(&text, Limits::default()).map_err(|problem| vec![problem]);
        let decoded = decoded.and_then(|json| {
            let prewarm = Dialect::Gmlx.prewarm(json.clone(), &limits);
            let decision = Dialect::Gmlx.decision(json, &limits);
            decision.map(|_| ()).and(prewarm.map(|_| ())).map_err(|undecoded| undecoded.faults)
        });
        let Err(faults) = decoded else { continue };
        refused += 1;
        let fault = DecideError::Invalid(faults).into();
        let refusal = Dialect::Gmlx.refusal(&fault, FullStatus::default());
        let shown = String::from_utf8_lossy(&text);
        assert!([400, 422].contains(&refusal.status), "{}: {shown}", refusal.status);
        assert!(refusal.body.len() <= REFUSAL_BYTES_MAX, "{} bytes: {shown}", refusal.body.len());
        let body: Wire = serde_json::from_str(&refusal.body).unwrap();
        assert!(
            body["error"]["type"].is_string() && body["error"]["message"].is_string(),
            "{body}"
        );
    }
    assert!((BODIES / 4..BODIES).contains(&refused), "{refused} were refused");
}
