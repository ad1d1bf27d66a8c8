//! Responses of the `decisio` dialect.

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Value as Wire, json};

use crate::dialect::Extras;
use crate::dialect::shapes::{self, Shape, shape};
use crate::error::DecideError;
use crate::question::answer::{Answer, Learned};
use crate::service::Decided;

/// See [`crate::dialect::Dialect::decided`].
pub(in crate::dialect) fn decided(
    decided: &Decided,
    extras: &Extras,
) -> Result<String, DecideError> {
    shapes::check_finite(&decided.answers)?;
    let response = Response {
        model: &decided.model,
        answers: Answers { answers: &decided.answers, with_images: extras.with_images },
        usage: Usage {
            input_tokens: decided.cost.input_tokens,
            output_tokens: decided.answers.len(),
        },
        decisio_debug: extras.debug.as_ref().map(|_| debug(&decided.answers)),
    };
    shapes::text(&response)
}

#[derive(Serialize)]
struct Response<'a> {
    model: &'a str,
    answers: Answers<'a>,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    decisio_debug: Option<Wire>,
}

#[derive(Serialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: usize,
}

struct Answers<'a> {
    answers: &'a [Answer],
    with_images: bool,
}

impl Serialize for Answers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.answers.len()))?;
        for answer in self.answers {
            map.serialize_entry(&answer.id, &body(answer, self.with_images))?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    value: Shape<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_probability: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abstained: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certified_reason: Option<&'a str>,
}

fn body(answer: &Answer, with_images: bool) -> Body<'_> {
    let Learned { abstention, certified } = &answer.learned;
    // A request in the form of the images extension has these fields whatever was registered.
    let unknown = abstention.map(|a| a.unknown).or(with_images.then_some(0.0));
    let abstained = abstention.map(|a| a.abstained).or(with_images.then_some(false));
    Body {
        value: shape(&answer.value),
        unknown_probability: unknown,
        abstained,
        certified: certified.as_ref().map(|certified| certified.is_certified),
        certified_reason: certified.as_ref().and_then(|certified| certified.reason.as_deref()),
    }
}

/// What was read, before anything was made of it.
fn debug(answers: &[Answer]) -> Wire {
    let one = |answer: &Answer| {
        let mut entry = json!({
            "probabilities": answer.raw,
            "label_mass": answer.diagnostics.label_mass,
            "argmax_is_label": answer.diagnostics.argmax_is_label,
            "orders": answer.diagnostics.orders,
            "reads": answer.diagnostics.reads,
        });
        if let Some(hidden) = &answer.hidden {
            entry["hidden"] = json!(hidden);
        }
        (answer.id.clone(), entry)
    };
    Wire::Object(answers.iter().map(one).collect())
}
