//! Faults of a body, in the two kinds that vLLM's server tells apart.
//!
//! It reads a body by a schema first, and reports all that breaks it; only a body that has the right
//! form is looked at for sense, and of that the first fault is reported.

use crate::dialect::{FAULTS_MAX, Undecoded};
use crate::error::{Fact, Problem, Step};
use crate::json::Json;

use super::python;

/// The code of a fault of sense.
pub(in crate::dialect) const SENSE: &str = "request_invalid";

/// Name of the fact that holds what was sent where a body breaks the schema.
pub(in crate::dialect) const INPUT: &str = "input";

/// Faults found so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    form: Vec<Problem>,
    sense: Option<Problem>,
}

impl Faults {
    /// A value at `path` that the schema does not allow, in the words of a pydantic model.
    pub(super) fn form(
        &mut self,
        path: Vec<Step>,
        (code, message): (&'static str, &str),
        input: &Json,
    ) {
        if self.form.len() < FAULTS_MAX {
            let facts = vec![(INPUT, Fact::Text(python::excerpt(input)))];
            self.form.push(Problem { facts, ..Problem::new(path, code, message.to_owned()) });
        }
    }

    /// Something that makes no sense at `path`.
    pub(super) fn sense(&mut self, path: Vec<Step>, message: String) {
        if self.sense.is_none() {
            self.sense = Some(Problem::new(path, SENSE, message));
        }
    }

    /// Nothing where there are none.
    ///
    /// # Errors
    /// Those of form, else the first of sense.
    pub(super) fn check(self) -> Result<(), Undecoded> {
        let faults = match (self.form, self.sense) {
            (form, None) if form.is_empty() => return Ok(()),
            (form, Some(sense)) if form.is_empty() => vec![sense],
            (form, _) => form,
        };
        Err(Undecoded { faults, ignored: Vec::new() })
    }
}
