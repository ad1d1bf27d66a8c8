//! Goal: token ids equal llama.cpp's. Method: 200 texts (`texts.json`) through our tokenizer and
//! against the ids that llama.cpp gave (`data/`; README.md says how they were made).
//!
//! The vocabularies are not part of the repository. They are looked for in the model folder; a
//! missing one is skipped, or fails the test where `DOCKET_TEST_REQUIRE_MODEL` names it.

#[cfg(test)]
mod support;
#[cfg(test)]
mod vectors;
