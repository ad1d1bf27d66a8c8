//! What is printed for people, on stdout.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};

/// Prints a line. A reader that has seen enough and gone away (`loadtest ... | head`) is no fault: what
/// is written to files is written all the same.
///
/// # Errors
/// When it cannot be written for another reason.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
