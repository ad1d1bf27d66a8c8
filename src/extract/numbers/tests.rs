//! Goal: the written forms of numbers are found with their values, what is no number is not, and no
//! text breaks the search. Method: tables of texts, and laws over random ones.

use proptest::prelude::*;

use super::*;

fn plain() -> NumberCriteria {
    NumberCriteria::default()
}

fn values(text: &str) -> Vec<f64> {
    numbers(text, &plain()).into_iter().map(|one| one.value).collect()
}

#[test]
fn a_number_that_no_double_holds_is_none_and_not_zero() {
    assert_eq!(values("1e-400 and 1e400 and 0e-400 and 5"), [0.0, 5.0]);
}

fn assert_values(cases: &[(&str, &[f64])]) {
    for (text, expected) in cases {
        assert_eq!(values(text), *expected, "{text}");
    }
}

#[test]
fn written_forms_have_their_values() {
    assert_values(&[
        ("Total due: $1,234.56 by May", &[1234.56]),
        ("−3.5 °C and -7", &[-3.5, -7.0]),
        ("fell by 12% to 0.5 %", &[12.0, 0.5]),
        ("EUR 5.000,00 and 3,5 kg", &[5000.0, 3.5]),
        ("₹12,34,567", &[1_234_567.0]),
        ("12 500,50 ₽", &[12500.5]),
        ("Итого 12 500 руб. за 3 шт.", &[12500.0, 3.0]),
        ("1.2e-3 or 1.2×10^3 or 4 × 10⁻²", &[0.0012, 1200.0, 0.04]),
        ("$5m, 12k, 3bn, 2.5 million, 7 thousand", &[5e6, 12e3, 3e9, 2.5e6, 7e3]),
        ("½ cup, 2½ cups, 1 1/2 spoons, 3/4 full", &[0.5, 2.5, 1.5, 0.75]),
        ("共计１２３４元，约5.5万人", &[1234.0, 55_000.0]),
        ("कुल ₹५,००० और ३ दिन", &[5000.0, 3.0]),
        ("المبلغ ١٢٣٤٫٥", &[1234.5]),
        (
            r#"{"a": 1, "b": -2.50, "c": [3,4], "d": "5\n6\n-7", "e": 1e3}"#,
            &[1.0, -2.5, 3.0, 4.0, 5.0, 6.0, -7.0, 1000.0],
        ),
        ("10-20 million, £1–2m", &[10e6, 20e6, 1e6, 2e6]),
        ("in 2024, on 12 May 2023", &[2024.0, 12.0, 2023.0]),
        ("rated 4/5 and 7/10; score 3:1", &[4.0, 5.0, 7.0, 10.0, 3.0, 1.0]),
        (".5 mg", &[0.5]),
        ("€1.200 a month or €1,300", &[1200.0, 1300.0]),
        ("sku,qty,price\nA1,2,250.00\nB2,13,7.50", &[2.0, 250.0, 13.0, 7.5]),
        ("价格1,200元,数量3,000件,好", &[1200.0, 3000.0]),
        ("20°C/68°F", &[20.0, 68.0]),
        ("minus 15 °C, минус 3, 零下5度, 10 minus 2", &[-15.0, -3.0, -5.0, 10.0, 2.0]),
    ]);
}

#[test]
fn english_words_have_their_values() {
    assert_values(&[
        ("twenty-three people", &[23.0]),
        ("one hundred and five days", &[105.0]),
        ("a dozen eggs, two dozen more, half a dozen left", &[12.0, 24.0, 6.0]),
        ("two and a half hours", &[2.5]),
        ("2 and a half hours", &[2.5]),
        ("three million two hundred thousand and six", &[3_200_006.0]),
        ("half a million, a thousand", &[5e5, 1e3]),
        ("two point five million", &[2.5e6]),
        ("minus five", &[-5.0]),
        ("nineteen ninety-nine, twenty twenty-four", &[1999.0, 2024.0]),
        ("five and six", &[5.0, 6.0]),
        ("five, six", &[5.0, 6.0]),
        ("one of them, no one, the one that, one-way", &[]),
        ("exactly one error; charged twice", &[1.0, 2.0]),
        ("three quarters", &[0.75]),
        ("zero, nobody, tenant, someone, done", &[0.0]),
        ("Forty-two\nthousand", &[42_000.0]),
        ("twenty twenty", &[2020.0]),
    ]);
}

#[test]
fn what_is_no_number_is_not_found() {
    for text in [
        "INV-2041",
        "ABC123",
        "v1.2.3",
        "2024-05-01",
        "2024-05-01T12:30:00Z",
        "at 12:30",
        "10.0.0.1",
        "+1 555 123 4567",
        "555-123-4567",
        "https://x.org/12/34",
        "a1@b2.org",
        "550e8400-e29b-41d4-a716-446655440000",
        "0x1F",
        "file7.txt",
        "12.05.2024",
        "5G-A1B2",
        "Q3",
        "H2O",
    ] {
        assert_eq!(values(text), Vec::<f64>::new(), "{text}");
    }
}

