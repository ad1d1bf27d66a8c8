//! Flags without a value: what their environment variables may hold.
//!
//! `DOCKET_OFFLINE=` and an unset variable are the same in most tools that write such files, so an
//! empty text leaves a flag off.

use std::ffi::OsStr;

use clap::builder::{BoolishValueParser, TypedValueParser as _};

/// Reads `true`, `yes`, `on`, `1` and their opposites in any case, and nothing at all as `false`.
///
/// # Errors
/// What the text is, and what it may be.
pub(super) fn switch(text: &str) -> Result<bool, String> {
    if text.is_empty() {
        return Ok(false);
    }
    let read = BoolishValueParser::new().parse_ref(&clap::Command::new(""), None, OsStr::new(text));
    read.map_err(|_| format!("{text:?} is neither true nor false; write 1, 0, or nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_leaves_a_flag_off() {
        for (text, is_on) in [("", false), ("0", false), ("false", false), ("1", true)] {
            assert_eq!(switch(text), Ok(is_on), "{text:?}");
        }
        assert_eq!((switch("YES"), switch("off")), (Ok(true), Ok(false)));
        assert!(switch("maybe").unwrap_err().contains("\"maybe\""));
    }
}
