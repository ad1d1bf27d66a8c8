//! What is fuzzed: each target takes any bytes and panics where something does not hold.
//!
//! libFuzzer calls them in `docket-fuzz` (tests/fuzz/README.md), and the tests of docket call them with
//! every input of the corpus.

pub mod body;
pub mod found;
pub mod json;
pub mod keyfile;
pub mod template;

/// A target's name, which is its corpus's too, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const ALL: [Target; 11] = [
    ("json", json::run),
    ("systemone", body::systemone),
    ("decisio", body::decisio),
    ("selfserve", body::selfserve),
    ("vllm", body::vllm),
    ("gmlx", body::gmlx),
    ("openai", body::openai),
    ("prewarm_batch", body::prewarm_batch),
    ("template", template::run),
    ("keyfile", keyfile::run),
    ("number_text", found::run),
];

/// Bytes of an input that is repeated: what takes time in the square of its length takes minutes.
const REPEATED_BYTES: usize = 1 << 17;

/// An input that begins with a byte that UTF-8 has not is the rest of it, repeated.
pub fn repeated(input: &[u8]) -> Option<Vec<u8>> {
    let rest = input.strip_prefix(&[0xff])?;
    let count = REPEATED_BYTES.checked_div(rest.len())?;
    Some(rest.repeat(count))
}
