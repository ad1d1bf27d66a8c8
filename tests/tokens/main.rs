//! Goal: model files are read right, and token ids equal llama.cpp's. Method: tiny files are written,
//! read back and damaged; 200 texts (`texts.json`) go through our tokenizers and against the ids that
//! llama.cpp gave (`data/`; README.md says how they were made).
//!
//! The vocabularies are not part of the repository. They are looked for in the model folder; a
//! missing one is skipped, or fails the test where `DOCKET_TEST_REQUIRE_MODEL` names it.

#[cfg(test)]
mod boundary;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tiny;
#[cfg(test)]
mod vectors;
#[cfg(test)]
#[path = "../golden/writers"]
mod writers {
    pub(crate) mod folder;
    pub(crate) mod gguf;
    pub(crate) mod vocabulary;
    pub(crate) mod wide;
}
