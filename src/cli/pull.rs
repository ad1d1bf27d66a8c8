//! `docket pull`: a model by name, onto this machine.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use clap::Args;

use crate::models::{self, ModelRef, Progress, PullError, Store};

/// What to pull.
#[derive(Debug, Args)]
pub struct PullArgs {
    /// A name from `docket models`, or hf:OWNER/REPO or hf:OWNER/REPO:FILE
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// Pulls a model and says where it is.
///
/// # Errors
/// See [`PullError`].
pub fn run(arguments: &PullArgs, home: &Path, out: &mut impl Write) -> Result<(), PullError> {
    let started = Instant::now();
    let model = ModelRef::parse(&arguments.name)?;
    let path = models::pull(&Store::new(home), &model, &mut Progress::detect())?;
    let seconds = started.elapsed().as_secs_f64();
    say(out, &format!("{model} is at {} ({seconds:.1} s)", path.display()))
        .map_err(|source| PullError::io(Path::new("standard output"), source))
}

fn say(out: &mut impl Write, line: &str) -> io::Result<()> {
    writeln!(out, "{line}")
}
