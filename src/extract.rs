//! Extraction: what of a text a question for a number or for an excerpt can be answered with, and the
//! answer composed of the probabilities read.
//!
//! Nothing is generated. Numbers and pieces of the state's text are found first and then read as the
//! options of a choice with "not stated" among them, in stages where a text has many. All of it is
//! pure: text and probabilities in, options and answers out; it knows no prompt, no token and no wire.
//!
//! ```text
//! text ─▶ numbers ─▶ NumberSearch: wanted ─▶ Spans::number_option ─▶ (reads) ─▶ read, wanted, ... ─▶ number_answer
//! text ─▶ spans ─▶ Narrowing: wanted ─▶ Spans::options ─▶ (reads) ─▶ read, wanted, ... ─▶ excerpt, citations
//! ```

mod answer;
mod context;
mod cut;
mod excerpt;
mod leaves;
mod members;
mod narrowing;
mod number_search;
mod numbers;
mod offsets;
mod passage;
mod sentences;
mod spans;

pub use answer::{CandidateAnswer, NumberAnswer, number_answer};
pub use context::OPTION_CHARS_MAX;
pub use excerpt::{Citation, ExcerptAnswer, Part};
pub use leaves::{Leaf, SPANS_MAX};
pub use narrowing::{Narrowing, Wanted};
pub use number_search::{NumberSearch, NumberWanted};
pub use numbers::{CANDIDATES_MAX, NumberCandidate, NumberCriteria, first_numbers, numbers};
pub use offsets::{Offsets, code_points};
pub use spans::{Node, SHOWN_CHARS_MAX, SpanOption, Spans, spans};
