//! Names by which faults of some dialects tell more than their code, for the document of the API.

/// What vLLM's faults of a body's form have beside them: what was sent.
pub(crate) const VLLM_INPUT: &str = super::vllm::faults::INPUT;

/// Codes of vLLM's faults: of form, of sense.
pub(crate) const VLLM: &[&str] = &["missing", super::vllm::faults::SENSE];

/// Codes of gmlx's: of a field, of the whole.
pub(crate) const GMLX: &[&str] =
    &[super::gmlx::VALIDATION, super::gmlx::INVALID_REQUEST, "too_long"];
