//! Under what a task holds: the model, the layout, and in how many orders questions are read.

use serde_json::json;

use crate::prompt::Prompter;
use crate::prompt::layout::Layout;

/// How questions are shown and read in one manner.
#[derive(Debug, Clone)]
pub struct Rendering {
    /// The layout.
    pub layout: Layout,
    /// A JSON text; a task that was fitted under another one is not applied.
    pub fingerprint: String,
}

impl Rendering {
    /// * `served_name`: the model's name in answers.
    /// * `model`: identity of model, weights and precision.
    pub fn new(prompter: &Prompter, served_name: &str, model: &str) -> Self {
        let profile = prompter.profile();
        let samples = &profile.samples;
        let fingerprint = json!({
            "layout": prompter.layout_id(),
            "model": model,
            "orders": [samples.noul, samples.choice, samples.score],
            "served_name": served_name,
        });
        Self { layout: *prompter.layout(), fingerprint: fingerprint.to_string() }
    }
}
