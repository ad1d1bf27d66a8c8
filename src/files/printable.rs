//! Texts of files in messages: a damaged name or key is shown, and does nothing to the terminal.

use std::fmt::{self, Write as _};

/// Shows a text with escapes in the place of what a terminal would act on, or not show.
pub(crate) struct Printable<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for Printable<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.to_string().chars() {
            if character.is_control() || turns(character) {
                write!(formatter, "{}", character.escape_unicode())?;
            } else {
                formatter.write_char(character)?;
            }
        }
        Ok(())
    }
}

/// Whether a character ends a line or changes the direction of what follows.
fn turns(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::files::FilesError;

    #[test]
    fn no_text_of_a_damaged_file_reaches_the_terminal_as_it_is() {
        let path = Path::new("models/größe.gguf");
        let odd = "metadata \u{1b}[31mkey\u{7}\n\u{202e}x is \"a\\b\"";
        for error in [
            FilesError::format(path, odd),
            FilesError::unsupported(path, odd),
            FilesError::missing(path, odd),
            FilesError::format(Path::new(odd), "x"),
        ] {
            let told = error.to_string();
            assert!(!told.chars().any(char::is_control), "{told:?}");
            assert!(told.contains(r#"\u{1b}[31mkey\u{7}\u{a}\u{202e}x is "a\b""#), "{told}");
        }
        let plain = FilesError::format(path, "it's \"ü\": 1 to 2").to_string();
        assert_eq!(plain, "models/größe.gguf: it's \"ü\": 1 to 2");
    }
}