#[test]
fn brackets_are_a_minus_in_a_cell_only() {
    assert_values(&[
        ("Net loss: (1,234.50)", &[-1234.5]),
        ("| Refund | ($20) |", &[-20.0]),
        ("the fee (€1,200) is due", &[1200.0]),
        ("Net loss: (1,234.50) as of May", &[1234.5]),
        ("as shown (5)", &[5.0]),
        ("Share: (12.5%)", &[12.5]),
    ]);
}

#[test]
fn equal_values_are_one_candidate_with_all_places() {
    let text = "1,200 or 1200.00 or twelve hundred or 7";
    let found = numbers(text, &plain());
    assert_eq!(found.len(), 2);
    let shown: Vec<&str> = found[0].places.iter().map(|place| &text[place.clone()]).collect();
    assert_eq!(shown, ["1,200", "1200.00", "twelve hundred"]);
}

#[test]
fn precision_rounds_before_the_limits_exclude() {
    let criteria = NumberCriteria { min: Some(1.0), max: Some(2.0), precision: Some(0.5) };
    let found = numbers("0.7 0.8 1.2 1.24 1.25 2.2 2.3", &criteria);
    let values: Vec<f64> = found.iter().map(|one| one.value).collect();
    assert_eq!(values, [1.0, 1.5, 2.0]);
    assert_eq!(found[0].places.len(), 3);
}

#[test]
fn a_half_is_rounded_away_from_zero() {
    let by = |precision, value| {
        let criteria = NumberCriteria { precision: Some(precision), ..plain() };
        criteria.rounded(value).to_string()
    };
    assert_eq!(by(0.01, 1.005), "1.01");
    assert_eq!(by(0.01, -1.005), "-1.01");
    assert_eq!(by(1.0, 2.5), "3");
    assert_eq!(by(0.01, 123.456), "123.46");
    assert_eq!(by(5.0, 12.4), "10");
    assert_eq!(by(0.0, 1.234), "1.234");
    let tiny = NumberCriteria { precision: Some(1e-320), ..plain() };
    assert_eq!(tiny.rounded(1e300).to_bits(), 1e300_f64.to_bits());
}

#[test]
fn the_first_candidates_are_kept() {
    let text: String = (0..400_u32).map(|value| value.to_string() + "; ").collect();
    let found = values(&text);
    assert_eq!(found.len(), CANDIDATES_MAX);
    assert_eq!(found.last(), Some(&253.0));
}

#[test]
fn places_hold_the_number_as_written() {
    let text = "pay -$ 1,234.5 million or 12 % now";
    let found = numbers(text, &plain());
    let shown: Vec<&str> = found.iter().map(|one| &text[one.places[0].clone()]).collect();
    assert_eq!(shown, ["-$ 1,234.5 million", "12 %"]);
}

/// Pieces that numbers are made of, so that random texts are full of them.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[0-9]{1,4}",
        "[ .,:;/'()$€%eExX×^+−–-]{1,2}",
        prop_oneof![
            Just("½"),
            Just("１"),
            Just("万"),
            Just("५"),
            Just("⁻"),
            Just("million"),
            Just("and a half"),
            Just(" one "),
            Just("hundred "),
            Just("\\n"),
            Just("\""),
            Just("["),
            Just("a"),
            Just("10"),
            Just("\u{301}"),
            Just("\u{202F}"),
            Just("🙂"),
            Just("point "),
            Just("twenty "),
            Just("\r\n"),
        ]
        .prop_map(str::to_owned),
        ".{0,3}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_text_has_finite_numbers_at_places_in_order(text in pieces()) {
        let found = numbers(&text, &plain());
        let mut last = 0;
        for one in &found {
            prop_assert!(one.value.is_finite());
            prop_assert!(one.places[0].start >= last);
            last = one.places[0].start;
            for place in &one.places {
                prop_assert!(text.get(place.clone()).is_some_and(|shown| !shown.is_empty()));
            }
            prop_assert!(one.places.windows(2).all(|pair| pair[0].start <= pair[1].start));
        }
    }

    #[test]
    fn a_double_written_in_a_sentence_is_found(value in -1e9..1e9_f64) {
        let text = format!("It is {value} exactly.");
        prop_assert_eq!(values(&text), vec![value]);
    }

    #[test]
    fn rounding_is_near_and_keeps_the_order(a in -1e6..1e6_f64, b in -1e6..1e6_f64, step in 1e-3..1e3_f64) {
        let criteria = NumberCriteria { precision: Some(step), ..plain() };
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        prop_assert!(criteria.rounded(low) <= criteria.rounded(high));
        prop_assert!((criteria.rounded(a) - a).abs() <= step * 0.5001);
    }
}

#[test]
fn values_that_stand_in_a_row_can_be_read_one_by_one() {
    assert_values(&[
        ("Revenue 120 135 150", &[120_135_150.0, 120.0, 135.0, 150.0]),
        ("Items 3 250 600", &[3_250_600.0, 3.0, 250.0, 600.0]),
        ("1 000 and 2 000 of 3 000 500", &[1000.0, 2000.0, 3_000_500.0]),
        ("12 500 500 EUR", &[12_500_500.0]),
    ]);
}

#[test]
fn a_room_is_no_number_of_billions() {
    assert_values(&[("room 12B", &[12.0]), ("1.4B people, $3B", &[1.4e9, 3e9])]);
}
