//! What stands behind a run: powers of ten, multipliers, fractions, percent, units and currencies, or
//! the letters that make an identifier of it.

use super::digits::{
    is_currency_code, is_currency_sign, is_digit, is_identifier, is_minus, raised, vulgar,
};

/// Where a number ends, and what is done to what its digits say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct After {
    pub(super) end: usize,
    /// Power of ten that it is multiplied by.
    pub(super) exponent: i32,
    /// Added before that: of `2½`.
    pub(super) fraction: f64,
    pub(super) has_currency: bool,
}

/// Letters of a word that are looked at.
const LETTERS_MAX: usize = 16;
/// Digits of a power of ten; more are no number that a double holds.
const EXPONENT_DIGITS_MAX: usize = 4;
/// Units with a raised digit written flat, which make no identifier of `50m2`.
const SQUARED: [&str; 7] = ["m", "cm", "km", "mm", "dm", "ft", "in"];
const WORDS_OF_TEN: [(&str, i32); 33] = [
    ("hundred", 2),
    ("tsd", 3),
    ("millionen", 6),
    ("millones", 6),
    ("milliarden", 9),
    ("milliard", 9),
    ("milliards", 9),
    ("thousand", 3),
    ("million", 6),
    ("millions", 6),
    ("billion", 9),
    ("billions", 9),
    ("trillion", 12),
    ("lakh", 5),
    ("lakhs", 5),
    ("crore", 7),
    ("crores", 7),
    ("mn", 6),
    ("mln", 6),
    ("mio", 6),
    ("bn", 9),
    ("bln", 9),
    ("mrd", 9),
    ("tn", 12),
    ("тыс", 3),
    ("млн", 6),
    ("млрд", 9),
    ("тысяч", 3),
    ("тысячи", 3),
    ("миллион", 6),
    ("миллиона", 6),
    ("миллионов", 6),
    ("миллиардов", 9),
];
const INDIC_WORDS_OF_TEN: [(&str, i32); 4] = [("हज़ार", 3), ("हजार", 3), ("लाख", 5), ("करोड़", 7)];

/// Looks on from a run; none where it belongs to an identifier. `has_currency`: one stands before.
pub(super) fn after(text: &str, end: usize, has_currency: bool) -> Option<After> {
    let mut found = After { end, exponent: 0, fraction: 0.0, has_currency };
    if !power(text, &mut found) {
        fraction(text, &mut found);
    }
    let letters = word(&text[found.end..]);
    if !attached(text, letters, &mut found)? {
        for _ in 0..2 {
            multiplier(text, &mut found);
        }
    }
    marks(text, &mut found);
    Some(found)
}

/// Takes `e-3`, `×10^3` or `× 10⁻³`.
fn power(text: &str, found: &mut After) -> bool {
    let rest = &text[found.end..];
    let exponent = rest.strip_prefix(['e', 'E']).and_then(flat_exponent).or_else(|| {
        let near = rest.strip_prefix([' ', '\u{00A0}']).unwrap_or(rest);
        let times = near.strip_prefix(['×', 'x', '·', '*', '⋅'])?;
        let ten = times.strip_prefix([' ', '\u{00A0}']).unwrap_or(times).strip_prefix("10")?;
        match ten.strip_prefix('^') {
            Some(flat) => flat_exponent(flat),
            None => raised_exponent(ten),
        }
    });
    let Some((exponent, left)) = exponent else { return false };
    found.exponent = exponent;
    found.end = text.len() - left.len();
    true
}

fn flat_exponent(text: &str) -> Option<(i32, &str)> {
    let is_negative = text.starts_with(is_minus);
    let digits = text.strip_prefix(|c| is_minus(c) || c == '+').unwrap_or(text);
    let count = digits.bytes().take_while(u8::is_ascii_digit).take(EXPONENT_DIGITS_MAX + 1).count();
    let left = &digits[count..];
    let is_bound = !left.starts_with(|c: char| is_identifier(c) || is_digit(c));
    let value: i32 =
        digits[..count].parse().ok().filter(|_| is_bound && count <= EXPONENT_DIGITS_MAX)?;
    Some((if is_negative { -value } else { value }, left))
}

fn raised_exponent(text: &str) -> Option<(i32, &str)> {
    let digits = text.strip_prefix('⁻');
    let is_negative = digits.is_some();
    let digits = digits.unwrap_or(text);
    let mut value = 0;
    let mut left = digits;
    for character in digits.chars().take(EXPONENT_DIGITS_MAX) {
        let Some(one) = raised(character) else { break };
        value = value * 10 + i32::from(one);
        left = &left[character.len_utf8()..];
    }
    (left.len() < digits.len()).then_some((if is_negative { -value } else { value }, left))
}

