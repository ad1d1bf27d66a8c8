//! Tasks: what a user's labelled examples change about answers.

pub mod fit;
