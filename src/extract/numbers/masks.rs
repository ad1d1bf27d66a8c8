//! Parts of a text whose digits are no numbers: web and mail addresses, telephone numbers, accounts.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Telephone numbers that are written with spaces or brackets (those with hyphens alone are known by
/// their hyphens), international account numbers and numbers of cards.
const TELEPHONE: &str = concat!(
    r"\+[0-9]{1,3}[ .\-\u{A0}]?\(?[0-9]{1,4}\)?(?:[ .\-/\u{A0}]?[0-9]{2,5}){1,5}",
    r"|(?:\+?[0-9]{1,3} ?)?\([0-9]{2,5}\) ?[0-9]{2,4}[ .\-][0-9]{2,4}(?:[ .\-][0-9]{2,4})?",
    r"|\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,4})?",
    r"|\b[0-9]{4} [0-9]{4} [0-9]{4} [0-9]{4}",
    r"|\b0[0-9]{1,4}[ /][0-9]{3,4}[ ]?[0-9]{3,5}",
);
/// Fewer digits are no telephone number with its country or city.
const TELEPHONE_DIGITS_MIN: usize = 9;

/// Sorted places without numbers, asked for in the order of the text.
#[derive(Debug)]
pub(super) struct Masks {
    places: Vec<Range<usize>>,
    next: usize,
}

impl Masks {
    pub(super) fn of(text: &str) -> Self {
        let mut places: Vec<Range<usize>> = addresses(text).chain(telephones(text)).collect();
        places.sort_by_key(|place| place.start);
        Self { places, next: 0 }
    }

    /// Whether a byte is in one of them. Asked for places that never go back.
    pub(super) fn covers(&mut self, at: usize) -> bool {
        while self.places.get(self.next).is_some_and(|place| place.end <= at) {
            self.next += 1;
        }
        // A shorter place within a longer one has ended earlier, so the next ones are looked at too.
        self.places[self.next..]
            .iter()
            .take_while(|place| place.start <= at)
            .any(|place| at < place.end)
    }
}

fn is_border(character: char) -> bool {
    character.is_whitespace() || "\"'<>()[]{}|`,;".contains(character)
}

/// Words with `://`, `www.` or an at sign between letters.
fn addresses(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.split(is_border).filter(|word| is_address(word)).map(|word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        start..start + word.len()
    })
}

fn is_address(word: &str) -> bool {
    let is_mail = || {
        word.split_once('@')
            .is_some_and(|(name, host)| name.ends_with(char::is_alphanumeric) && host.contains('.'))
    };
    word.contains("://") || word.starts_with("www.") || is_mail()
}

fn telephones(text: &str) -> impl Iterator<Item = Range<usize>> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(TELEPHONE).ok());
    let found = PATTERN.iter().flat_map(|pattern| pattern.find_iter(text));
    found.filter(|one| is_telephone(one.as_str())).map(|one| one.range())
}

/// Enough digits, and no number like `+12 500 000`.
fn is_telephone(shown: &str) -> bool {
    let digits = shown.bytes().filter(u8::is_ascii_digit).count();
    let mut groups = shown.trim_start_matches('+').split([' ', '\u{A0}']).skip(1).peekable();
    let is_grouped = groups.peek().is_some() && groups.all(|group| group.len() == 3);
    digits >= TELEPHONE_DIGITS_MIN && !(is_grouped && digits == TELEPHONE_DIGITS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<&str> {
        Masks::of(text).places.into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn addresses_are_masked() {
        assert_eq!(
            shown("see https://a.b/12?c=3 or {\"u\":\"www.x.org/5\",\"n\":5}"),
            ["https://a.b/12?c=3", "www.x.org/5"]
        );
        assert_eq!(shown("write to a1@b2.org, 5 @ 3"), ["a1@b2.org"]);
    }

    #[test]
    fn telephone_numbers_are_masked() {
        for text in [
            "+49 30 1234567",
            "+1 (555) 123-4567",
            "(020) 7946 0958",
            "030 1234567",
            "8 (800) 555-35-35",
        ] {
            assert_eq!(shown(text), [text]);
        }
        for text in ["DE89 3704 0044 0532 0130 00", "4111 1111 1111 1111"] {
            assert!(Masks::of(text).covers(text.len() - 1), "{text}");
        }
        assert_eq!(shown("+12 500 000 and +15 and 0.5"), Vec::<&str>::new());
    }
}
