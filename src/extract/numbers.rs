//! Numbers in a text: in digits of any script and in English words, as the candidates of a question
//! for a number.
//!
//! Found are signs, thousands separators, decimals, percent (`12%` is 12), currencies, multipliers
//! (`12k`, `3 million`, `5万`), powers of ten and fractions. Left out is what only consists of digits:
//! identifiers, dates, times, addresses, versions, telephone numbers. A year alone is a number, and so
//! are the day and the year of a date in words.

mod after;
mod amount;
mod before;
mod digits;
mod masks;
mod run;
mod words;

use std::collections::HashMap;
use std::ops::Range;

use after::{After, after};
use amount::{Amount, Convention, amounts, convention};
use before::{Before, before};
use masks::Masks;
use run::{Run, runs};

/// Most candidates of one question: with "not stated" they are 255 options. Where a text has more
/// distinct numbers, those that stand first are kept.
pub const CANDIDATES_MAX: usize = 254;

/// How near a multiple of the step the half between two multiples is still a half: doubles do not hold
/// 1.005.
const HALF_TOLERANCE: f64 = 1e-9;

/// A number that a text has: its value, and all places where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberCandidate {
    /// Finite, rounded as the criteria say.
    pub value: f64,
    /// In bytes, in the order of the text, at least one: the number as written, with its sign,
    /// currency, multiplier and percent sign.
    pub places: Vec<Range<usize>>,
}

/// What a question for a number says about it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NumberCriteria {
    /// Smallest value, inclusive.
    pub min: Option<f64>,
    /// Largest value, inclusive.
    pub max: Option<f64>,
    /// Values are rounded to a multiple of it; none or 0 leaves them as they are.
    pub precision: Option<f64>,
}

impl NumberCriteria {
    /// The value, rounded to a multiple of the precision, a half away from zero.
    pub fn rounded(&self, value: f64) -> f64 {
        let Some(step) = self.precision.filter(|step| *step > 0.0) else { return value };
        let steps = value / step;
        let below = steps.abs().floor();
        let is_half_or_more = steps.abs() - below >= 0.5 - HALF_TOLERANCE * steps.abs().max(1.0);
        let whole = if is_half_or_more { below + 1.0 } else { below }.copysign(steps);
        // A step like 0.01 has no double, but its inverse has: dividing gives the double next to it.
        let inverse = (1.0 / step).round();
        let is_inverse = inverse >= 1.0 && (inverse * step - 1.0).abs() < HALF_TOLERANCE;
        let rounded = if is_inverse { whole / inverse } else { whole * step };
        if rounded.is_finite() { rounded } else { value }
    }

    fn allows(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }
}

/// A number at one place.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    place: Range<usize>,
    value: f64,
}

/// The distinct numbers of a text, in the order of their first places; at most [`CANDIDATES_MAX`].
///
/// Values are rounded first, then `min` and `max` leave some out, then equal ones are one candidate.
/// Linear in the text.
pub fn numbers(text: &str, criteria: &NumberCriteria) -> Vec<NumberCandidate> {
    first_numbers(text, criteria, CANDIDATES_MAX)
}

/// The first `count_max` of them.
pub fn first_numbers(
    text: &str,
    criteria: &NumberCriteria,
    count_max: usize,
) -> Vec<NumberCandidate> {
    let mut found: Vec<NumberCandidate> = Vec::new();
    let mut known: HashMap<u64, usize> = HashMap::new();
    for one in all(text) {
        // Adding zero makes -0 the same as 0.
        let value = criteria.rounded(one.value) + 0.0;
        if !value.is_finite() || !criteria.allows(value) {
            continue;
        }
        if let Some(index) = known.get(&value.to_bits()) {
            found[*index].places.push(one.place);
        } else if found.len() < count_max {
            known.insert(value.to_bits(), found.len());
            found.push(NumberCandidate { value, places: vec![one.place] });
        }
    }
    found
}

/// All numbers in the order of the text.
fn all(text: &str) -> Vec<Found> {
    let mut found = in_digits(text);
    let worded = words::worded(text);
    let (mut index, count) = (0, found.len());
    for one in worded {
        while index < count && found[index].place.end <= one.place.start {
            index += 1;
        }
        if index == count || found[index].place.start >= one.place.end {
            found.push(Found { place: one.place, value: one.value });
        }
    }
    found.sort_by_key(|one| (one.place.start, std::cmp::Reverse(one.place.end)));
    found
}

fn in_digits(text: &str) -> Vec<Found> {
    let runs = runs(text);
    let convention = convention(&runs);
    let mut masks = Masks::of(text);
    let mut found = Vec::new();
    let mut read_to = 0;
    for run in &runs {
        let place = run.place();
        vulgar_alone(text, read_to..place.start, &mut found);
        if place.start < read_to || masks.covers(place.start) {
            read_to = read_to.max(place.end);
            continue;
        }
        read_to = read(text, run, convention, &mut found).max(place.end);
    }
    vulgar_alone(text, read_to..text.len(), &mut found);
    found
}

