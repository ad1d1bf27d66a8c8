//! Under what a task holds: the model, the layout, in how many orders questions are read, and the
//! temperatures, by which thresholds were found.

use serde_json::json;

use crate::prompt::Prompter;
use crate::prompt::layout::{Layout, PerKind};

/// How questions are shown and read in one manner.
#[derive(Debug, Clone)]
pub struct Rendering {
    /// The layout.
    pub layout: Layout,
    /// A JSON text; a task that was fitted under another one is not applied.
    pub fingerprint: String,
}

impl Rendering {
    /// * `orders`: in how many a question is read that does not say it itself.
    /// * `served_name`: the model's name in answers.
    /// * `model`: identity of model, weights and precision.
    pub fn new(
        prompter: &Prompter,
        orders: PerKind<u32>,
        (served_name, model): (&str, &str),
    ) -> Self {
        let temperature = prompter.profile().temperature;
        let fingerprint = json!({
            "layout": prompter.layout_id(),
            "model": model,
            "orders": [orders.noul, orders.choice, orders.score],
            "served_name": served_name,
            "temperature": [temperature.noul, temperature.choice, temperature.score],
        });
        Self { layout: *prompter.layout(), fingerprint: fingerprint.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::prompt::layout::{Profile, profile_for};
    use crate::prompt::tokens::bytes::ByteTokenizer;

    #[test]
    fn a_fingerprint_is_of_all_under_which_a_threshold_was_found() {
        let of = |choice: f64, orders: u32, (served, model): (&str, &str)| {
            let profile = profile_for("fake", None);
            let temperature = PerKind { choice, ..profile.temperature };
            let (bytes, facts) = (Arc::new(ByteTokenizer::new()), ByteTokenizer::facts());
            let profile = Profile { temperature, ..profile };
            let prompter = Prompter::new(bytes, &facts, profile, "model").unwrap();
            let orders = PerKind { noul: 1, choice: orders, score: 1 };
            Rendering::new(&prompter, orders, (served, model)).fingerprint
        };
        let own = of(1.0, 1, ("name", "weights"));
        assert_eq!(own, of(1.0, 1, ("name", "weights")));
        for other in [
            of(0.5, 1, ("name", "weights")),
            of(1.0, 2, ("name", "weights")),
            of(1.0, 1, ("other", "weights")),
            of(1.0, 1, ("name", "others")),
        ] {
            assert_ne!(own, other);
        }
    }
}
