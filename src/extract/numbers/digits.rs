//! Digits of many scripts, and what may stand between and beside them.
//!
//! A number is found by its digits, so everything that asks "is this character part of a number" is
//! here, a table each.

/// The digit zero of each script beyond ASCII whose ten digits follow each other.
const ZEROS: [char; 20] = [
    '0', '\u{0660}', // Arabic-Indic
    '\u{06F0}', // extended Arabic-Indic
    '\u{07C0}', // N'Ko
    '\u{0966}', // Devanagari
    '\u{09E6}', // Bengali
    '\u{0A66}', // Gurmukhi
    '\u{0AE6}', // Gujarati
    '\u{0B66}', // Odia
    '\u{0BE6}', // Tamil
    '\u{0C66}', // Telugu
    '\u{0CE6}', // Kannada
    '\u{0D66}', // Malayalam
    '\u{0E50}', // Thai
    '\u{0ED0}', // Lao
    '\u{0F20}', // Tibetan
    '\u{1040}', // Myanmar
    '\u{17E0}', // Khmer
    '\u{1810}', // Mongolian
    '\u{FF10}', // full-width
];

/// The value of a digit, 0 to 9.
pub(super) fn digit(character: char) -> Option<u8> {
    // Nearly all characters end here; the table is for the rest.
    if character.is_ascii() {
        return character.to_digit(10).and_then(|value| u8::try_from(value).ok());
    }
    ZEROS.iter().find_map(|zero| {
        let above = u32::from(character).checked_sub(u32::from(*zero))?;
        u8::try_from(above).ok().filter(|value| *value < 10)
    })
}

pub(super) fn is_digit(character: char) -> bool {
    digit(character).is_some()
}

fn is_full_width(character: char) -> bool {
    ('\u{FF10}'..='\u{FF19}').contains(&character)
}

/// What a character between two digits does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// `.`
    Dot,
    /// `,`
    Comma,
    /// The Arabic decimal separator, which is nothing else.
    Decimal,
    /// An apostrophe, a thin or no-break space or the Arabic thousands separator: between groups.
    Group,
    /// An ordinary space, which stands between groups or between numbers.
    Space,
    /// `:`, of times and ratios.
    Colon,
    /// `/`, of fractions, dates and ratings.
    Slash,
    /// `-`, of ranges, dates, telephone numbers and identifiers.
    Hyphen,
    /// A dash, of ranges.
    Dash,
    /// `x` or `×` between measures.
    Times,
}

/// The mark between two digits; `left` and `right` are these digits.
pub(super) fn mark(character: char, left: char, right: char) -> Option<Mark> {
    let is_wide = is_full_width(left) && is_full_width(right);
    match character {
        '.' => Some(Mark::Dot),
        ',' => Some(Mark::Comma),
        '．' if is_wide => Some(Mark::Dot),
        '，' if is_wide => Some(Mark::Comma),
        '\u{066B}' => Some(Mark::Decimal),
        '\'' | '’' | '\u{066C}' | '\u{00A0}' | '\u{2007}' | '\u{2009}' | '\u{202F}' => {
            Some(Mark::Group)
        }
        ' ' => Some(Mark::Space),
        ':' | '：' => Some(Mark::Colon),
        '/' | '／' => Some(Mark::Slash),
        '-' | '\u{2010}' | '\u{2011}' => Some(Mark::Hyphen),
        '–' | '—' | '~' | '～' => Some(Mark::Dash),
        'x' | 'X' | '×' => Some(Mark::Times),
        _ => None,
    }
}

/// A fraction in one character: numerator and denominator.
pub(super) fn vulgar(character: char) -> Option<(u32, u32)> {
    let parts = match character {
        '½' => (1, 2),
        '⅓' => (1, 3),
        '⅔' => (2, 3),
        '¼' => (1, 4),
        '¾' => (3, 4),
        '⅕' => (1, 5),
        '⅖' => (2, 5),
        '⅗' => (3, 5),
        '⅘' => (4, 5),
        '⅙' => (1, 6),
        '⅚' => (5, 6),
        '⅛' => (1, 8),
        '⅜' => (3, 8),
        '⅝' => (5, 8),
        '⅞' => (7, 8),
        _ => return None,
    };
    Some(parts)
}

/// The value of a raised digit, as in powers of ten.
pub(super) fn raised(character: char) -> Option<u8> {
    match character {
        '⁰' => Some(0),
        '¹' => Some(1),
        '²' => Some(2),
        '³' => Some(3),
        '⁴'..='⁹' => u8::try_from(u32::from(character) - u32::from('⁰')).ok(),
        _ => None,
    }
}

pub(super) fn is_minus(character: char) -> bool {
    matches!(character, '-' | '−' | '－' | '﹣')
}

/// Whether the letter makes an identifier of digits that it touches. Scripts that write no spaces do
/// not: the number in `共100元` is a number.
pub(super) fn is_identifier(character: char) -> bool {
    let has_spaces = character < '\u{0E00}' || ('\u{1E00}'..='\u{1FFF}').contains(&character);
    character == '_' || (has_spaces && character.is_alphabetic())
}

/// Currencies that are written with letters.
const CURRENCY_CODES: [&str; 38] = [
    "USD", "EUR", "GBP", "JPY", "CHF", "INR", "CNY", "RMB", "RUB", "AUD", "CAD", "NZD", "SEK",
    "NOK", "DKK", "PLN", "CZK", "HUF", "BRL", "MXN", "ZAR", "KRW", "SGD", "HKD", "TRY", "AED",
    "SAR", "ILS", "THB", "UAH", "BTC", "ETH", "Rs", "Fr", "kr", "zł", "руб", "р",
];

/// Whether the letters are a currency code.
pub(super) fn is_currency_code(letters: &str) -> bool {
    CURRENCY_CODES.contains(&letters)
}

pub(super) fn is_currency_sign(character: char) -> bool {
    matches!(character, '$' | '¢' | '£' | '¤' | '¥' | '￥' | '＄' | '￡' | '\u{20A0}'..='\u{20C0}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_other_scripts_have_their_values() {
        let of = |text: &str| text.chars().map(digit).collect::<Option<Vec<u8>>>();
        for text in ["0459", "٠٤٥٩", "०४५९", "０４５９", "۰۴۵۹"] {
            assert_eq!(of(text), Some(vec![0, 4, 5, 9]), "{text}");
        }
        assert_eq!([digit('a'), digit('½'), digit('²'), digit('一')], [None; 4]);
    }

    #[test]
    fn raised_digits_have_their_values() {
        let found: Option<Vec<u8>> = "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().map(raised).collect();
        assert_eq!(found, Some((0..10).collect()));
    }
}
