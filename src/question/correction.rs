//! What was learned about one recurring question from labelled examples, as it is applied to a read.

/// A correction of a question's distribution; a temperature is not applied beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Correction {
    /// When it is applied.
    pub stage: Stage,
    /// What is applied.
    pub form: Form,
}

/// When a correction is applied, where a question is read in several orders of its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// To each order, before they are averaged: what was learned is the model's liking for a label,
    /// whichever option stands behind it. A noul's sides keep theirs.
    EachOrder,
    /// To the average: what was learned is its liking for an option.
    Average,
}

/// What is applied to the log-probabilities of the options.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// Taken from each log-probability: `[options]` (a noul's no, then yes).
    Bias(Vec<f64>),
    /// Added to them from the hidden state before the output head; always to the average.
    Head {
        /// `[hidden, options]`, row by row.
        weights: Vec<f32>,
        /// `[options]`.
        offsets: Vec<f32>,
        /// Divisor of the sums, above 0.
        temperature: f64,
    },
}

impl Correction {
    /// Whether the hidden state must be read for it.
    pub fn needs_hidden(&self) -> bool {
        matches!(self.form, Form::Head { .. })
    }

    /// For how many options it was learned.
    pub fn options(&self) -> usize {
        match &self.form {
            Form::Bias(bias) => bias.len(),
            Form::Head { offsets, .. } => offsets.len(),
        }
    }
}
