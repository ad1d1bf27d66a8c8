//! Runs read as numbers: which marks are decimal, which are between groups, and which runs are no
//! numbers at all (dates, times, addresses, versions, telephone numbers).

use std::ops::Range;

use super::digits::Mark;
use super::run::{Group, Run};

/// A number within a run, unsigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) place: Range<usize>,
    /// In ASCII, as Rust reads numbers.
    pub(super) decimal: String,
    /// Whether an ordinary space is all that makes one number of its groups.
    pub(super) is_spaced: bool,
    /// Whether it is a group of such a number.
    pub(super) is_part: bool,
}

/// Denominators that make a fraction of `1/2`; `4/5` and `7/10` are ratings more often.
const DENOMINATORS: [u32; 6] = [2, 3, 4, 8, 16, 32];

/// Which mark is decimal in a text where `1,234` or `1.234` alone could be read in two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Convention {
    /// `1,234.5`
    Point,
    /// `1.234,5`
    Comma,
    /// Either mark is between groups ahead of three digits: an amount of money in a text that does not say.
    Groups,
}

/// What most of the runs of a text that can be read in one way only say; none where they say nothing.
pub(super) fn convention(runs: &[Run]) -> Option<Convention> {
    let (mut points, mut commas) = (0_usize, 0_usize);
    for run in runs {
        for (groups, marks) in parts(run) {
            match evidence(groups, marks, run.is_listed) {
                Some(Convention::Point) => points += 1,
                Some(Convention::Comma) => commas += 1,
                Some(Convention::Groups) | None => {}
            }
        }
    }
    let is_known = commas + points > 0;
    is_known.then_some(if commas > points { Convention::Comma } else { Convention::Point })
}

fn evidence(groups: &[Group], marks: &[Mark], is_listed: bool) -> Option<Convention> {
    let behind = groups.last()?.len();
    match marks {
        [Mark::Dot] if behind != 3 => Some(Convention::Point),
        [Mark::Comma] if behind != 3 && !is_listed => Some(Convention::Comma),
        [Mark::Comma, .., Mark::Dot] => Some(Convention::Point),
        [Mark::Dot | Mark::Space | Mark::Group, .., Mark::Comma] => Some(Convention::Comma),
        _ => None,
    }
}

/// The numbers of a run in its order; none where it is something else.
pub(super) fn amounts(run: &Run, convention: Convention) -> Vec<Amount> {
    let hard = |kind: Mark| run.marks.iter().filter(|mark| **mark == kind).count();
    let is_hexadecimal = run.marks.first() == Some(&Mark::Times) && run.groups[0].digits == "0";
    let is_date = hard(Mark::Hyphen) > 1 || is_slashed_date(run);
    if is_hexadecimal || is_time(run) || is_date || is_joined_by_hyphen(run) {
        return Vec::new();
    }
    if let Some(fraction) = fraction(run) {
        return vec![fraction];
    }
    let mut found = Vec::new();
    for (groups, marks) in parts(run) {
        let is_address = marks == [Mark::Dot; 3] && groups.iter().all(|group| group.len() <= 3);
        if is_address {
            return Vec::new();
        }
        read(groups, marks, Context { convention, is_listed: run.is_listed }, &mut found);
    }
    found
}

/// Whether ordinary spaces are all that joins some groups.
fn are_spaces(marks: &[Mark]) -> bool {
    !marks.is_empty() && marks.iter().all(|mark| *mark == Mark::Space)
}

fn is_hard(mark: Mark) -> bool {
    match mark {
        Mark::Dot | Mark::Comma | Mark::Decimal | Mark::Group | Mark::Space => false,
        Mark::Colon | Mark::Slash | Mark::Hyphen | Mark::Dash | Mark::Times => true,
    }
}

/// A run, cut at the marks that no number has inside.
fn parts(run: &Run) -> impl Iterator<Item = (&[Group], &[Mark])> {
    let mut starts = vec![0];
    starts.extend((0..run.marks.len()).filter(|at| is_hard(run.marks[*at])).map(|at| at + 1));
    let ends: Vec<usize> = starts[1..].iter().copied().chain([run.groups.len()]).collect();
    starts
        .into_iter()
        .zip(ends)
        .map(|(start, end)| (&run.groups[start..end], &run.marks[start..end - 1]))
}

