//! The comparison as JSON.

use serde_json::{Value, json};

use super::Comparison;
use super::agreement::Agreement;
use super::ratios::Ratio;
use super::runs::Run;

impl Comparison {
    /// The whole comparison.
    pub(super) fn json(&self) -> Value {
        let files = |runs: &[Run]| runs.iter().map(|run| run.file.clone()).collect::<Value>();
        json!({
            "a": files(&self.a),
            "b": files(&self.b),
            "work": self.work.words,
            "same_work": self.work.is_same(),
            "differences": self.work.differences,
            "measures": self.ratios.iter().map(measure).collect::<Value>(),
            "answers": answers(&self.answers),
            "answers_among_a": answers(&self.answers_noise),
        })
    }
}

fn measure(ratio: &Ratio) -> Value {
    json!({
        "name": ratio.measure.name,
        "a": ratio.a,
        "b": ratio.b,
        "ratio": ratio.median,
        "ratio_range": ratio.range,
        // An infinite end is null.
        "ratio_range_among_a": ratio.noise,
        "meaning": ratio.meaning().as_str(),
    })
}

fn answers(agreement: &Agreement) -> Value {
    json!({
        "questions": agreement.questions,
        "same_top_share": agreement.top_share(),
        "dp_mean": agreement.dp_mean(),
        "dp_max": (agreement.questions > 0).then_some(agreement.dp_max),
        "unlike": agreement.unlike,
    })
}
