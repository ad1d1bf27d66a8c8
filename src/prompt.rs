//! From a decision to tokens: head, state and question parts, and the labels to be read.

pub mod tokens;