/// `12:30`, `12:30:05.250`: two digits behind each colon.
fn is_time(run: &Run) -> bool {
    let behind =
        |(at, mark): (usize, &Mark)| (*mark == Mark::Colon).then(|| run.groups[at + 1].len());
    let mut lengths = run.marks.iter().enumerate().filter_map(behind).peekable();
    lengths.peek().is_some() && lengths.all(|length| length == 2)
}

/// `05/10/2024`
fn is_slashed_date(run: &Run) -> bool {
    run.marks == [Mark::Slash; 2] && run.groups.iter().all(|group| group.len() <= 4)
}

/// Whether the hyphen of a run joins what is no range: a year and its month, a telephone number, the
/// parts of an identifier.
fn is_joined_by_hyphen(run: &Run) -> bool {
    let Some(at) = run.marks.iter().position(|mark| *mark == Mark::Hyphen) else { return false };
    if run.marks.len() > 1 {
        return false;
    }
    let (left, right) = (&run.groups[at], &run.groups[at + 1]);
    let is_month = left.len() == 4 && right.len() == 2 && right.digits.as_str() <= "12";
    let is_telephone = left.len() == 3 && right.len() == 4;
    let is_falling = right.len() < left.len() && left.len() > 3;
    left.is_padded() || right.is_padded() || is_month || is_telephone || is_falling
}

/// `3/4`, and nothing that is a rating, a date or a part of something longer.
fn fraction(run: &Run) -> Option<Amount> {
    let [Mark::Slash] = run.marks[..] else { return None };
    let value = |group: &Group| group.digits.parse::<u32>().ok().filter(|_| !group.is_padded());
    let (above, below) = (value(&run.groups[0])?, value(&run.groups[1])?);
    let is_reduced = above % 2 == 1 && (below != 3 || above < 3);
    let is_clear = DENOMINATORS.contains(&below) && (above == 2 && below == 3 || is_reduced);
    (is_clear && above < below).then(|| Amount {
        place: run.place(),
        decimal: format!("{}", f64::from(above) / f64::from(below)),
        is_spaced: false,
        is_part: false,
    })
}

#[derive(Debug, Clone, Copy)]
struct Context {
    convention: Convention,
    is_listed: bool,
}

/// Reads groups without hard marks.
fn read(groups: &[Group], marks: &[Mark], context: Context, found: &mut Vec<Amount>) {
    if context.is_listed && marks.contains(&Mark::Comma) {
        return at_commas(groups, marks, context, found);
    }
    let decimal_at = decimal_at(groups, marks, context.convention);
    let whole = decimal_at.unwrap_or(marks.len());
    if is_grouped(&groups[..=whole], &marks[..whole]) {
        found.push(amount(groups, marks, decimal_at));
        // A group that begins with a zero is none by itself: `5 000`.
        let is_doubtful = are_spaces(marks) && !groups.iter().any(Group::is_padded);
        let part =
            |group| Amount { is_part: true, ..amount(std::slice::from_ref(group), &[], None) };
        found.extend(groups.iter().map(part).filter(|_| is_doubtful));
    } else if marks.contains(&Mark::Comma) {
        at_commas(groups, marks, context, found);
    } else if !marks.contains(&Mark::Dot) {
        found.extend(groups.iter().map(|group| amount(std::slice::from_ref(group), &[], None)));
    }
}

fn at_commas(groups: &[Group], marks: &[Mark], context: Context, found: &mut Vec<Amount>) {
    let mut start = 0;
    for end in 1..=groups.len() {
        if marks.get(end - 1).is_none_or(|mark| *mark == Mark::Comma) {
            read(&groups[start..end], &marks[start..end - 1], context, found);
            start = end;
        }
    }
}

/// Which mark is decimal: the last one if it is the only one of its kind, and if alone not ahead of
/// three digits by the convention of groups.
fn decimal_at(groups: &[Group], marks: &[Mark], convention: Convention) -> Option<usize> {
    let last = *marks.last()?;
    let at = marks.len() - 1;
    let is_only = marks.iter().filter(|mark| **mark == last).count() == 1;
    let could_group = marks.len() == 1
        && groups[1].len() == 3
        && groups[0].len() <= 3
        && !groups[0].digits.starts_with('0');
    let is_decimal = match last {
        Mark::Decimal => true,
        Mark::Dot => is_only && !(could_group && convention != Convention::Point),
        Mark::Comma => is_only && !(could_group && convention != Convention::Comma),
        Mark::Group
        | Mark::Space
        | Mark::Colon
        | Mark::Slash
        | Mark::Hyphen
        | Mark::Dash
        | Mark::Times => false,
    };
    is_decimal.then_some(at)
}

