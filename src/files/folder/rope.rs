//! Rope settings of a `config.json`, in the old form (`rope_theta`, `rope_scaling`) and the new one
//! (`rope_parameters`).

use std::f32::consts::TAU;

use serde_json::Value;

use super::super::{Architecture, FilesError, RopeConfig, RopeScaling};
use super::config::ConfigFile;

/// Rope base where a file names none, for llama and gemma's sliding layers.
const BASE: f32 = 10_000.0;
/// Gemma's base in layers of full attention.
const GEMMA_BASE: f32 = 1_000_000.0;

/// The rope of full-attention layers, and gemma's of sliding layers.
#[derive(Debug)]
pub(super) struct Ropes {
    /// Layers of full attention.
    pub(super) full: RopeConfig,
    /// Sliding layers.
    pub(super) local: Option<RopeConfig>,
}

/// Reads both.
pub(super) fn read_ropes(
    file: &ConfigFile<'_>,
    architecture: Architecture,
) -> Result<Ropes, FilesError> {
    let root = Value::Object(file.root.clone());
    let new = &root["rope_parameters"];
    let gemma = architecture == Architecture::Gemma3;
    let base = if gemma { GEMMA_BASE } else { BASE };
    if gemma && new["full_attention"].is_object() {
        let local = rope(file, &new["sliding_attention"], BASE)?;
        return Ok(Ropes { full: rope(file, &new["full_attention"], base)?, local: Some(local) });
    }
    let full = if new.is_object() {
        rope(file, new, base)?
    } else {
        let theta = number(&root["rope_theta"]).unwrap_or(base);
        let scaling = scaling(file, &root["rope_scaling"], theta)?;
        RopeConfig { theta, scaling }
    };
    let local_base = number(&root["rope_local_base_freq"]).unwrap_or(BASE);
    let local = gemma.then_some(RopeConfig { theta: local_base, scaling: RopeScaling::None });
    Ok(Ropes { full, local })
}

fn rope(file: &ConfigFile<'_>, settings: &Value, base: f32) -> Result<RopeConfig, FilesError> {
    let theta = number(&settings["rope_theta"]).unwrap_or(base);
    Ok(RopeConfig { theta, scaling: scaling(file, settings, theta)? })
}

fn scaling(file: &ConfigFile<'_>, settings: &Value, theta: f32) -> Result<RopeScaling, FilesError> {
    let kind = settings["rope_type"].as_str().or_else(|| settings["type"].as_str());
    let needed = |key: &str| {
        let found = number(&settings[key]).filter(|value| value.is_finite() && *value > 0.0);
        found.ok_or_else(|| file.fault(format!("rope scaling has no positive {key}")))
    };
    match kind {
        None | Some("default") => Ok(RopeScaling::None),
        Some("linear") => Ok(RopeScaling::Linear(needed("factor")?)),
        Some("llama3") => {
            let llama3 = Llama3 {
                factor: needed("factor")?,
                low: needed("low_freq_factor")?,
                high: needed("high_freq_factor")?,
                context: needed("original_max_position_embeddings")?,
            };
            let heads = file.count("num_attention_heads");
            let hidden = file.count("hidden_size");
            let derived = || hidden?.checked_div(heads?);
            let head_dim = file.count("head_dim").or_else(derived).unwrap_or(0);
            if head_dim > 1 << 16 {
                return Err(file.fault(format!("the head size is {head_dim}")));
            }
            Ok(RopeScaling::PerFrequency(llama3.factors(head_dim, theta)))
        }
        Some(other) => Err(file.unsupported(format!(
            "rope scaling {other} is not supported; supported are default, linear and llama3"
        ))),
    }
}

/// Llama 3.1's rule: high frequencies as they are, low ones divided by the factor, those between
/// blended. Source: `_compute_llama3_parameters` in transformers' `modeling_rope_utils.py`.
struct Llama3 {
    factor: f32,
    low: f32,
    high: f32,
    /// Context length of the first training, in tokens.
    context: f32,
}

impl Llama3 {
    /// Divisors of the `head_dim / 2` frequencies.
    fn factors(&self, head_dim: usize, theta: f32) -> Vec<f32> {
        let frequency = |pair: usize| theta.powf(-((2 * pair) as f32) / head_dim as f32);
        (0..head_dim / 2).map(|pair| self.divisor(TAU / frequency(pair))).collect()
    }

    fn divisor(&self, wavelength: f32) -> f32 {
        if wavelength < self.context / self.high {
            1.0
        } else if wavelength > self.context / self.low {
            self.factor
        } else {
            let smooth = (self.context / wavelength - self.low) / (self.high - self.low);
            1.0 / ((1.0 - smooth) / self.factor + smooth)
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the decoder computes in f32")]
fn number(value: &Value) -> Option<f32> {
    value.as_f64().map(|number| number as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama_3_keeps_fast_frequencies_and_divides_slow_ones() {
        let llama3 = Llama3 { factor: 8.0, low: 1.0, high: 4.0, context: 8192.0 };
        let factors = llama3.factors(128, 500_000.0);
        assert_eq!(factors.len(), 64);
        assert!((factors[0] - 1.0).abs() < 1e-6);
        assert!((factors[63] - 8.0).abs() < 1e-6);
        // Halfway between the two limits in 1/wavelength the blend is the mean of the frequencies.
        assert!((llama3.divisor(8192.0 / 2.5) - 1.0 / (0.5 / 8.0 + 0.5)).abs() < 1e-5);
    }
}
