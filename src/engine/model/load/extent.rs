//! How much there is to load: known from the configuration before anything is read.

use crate::engine::kernels::Precision;
use crate::files::DecoderConfig;

/// About what the packed weights of a configuration take: `f32`'s size at most.
pub(super) fn packed_bytes(config: &DecoderConfig, precision: Precision) -> u64 {
    let DecoderConfig { vocab, hidden, intermediate, layers, heads, kv_heads, head_dim, .. } =
        *config;
    let attention = hidden * head_dim * (2 * heads + 2 * kv_heads);
    let matrices = layers * (attention + 3 * hidden * intermediate);
    let weights = matrices + vocab * hidden * if config.tied { 1 } else { 2 };
    let bytes = weights as u64 * precision.bits_per_weight() / 8;
    // Padding, names and norms.
    bytes + bytes / 16 + (1 << 20)
}

/// Tensors that a configuration has.
pub(in crate::engine) fn tensor_count(config: &DecoderConfig) -> usize {
    let mut per_layer = 9;
    for (has, count) in [(config.qkv_bias, 3), (config.qk_norm, 2), (config.post_norms, 2)] {
        per_layer += if has { count } else { 0 };
    }
    config.layers * per_layer + if config.tied { 2 } else { 3 }
}
