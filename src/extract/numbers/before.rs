//! What stands before a run: its sign, a currency, or the letters that make an identifier of it.

use super::digits::{is_currency_code, is_currency_sign, is_digit, is_identifier, is_minus};

/// Where a number begins with its sign and currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) start: usize,
    pub(super) is_negative: bool,
    pub(super) has_currency: bool,
    /// `.5`: the whole part is left out.
    pub(super) is_pointed: bool,
}

/// Words that a hyphen joins to a number without making an identifier of it.
const JOINING: [&str; 8] = ["mid", "pre", "post", "sub", "early", "late", "under", "over"];
const MINUS_WORDS: [&str; 3] = ["minus", "negative", "минус"];
/// Letters that are looked at for a currency or one of these words.
const LETTERS_MAX: usize = 8;

/// Looks backwards from a run; none where it belongs to an identifier.
pub(super) fn before(text: &str, start: usize) -> Option<Before> {
    let mut found = Before { start, is_negative: false, has_currency: false, is_pointed: false };
    point(text, &mut found);
    if sign(text, &mut found)? {
        sign_currency(text, &mut found);
    } else {
        currency(text, &mut found)?;
        if found.has_currency {
            sign(text, &mut found)?;
        }
        worded_sign(text, &mut found);
    }
    Some(found)
}

/// The character before a place, as a reader sees it: the letter of an escape like `\n` is none.
pub(super) fn preceding(text: &str, at: usize) -> Option<char> {
    let mut back = text[..at].chars().rev();
    let character = back.next()?;
    let is_escape = matches!(character, 'n' | 't' | 'r' | 'f' | 'b')
        && back.next() == Some('\\')
        && back.next() != Some('\\');
    Some(if is_escape { ' ' } else { character })
}

fn point(text: &str, found: &mut Before) {
    let Some(rest) = text[..found.start].strip_suffix('.') else { return };
    let is_bound = preceding(text, rest.len())
        .is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | ')' | ']' | '"' | '…'));
    if is_bound {
        found.is_pointed = true;
        found.start = rest.len();
    }
}

/// Takes a sign; none where it is the hyphen of an identifier. Whether there is one.
fn sign(text: &str, found: &mut Before) -> Option<bool> {
    let Some(character) = preceding(text, found.start) else { return Some(false) };
    let at = found.start - character.len_utf8();
    if !is_minus(character) && character != '+' {
        return Some(false);
    }
    let ahead = preceding(text, at);
    if ahead.is_some_and(is_identifier) {
        return (is_minus(character) && is_joining(letters_before(text, at))).then_some(false);
    }
    let is_inner =
        ahead.is_some_and(|c| is_digit(c) || is_minus(c) || matches!(c, ')' | '%' | '}'));
    if is_inner {
        return Some(false);
    }
    found.is_negative = is_minus(character);
    found.start = at;
    Some(true)
}

/// Takes `minus` and its like, which behind a number is what is done to it.
fn worded_sign(text: &str, found: &mut Before) {
    if found.is_negative {
        return;
    }
    let rest = &text[..found.start];
    let chinese = ["负", "負", "零下"].iter().find(|sign| rest.ends_with(**sign));
    let (length, spaces) = match (chinese, rest.strip_suffix([' ', '\u{00A0}'])) {
        (Some(sign), _) => (sign.len(), 0),
        (None, Some(near)) => (letters_before(text, near.len()).len(), rest.len() - near.len()),
        (None, None) => return,
    };
    let start = found.start - spaces - length;
    let word = text[start..start + length].to_lowercase();
    let is_sign = chinese.is_some() || MINUS_WORDS.contains(&word.as_str());
    let is_difference = text[..start].trim_end_matches(' ').ends_with(is_digit);
    if is_sign && !is_difference {
        found.is_negative = true;
        found.start = start;
    }
}

fn is_joining(letters: &str) -> bool {
    JOINING.contains(&letters)
}

/// The letters directly before a place, at most [`LETTERS_MAX`] and one.
fn letters_before(text: &str, end: usize) -> &str {
    let back = text[..end].char_indices().rev();
    let letters = back.take(LETTERS_MAX + 1).take_while(|(_, c)| is_identifier(*c));
    let start = letters.last().map_or(end, |(start, _)| start);
    let word = &text[start..end];
    let first = word.chars().next().map_or(0, char::len_utf8);
    let is_escaped = text[..start].ends_with('\\') && preceding(text, start + first) == Some(' ');
    if is_escaped { &word[first..] } else { word }
}

/// Takes a currency before the number; none where letters make an identifier of it.
fn currency(text: &str, found: &mut Before) -> Option<()> {
    let Some(character) = preceding(text, found.start) else { return Some(()) };
    if is_identifier(character) {
        let letters = letters_before(text, found.start);
        return is_currency_code(letters).then(|| take(found, letters.len()));
    }
    let mut ahead = text[..found.start - character.len_utf8()].chars().rev().take(2);
    let is_path =
        character == '/' && (0..2).all(|_| ahead.next().is_some_and(|c| c.is_ascii_uppercase()));
    if is_path {
        return None;
    }
    sign_currency(text, found);
    Some(())
}

/// Takes a currency's sign or code, with one space between at most.
fn sign_currency(text: &str, found: &mut Before) {
    let rest = &text[..found.start];
    let near = rest.strip_suffix([' ', '\u{00A0}', '\u{202F}']).unwrap_or(rest);
    let spaces = rest.len() - near.len();
    match near.chars().next_back() {
        Some(character) if is_currency_sign(character) => {
            take(found, spaces + character.len_utf8());
        }
        Some(character) if is_identifier(character) => {
            let letters = letters_before(text, near.len());
            if is_currency_code(letters) {
                take(found, spaces + letters.len());
            }
        }
        Some(_) | None => {}
    }
}

fn take(found: &mut Before, bytes: usize) {
    found.start -= bytes;
    found.has_currency = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(text: &str) -> Option<(&str, bool)> {
        let at = text
            .rfind(|c: char| !c.is_ascii_digit())
            .map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8));
        before(text, at).map(|found| (&text[found.start..], found.is_negative))
    }

    #[test]
    fn signs_and_currencies_belong_to_the_number() {
        for (text, expected) in [
            ("is -5", "-5"),
            ("is −5", "−5"),
            ("$-5", "$-5"),
            ("-$ 5", "-$ 5"),
            ("USD 5", "USD 5"),
            ("-USD5", "-USD5"),
        ] {
            let (shown, is_negative) = looked(text).expect("a number");
            assert!(is_negative == (text.contains(['-', '−'])), "{text}");
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn identifiers_have_no_numbers() {
        for text in ["INV-2041", "ABC123", "v1", "a_5", "COVID-19", "INV/2041"] {
            assert_eq!(looked(text), None, "{text}");
        }
        for text in ["mid-2024", "共100", "#5", r"\n5", r"\n-5", "(5", "and/5", "20°C/68"] {
            assert!(looked(text).is_some(), "{text}");
        }
    }

    #[test]
    fn a_hyphen_behind_a_digit_or_a_bracket_is_no_sign() {
        assert_eq!(looked("(a)-5"), Some(("5", false)));
        assert_eq!(looked("3--5"), Some(("5", false)));
    }
}