/// Reads a run with what stands around it. Where it ends.
fn read(text: &str, run: &Run, convention: Option<Convention>, found: &mut Vec<Found>) -> usize {
    let place = run.place();
    let Some(ahead) = before(text, place.start) else {
        // An identifier ends at a comma at the latest.
        let Some(rest) = run.behind_comma() else { return place.end };
        return read(text, &rest, convention, found);
    };
    let Some(behind) = after(text, place.end, ahead.has_currency) else { return place.end };
    let is_money = behind.has_currency || ahead.has_currency;
    let silent = if is_money { Convention::Groups } else { Convention::Point };
    let mut amounts = amounts(run, convention.unwrap_or(silent));
    // A currency or a multiplier leaves no doubt that the groups are one number.
    let is_clear = behind.has_currency || behind.exponent != 0;
    if is_clear && amounts.iter().any(|amount| amount.is_spaced) {
        amounts.retain(|amount| !amount.is_part);
    }
    let begins = |amount: &Amount| amount.place.start == place.start;
    let ends = |amount: &Amount| amount.place.end == place.end;
    let is_range = amounts.len() == 2 && !amounts[1].is_part && run.marks.len() < 4;
    for amount in &amounts {
        let mut one = Signed::plain(amount);
        if begins(amount) {
            one.begin(ahead);
        }
        if ends(amount) {
            one.end(behind);
        } else if is_range && joins_range(run) {
            one.exponent = behind.exponent;
        }
        if let Some(number) = one.found(text) {
            found.push(number);
        }
    }
    behind.end
}

/// Whether a multiplier behind a run belongs to both ends of it: `10-20 million`.
fn joins_range(run: &Run) -> bool {
    run.marks.iter().any(|mark| matches!(mark, digits::Mark::Hyphen | digits::Mark::Dash))
}

/// An amount with its sign, power of ten and fraction.
#[derive(Debug, Clone)]
struct Signed {
    place: Range<usize>,
    decimal: String,
    is_negative: bool,
    exponent: i32,
    fraction: f64,
    has_currency: bool,
}

impl Signed {
    fn plain(amount: &Amount) -> Self {
        Self {
            place: amount.place.clone(),
            decimal: amount.decimal.clone(),
            is_negative: false,
            exponent: 0,
            fraction: 0.0,
            has_currency: false,
        }
    }

    fn begin(&mut self, ahead: Before) {
        self.place.start = ahead.start;
        self.is_negative = ahead.is_negative;
        self.has_currency |= ahead.has_currency;
        if ahead.is_pointed && !self.decimal.contains('.') {
            self.decimal.insert_str(0, "0.");
        }
    }

    fn end(&mut self, behind: After) {
        self.place.end = behind.end;
        self.exponent = behind.exponent;
        self.fraction = behind.fraction;
        self.has_currency |= behind.has_currency;
    }

    /// The value, if a double holds it.
    fn found(mut self, text: &str) -> Option<Found> {
        let digits = format!("{}e{}", self.decimal, self.exponent);
        let plain: f64 = digits.parse().ok()?;
        // One that no double holds is none, and not zero.
        if plain == 0.0 && self.decimal.bytes().any(|digit| matches!(digit, b'1'..=b'9')) {
            return None;
        }
        let mut value = plain + self.fraction * 10_f64.powi(self.exponent);
        if !self.is_negative && self.is_accounting(text) {
            self.is_negative = true;
            self.place = self.place.start - 1..self.place.end + 1;
        }
        if self.is_negative {
            value = -value;
        }
        value.is_finite().then_some(Found { place: self.place, value })
    }

    /// Whether brackets around the number are a minus: the whole of a cell, a value or a line's end, and
    /// an amount of money by its look, as `Net loss: (1,234.50)`. In a sentence they are brackets.
    fn is_accounting(&self, text: &str) -> bool {
        let (ahead, behind) = (&text[..self.place.start], &text[self.place.end..]);
        let (Some(ahead), Some(behind)) = (ahead.strip_suffix('('), behind.strip_prefix(')'))
        else {
            return false;
        };
        let shown = &text[self.place.clone()];
        let is_money = self.has_currency || shown.contains([',', '.', '\'', '\u{00A0}']);
        let near = ahead.trim_end_matches([' ', '\u{00A0}']);
        let opens = ahead.len() - near.len() > 1
            || near.is_empty()
            || near.ends_with([':', '|', '\t', '\n', '"', ';'])
            || near.ends_with(digits::is_currency_sign);
        let far = behind.trim_start_matches(' ');
        let closes = far.is_empty()
            || behind.starts_with("  ")
            || far.starts_with(['|', '\t', '\r', '\n', '"', ';', '}']);
        is_money && opens && closes && !shown.ends_with('%')
    }
}

/// Fractions in one character that follow no digit.
fn vulgar_alone(text: &str, between: Range<usize>, found: &mut Vec<Found>) {
    let Some(part) = text.get(between.clone()) else { return };
    for (at, character) in part.char_indices() {
        let Some((above, below)) = digits::vulgar(character) else { continue };
        let start = between.start + at;
        let Some(ahead) = before(text, start) else { continue };
        let value = f64::from(above) / f64::from(below);
        let value = if ahead.is_negative { -value } else { value };
        let start = if ahead.is_pointed { start } else { ahead.start };
        found.push(Found { place: start..between.start + at + character.len_utf8(), value });
    }
}

#[cfg(test)]
mod tests;