/// Takes `½`, ` ½`, ` 1/2` or ` and a half`.
fn fraction(text: &str, found: &mut After) {
    let rest = &text[found.end..];
    let near = rest.strip_prefix([' ', '\u{00A0}']).unwrap_or(rest);
    let (parts, taken) = if let Some(parts) = near.chars().next().and_then(vulgar) {
        (parts, near.chars().next().map_or(0, char::len_utf8))
    } else if let Some(parts) = slashed(near).filter(|_| near.len() < rest.len()) {
        (parts, 3)
    } else if near.starts_with("and a half") && near.len() < rest.len() {
        ((1, 2), 10)
    } else if near.starts_with("and a quarter") && near.len() < rest.len() {
        ((1, 4), 13)
    } else {
        return;
    };
    found.fraction = f64::from(parts.0) / f64::from(parts.1);
    found.end += rest.len() - near.len() + taken;
}

/// `1/2` with one digit on either side, less than one.
fn slashed(text: &str) -> Option<(u32, u32)> {
    let mut ahead = text.chars();
    let value = |character: char| character.to_digit(10);
    let above = ahead.next().and_then(value)?;
    let below = ahead.next().filter(|c| *c == '/').and_then(|_| ahead.next()).and_then(value)?;
    let is_bound = !ahead.next().is_some_and(|c| is_digit(c) || is_identifier(c) || c == '/');
    (is_bound && 0 < above && above < below && matches!(below, 2 | 3 | 4 | 8))
        .then_some((above, below))
}

/// The letters at the beginning, with the vowel signs of Indic scripts.
fn word(text: &str) -> &str {
    let is_letter =
        |c: char| is_identifier(c) || ('\u{0900}'..='\u{0DFF}').contains(&c) && !is_digit(c);
    let end = text.char_indices().take(LETTERS_MAX).find(|(_, c)| !is_letter(*c));
    let bound = text.char_indices().nth(LETTERS_MAX).map_or(text.len(), |(at, _)| at);
    &text[..end.map_or(bound, |(at, _)| at)]
}

/// Takes letters that touch the number; none where they make an identifier of it. Whether they were a
/// multiplier.
fn attached(text: &str, letters: &str, found: &mut After) -> Option<bool> {
    let behind = &text[found.end + letters.len()..];
    if letters.is_empty() {
        return (!is_file_name(behind) && !is_hyphenated_code(behind)).then_some(false);
    }
    if letters.contains('_') {
        return None;
    }
    let is_squared = SQUARED.contains(&letters) && behind.starts_with(['2', '3']);
    if (behind.starts_with(|c: char| is_digit(c) || c == '_') && !is_squared)
        || is_hyphenated_code(behind)
    {
        return None;
    }
    // `1.4B` is a number of billions, `12B` a room or a bus.
    let digits = text[..found.end].trim_end_matches(is_digit);
    let is_billions = letters == "B" && digits.ends_with(['.', ',']);
    let short = short_multiplier(letters, found.has_currency);
    let exponent = short.or(is_billions.then_some(9)).or_else(|| word_of_ten(letters));
    if let Some(exponent) = exponent {
        found.exponent += exponent;
        found.end += letters.len();
    } else if is_currency_code(letters) {
        found.has_currency = true;
        found.end += letters.len();
    }
    Some(exponent.is_some())
}

/// `.txt`: a small letter directly behind a point.
fn is_file_name(text: &str) -> bool {
    let mut ahead = text.chars();
    ahead.next() == Some('.') && ahead.next().is_some_and(|c| c.is_ascii_lowercase())
}

/// `-AB`, `-4f`: what a hyphen joins is no word.
fn is_hyphenated_code(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('-') else { return false };
    let letters = word(rest);
    let has_digits = rest[letters.len()..].starts_with(|c: char| is_digit(c) || c == '_');
    let is_code = letters.chars().skip(1).any(char::is_uppercase) || letters.len() == 1;
    !letters.is_empty() && (has_digits || is_code)
}

/// `12k`, `$5m`: one letter that touches the number. A small one of million is a metre or a minute
/// unless there is a currency.
fn short_multiplier(letters: &str, has_currency: bool) -> Option<i32> {
    match letters {
        "k" | "K" => Some(3),
        "M" => Some(6),
        "m" if has_currency => Some(6),
        "B" | "b" if has_currency => Some(9),
        "T" | "t" if has_currency => Some(12),
        _ => None,
    }
}

