//! Writers of tiny model files, laid out as llama.cpp's converter and Hugging Face lay them out.
//!
//! They take a configuration and tensors in Hugging Face form and write what the readers of
//! `docket::files` must undo. GGUF files go through candle's writer and quantiser, so that reader
//! and writer do not share a mistake.

pub(crate) mod folder;
pub(crate) mod foreign;
pub(crate) mod gguf;
pub(crate) mod vocabulary;
pub(crate) mod wide;
