//! What is served and how, in the words of decisio's `/health`.

use std::sync::Arc;

use actors::{PAGE_TOKENS, Snapshot};
use serde_json::{Map, Value, json};

use crate::config::{BoundaryRegistration, LettersConfig};
use crate::decide::prompters::Prompters;
use crate::prompt::layout::PerKind;
use crate::service::Caller;
use crate::start::details;
use crate::tasks::apply::thresholds;
use crate::tasks::desk::Desk;
use crate::tasks::record::Task;

/// What does not change while the server runs.
#[derive(Debug, Clone)]
pub(in crate::start) struct Settings {
    /// The settings of the letters manner.
    pub(in crate::start) letters: LettersConfig,
    /// When a state is registered.
    pub(in crate::start) register: BoundaryRegistration,
    /// Whether the engine gives hidden states.
    pub(in crate::start) reads_hidden: bool,
    /// The model's facts, as in `/health`.
    pub(in crate::start) model: Value,
    /// Its own name, whatever it is served as.
    pub(in crate::start) base: String,
    /// Temperatures of the letters manner.
    pub(in crate::start) temperatures: PerKind<f64>,
    /// Most tokens of a prompt.
    pub(in crate::start) context_tokens: u32,
    /// Whether a request may ask for the raw readout.
    pub(in crate::start) debug_readout: bool,
}

impl Settings {
    /// The body of decisio's `/health` but for the state of the server. What we have no such thing of
    /// is there and null.
    pub(super) fn shown(&self, desk: &Desk, snapshot: &Snapshot, caller: Option<&Caller>) -> Value {
        let letters = &self.letters.settings;
        let register = match self.register {
            BoundaryRegistration::After => "after",
            BoundaryRegistration::Before => "before",
            BoundaryRegistration::Off => "off",
        };
        let temperatures = json!({
            "choice": self.temperatures.choice,
            "noul": self.temperatures.noul,
            "score": self.temperatures.score,
        });
        let prompt_format = json!({
            "tail": letters.prompt_tail.as_str(),
            "slot": letters.answer_slot.as_str(),
            "variants": "single",
            "system_prompt": letters.system_prompt,
        });
        let profile = json!({
            "base": self.base,
            "checkpoint": self.model["fingerprint"],
            "revision": null,
            "quantization_on_load": self.model["precision"],
            "engine_process": "in",
            "temperatures": temperatures,
            "prompt": {
                "tail": letters.prompt_tail.as_str(),
                "slot": letters.answer_slot.as_str(),
                "variants": "single",
                "system_prompt": letters.system_prompt,
                "noul_rendering": letters.noul_rendering.as_str(),
                "describe_options": letters.describe_options,
                "multi_question": "batch",
                "register_boundary": register,
                "pad_policy": "none",
                "pad_unit": null,
                "layout": desk.rendering(crate::question::Manner::Letters).layout.id,
            },
        });
        let mut body = json!({
            "vllm": null,
            "gpu": null,
            "engine_process": "in",
            "mode": "prefix",
            "block_size": PAGE_TOKENS,
            "match_unit": PAGE_TOKENS,
            "cache_hit_unit": PAGE_TOKENS,
            "hash_unit": PAGE_TOKENS,
            "registers_state_boundary": self.register != BoundaryRegistration::Off,
            "register_boundary": register,
            "repository": null,
            "pad_unit": null,
            "pad_where": null,
            "quantization": self.model["precision"],
            "kv_cache_dtype": self.model["kv_stored_as"],
            "mamba_ssm_cache_dtype": null,
            "adapters": [],
            "prompt_format": prompt_format,
            "base": self.base,
            "attention_backend": self.model["engine"],
            "max_model_len": self.context_tokens,
            "profile": profile,
            "systemone": self.systemone(desk, &temperatures, caller),
            "head_engine": self.reads_hidden.then_some("the serving engine"),
            "image_engine": null,
        });
        if self.register == BoundaryRegistration::After {
            body["state_boundary"] = details::registration(snapshot);
        }
        body
    }

    /// The settings of the System One route; what is registered is shown to its tenant alone.
    fn systemone(&self, desk: &Desk, temperatures: &Value, caller: Option<&Caller>) -> Value {
        let letters = &self.letters.settings;
        let tasks = caller.map(|caller| desk.tasks(&caller.tenant)).unwrap_or_default();
        let abstentions = caller.map(|caller| desk.abstentions(&caller.tenant)).unwrap_or_default();
        let applied = |task: &Arc<Task>| {
            let (calibration, head) = task.applied();
            (task.id.clone(), json!({"calibration": calibration, "head": head}))
        };
        json!({
            "hide_index_keys": letters.hide_index_keys,
            "desnake_labels": letters.desnake_labels,
            "describe_options": letters.describe_options,
            "noul_rendering": letters.noul_rendering.as_str(),
            "noul_commit": self.letters.noul_commit,
            "abstention": desk.config().abstention,
            "abstention_tasks": thresholds(&abstentions),
            "orders": 1,
            "abstain_option": desk.config().abstain_option,
            "tasks": desk.config().tasks,
            "debug_readout": self.debug_readout,
            "temperature": self.letters.temperature.unwrap_or(1.0),
            "temperatures": temperatures,
            "readout_tasks": tasks.iter().map(applied).collect::<Map<_, _>>(),
        })
    }
}

/// Temperatures of the letters manner.
pub(in crate::start) fn temperatures(prompters: &Prompters) -> PerKind<f64> {
    prompters.letters.profile().temperature
}
