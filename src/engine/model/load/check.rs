//! Whether a configuration is one that the decoder can run.

use super::LoadError;
use crate::files::{DecoderConfig, RopeScaling};

/// # Errors
/// [`LoadError::Config`] naming the size at fault.
pub(in crate::engine) fn check(config: &DecoderConfig) -> Result<(), LoadError> {
    let DecoderConfig { hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, .. } =
        *config;
    let wrong = |what: String| Err(LoadError::Config(what));
    let sizes = [hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, config.context];
    if sizes.contains(&0) {
        return wrong(format!("a size of the model is 0: {config:?}"));
    }
    if !heads.is_multiple_of(kv_heads) {
        return wrong(format!("{kv_heads} key/value heads do not divide {heads} heads"));
    }
    if !head_dim.is_multiple_of(2) {
        return wrong(format!("the head width {head_dim} is odd"));
    }
    for rope in [Some(&config.rope), config.rope_local.as_ref()].into_iter().flatten() {
        if let RopeScaling::PerFrequency(factors) = &rope.scaling
            && factors.len() != head_dim / 2
        {
            return wrong(format!(
                "{} rope factors for {} frequencies",
                factors.len(),
                head_dim / 2
            ));
        }
    }
    Ok(())
}