fn word_of_ten(letters: &str) -> Option<i32> {
    let small = letters.to_lowercase();
    let of =
        |words: &[(&str, i32)]| words.iter().find(|(word, _)| *word == small).map(|(_, ten)| *ten);
    of(&WORDS_OF_TEN).or_else(|| of(&INDIC_WORDS_OF_TEN))
}

/// Takes a word like `million` behind a space, or `万` with or without one.
fn multiplier(text: &str, found: &mut After) {
    let rest = &text[found.end..];
    let near = rest.strip_prefix([' ', '\u{00A0}', '\u{202F}']).unwrap_or(rest);
    let spaces = rest.len() - near.len();
    let (exponent, length) = if let Some(exponent) = chinese(near) {
        (Some(exponent), 3)
    } else {
        let letters = word(near);
        let short = short_multiplier(letters, found.has_currency).filter(|_| found.has_currency);
        let exponent = word_of_ten(letters).or(short).filter(|_| spaces > 0);
        (exponent, letters.len())
    };
    if let Some(exponent) = exponent {
        found.exponent += exponent;
        found.end += spaces + length;
    }
}

/// The powers of ten of Chinese and Japanese, but for a thousand and a hundred of a unit (`5千克`).
fn chinese(text: &str) -> Option<i32> {
    let mut ahead = text.chars();
    let (first, next) = (ahead.next()?, ahead.next());
    match first {
        '万' | '萬' => Some(4),
        '亿' | '億' => Some(8),
        '千' if !matches!(next, Some('克' | '米' | '瓦' | '卡' | '赫' | '兆')) => Some(3),
        '百' if matches!(next, Some('万' | '萬' | '亿')) => Some(2),
        _ => None,
    }
}

/// Takes a percent sign or a currency, with one space between at most.
fn marks(text: &str, found: &mut After) {
    let rest = &text[found.end..];
    let near = rest.strip_prefix([' ', '\u{00A0}', '\u{202F}']).unwrap_or(rest);
    let Some(first) = near.chars().next() else { return };
    let letters = word(near);
    let taken = if matches!(first, '%' | '％' | '٪') {
        first.len_utf8()
    } else if is_currency_sign(first) && near.chars().nth(1).is_none_or(|c| !is_digit(c)) {
        found.has_currency = true;
        first.len_utf8()
    } else if is_currency_code(letters) {
        found.has_currency = true;
        letters.len()
    } else {
        return;
    };
    found.end += rest.len() - near.len() + taken;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(text: &str) -> Option<(i32, f64, &str)> {
        let digits =
            text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let end = text[..digits].trim_end_matches('.').len();
        after(text, end, text.starts_with('0'))
            .map(|one| (one.exponent, one.fraction, &text[one.end..]))
    }

    #[test]
    fn multipliers_and_powers_are_taken() {
        for (text, exponent) in [
            ("12k", 3),
            ("5M", 6),
            ("05m", 6),
            ("5m", 0),
            ("3bn", 9),
            ("3 bn", 9),
            ("3 million", 6),
            ("3 hundred thousand", 5),
            ("1.2e-3", -3),
            ("1.2×10^3", 3),
            ("1.2 × 10⁻³", -3),
            ("5万", 4),
            ("5百万", 6),
            ("5千克", 0),
            ("5 тыс. руб", 3),
            ("5 लाख", 5),
            ("5 metres", 0),
            ("12 K", 0),
            ("5MB", 0),
        ] {
            assert_eq!(looked(text).map(|found| found.0), Some(exponent), "{text}");
        }
    }

    #[test]
    fn fractions_are_added() {
        for (text, rest) in [("2½", ""), ("2 ½ cups", " cups"), ("2 1/2", ""), ("2 and a half", "")]
        {
            assert_eq!(looked(text), Some((0, 0.5, rest)), "{text}");
        }
        assert_eq!(looked("2 1/25").map(|found| found.1), Some(0.0));
    }

    #[test]
    fn percent_and_currency_belong_to_the_number() {
        for text in ["5%", "5 %", "5 €", "5€", "5 EUR", "5EUR", "5 million USD"] {
            assert_eq!(looked(text).map(|found| found.2), Some(""), "{text}");
        }
    }

    #[test]
    fn identifiers_have_no_numbers() {
        for text in ["7f3a", "5_x", "12-AB", "4-f7", "123.txt"] {
            assert_eq!(looked(text), None, "{text}");
        }
        for text in ["5kg", "5-star", "30-Day", "2nd", "50m2", "5. next", "5."] {
            assert!(looked(text).is_some(), "{text}");
        }
    }
}