/// Whether groups are those of one whole number: of three digits behind the first, or as India writes
/// them, of two with three at the end.
fn is_grouped(groups: &[Group], marks: &[Mark]) -> bool {
    let [first, middle @ .., last] = groups else { return true };
    let is_one_kind = marks.windows(2).all(|pair| pair[0] == pair[1]);
    let is_headed = !first.digits.starts_with('0') && first.len() <= 3;
    let is_western = middle.iter().all(|group| group.len() == 3);
    let is_indian = first.len() <= 2
        && !middle.is_empty()
        && marks[0] == Mark::Comma
        && middle.iter().all(|group| group.len() == 2);
    is_one_kind && is_headed && last.len() == 3 && (is_western || is_indian)
}

fn amount(groups: &[Group], marks: &[Mark], decimal_at: Option<usize>) -> Amount {
    let mut decimal = String::new();
    for (at, group) in groups.iter().enumerate() {
        decimal.push_str(&group.digits);
        if decimal_at == Some(at) {
            decimal.push('.');
        }
    }
    let start = groups.first().map_or(0, |group| group.place.start);
    let end = groups.last().map_or(0, |group| group.place.end);
    Amount { place: start..end, decimal, is_spaced: are_spaces(marks), is_part: false }
}

#[cfg(test)]
mod tests {
    use super::super::run::runs;
    use super::*;

    fn read_all(text: &str) -> Vec<String> {
        let runs = runs(text);
        let convention = convention(&runs).unwrap_or(Convention::Point);
        runs.iter().flat_map(|run| amounts(run, convention)).map(|amount| amount.decimal).collect()
    }

    #[test]
    fn marks_are_read_by_their_company() {
        for (text, expected) in [
            ("1,234.56", "1234.56"),
            ("1.234,56", "1234.56"),
            ("1,234", "1234"),
            ("1.234", "1.234"),
            ("0,123", "0.123"),
            ("3,5", "3.5"),
            ("12,34,567.8", "1234567.8"),
            ("1'234'567.50", "1234567.50"),
            ("1.234.567", "1234567"),
            ("1\u{202F}234,5", "1234.5"),
            ("1/2", "0.5"),
            ("١٬٢٣٤٫٥", "1234.5"),
        ] {
            assert_eq!(read_all(text), [expected], "{text}");
        }
    }

    #[test]
    fn a_lone_mark_is_read_as_the_rest_of_the_text_writes() {
        assert_eq!(read_all("1.234 and 5,50 and 1.000,00"), ["1234", "5.50", "1000.00"]);
        assert_eq!(read_all("1,234 and 5.50"), ["1234", "5.50"]);
        assert_eq!(read_all("0.250 and 7,5"), ["0.250", "7.5"]);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        for text in [
            "2024-05-01",
            "2024-05",
            "05/10/2024",
            "12.05.2024",
            "12:30",
            "12:30:05.25",
            "192.168.100.200",
            "1.2.3",
            "555-123-4567",
            "555-1234",
            "10.0.0.1:8080",
            "2041-7",
        ] {
            assert_eq!(read_all(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn ranges_ratings_and_lists_are_several_numbers() {
        assert_eq!(
            read_all("10-20 10–20 7/10 3:1 2x4 120/80"),
            ["10", "20", "10", "20", "7", "10", "3", "1", "2", "4", "120", "80"]
        );
        assert_eq!(read_all("[1,2,300]"), ["1", "2", "300"]);
        assert_eq!(read_all("1,2,3"), ["1", "2", "3"]);
    }

    #[test]
    fn a_space_leaves_both_readings() {
        assert_eq!(read_all("12 500"), ["12500", "12", "500"]);
        assert_eq!(read_all("12 500,50"), ["12500.50"]);
        assert_eq!(read_all("1 250 000"), ["1250000"]);
    }
}
