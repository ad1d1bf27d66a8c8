//! Under what a task holds: the model, the layout, and in how many orders questions are read.

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
        let fingerprint = json!({
            "layout": prompter.layout_id(),
            "model": model,
            "orders": [orders.noul, orders.choice, orders.score],
            "served_name": served_name,
        });
        Self { layout: *prompter.layout(), fingerprint: fingerprint.to_string() }
    }
}
