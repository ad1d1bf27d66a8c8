//! Whole readings: rounds of reads in, answers out, with numbers worked by hand or recorded.

use proptest::prelude::*;

use super::*;

fn reading(logprobs: &[f32]) -> LabelReading {
    LabelReading {
        logprobs: logprobs.to_vec(),
        log_mass: Some(0.0),
        greedy_is_label: true,
        hidden: None,
    }
}

fn choice(keys: &[&str]) -> ReadingKind {
    ReadingKind::Choice { keys: keys.iter().map(|&key| key.to_owned()).collect() }
}

fn numbered(options: usize) -> ReadingKind {
    ReadingKind::Choice { keys: (0..options).map(|i| format!("o{i}")).collect() }
}

fn spec(kind: ReadingKind) -> ReadingSpec {
    ReadingSpec {
        kind,
        labels_max: 52,
        orders: 1,
        entropy_max: None,
        temperature: 1.0,
        correction: None,
    }
}

/// Log-probabilities of an option by a bias for the first position and for option 0.
fn biased(position_bias: f32, option_bias: f32) -> impl Fn(usize, usize) -> f32 {
    move |option, position| {
        let first = if position == 0 { position_bias } else { 0.0 };
        first + if option == 0 { option_bias } else { 0.0 }
    }
}

#[test]
fn a_certain_average_wants_no_further_order() {
    let adaptive = |orders, entropy_max| ReadingSpec {
        orders,
        entropy_max: Some(entropy_max),
        ..spec(numbered(4))
    };
    let orders = |spec, of: &dyn Fn(usize, usize) -> f32| read(spec, of).1.orders;
    assert_eq!(orders(adaptive(4, 0.1), &biased(0.0, 20.0)), 1, "certain at once");
    assert_eq!(orders(adaptive(4, 0.1), &biased(0.0, 0.0)), 4, "never certain");
    assert_eq!(orders(adaptive(4, 2.0), &biased(0.0, 0.0)), 1, "no distribution is so uncertain");
    // Certain in the first order by its position alone, which one order cannot tell.
    assert_eq!(orders(adaptive(4, 0.1), &biased(20.0, 0.0)), 1);
    assert_eq!(orders(adaptive(1, 0.0), &biased(0.0, 0.0)), 1);
}

#[test]
fn orders_one_after_the_other_give_what_they_give_at_once() {
    let all = ReadingSpec { orders: 3, ..spec(numbered(3)) };
    let one_by_one = ReadingSpec { entropy_max: Some(0.0), ..all.clone() };
    let own = biased(0.7, 0.3);
    assert_eq!(read(all, &own), read(one_by_one, &own));
    let chunked = ReadingSpec { labels_max: 3, orders: 2, ..spec(numbered(8)) };
    let one_by_one = ReadingSpec { entropy_max: Some(0.0), ..chunked.clone() };
    assert_eq!(read(chunked, &own), read(one_by_one, &own));
}

/// Reads a question to its end; `logprob` gives each displayed option's value from its index and
/// its position.
fn read(spec: ReadingSpec, logprob: impl Fn(usize, usize) -> f32) -> (Value, Diagnostics) {
    let mut question = Reading::new(spec);
    loop {
        let wanted = question.wanted();
        if wanted.is_empty() {
            return question.finish();
        }
        let give = |shown: Shown| {
            let at = shown.options.iter().enumerate();
            reading(&at.map(|(position, &option)| logprob(option, position)).collect::<Vec<_>>())
        };
        question.absorb(wanted.into_iter().map(give).collect()).unwrap();
    }
}

fn probabilities(value: &Value) -> Vec<f64> {
    match value {
        Value::Noul { yes } => vec![1.0 - yes, *yes],
        Value::Choice { probabilities, .. } | Value::Score { probabilities, .. } => {
            probabilities.clone()
        }
        Value::Number(_) | Value::Excerpt(_) | Value::Skipped { .. } => Vec::new(),
    }
}

#[test]
fn a_choice_is_read_in_request_order_first() {
    let three = ReadingSpec { orders: 3, ..spec(choice(&["c", "a", "b"])) };
    let wanted: Vec<_> = Reading::new(three).wanted().into_iter().map(|s| s.options).collect();
    assert_eq!(wanted, vec![vec![0, 1, 2], vec![1, 2, 0], vec![2, 0, 1]]);
}

#[test]
fn a_noul_is_read_in_both_orders_and_its_first_is_the_layouts() {
    let both = ReadingSpec { orders: 9, ..spec(ReadingKind::Noul { yes_first: true }) };
    let wanted: Vec<_> = Reading::new(both).wanted().into_iter().map(|s| s.options).collect();
    assert_eq!(wanted, vec![vec![1, 0], vec![0, 1]]);
}

#[test]
fn a_noul_answers_with_the_probability_of_option_1() {
    // Label A stands for no in the first layout and for yes in the second.
    for (yes_first, expected) in [(false, 0.25), (true, 0.75)] {
        let logprob = |_, position| if position == 0 { 0.75_f32.ln() } else { 0.25_f32.ln() };
        let (value, _) = read(spec(ReadingKind::Noul { yes_first }), logprob);
        let Value::Noul { yes } = value else { panic!("{value:?}") };
        assert!((yes - expected).abs() < 1e-7, "{yes}");
    }
}

#[test]
fn a_model_that_answers_the_position_says_nothing_once_all_orders_are_averaged() {
    let all = ReadingSpec { orders: 4, ..spec(numbered(4)) };
    let (value, diagnostics) = read(all, |_, position| if position == 0 { 0.0 } else { -3.0 });
    let p = probabilities(&value);
    assert!(p.iter().all(|p| (p - 0.25).abs() < 1e-12), "{value:?}");
    assert!(p.iter().all(|other| other.to_bits() == p[0].to_bits()), "an exact tie: {p:?}");
    assert_eq!((diagnostics.orders, diagnostics.reads), (4, 4));
    assert!((diagnostics.order_consistency - 0.25).abs() < 1e-12, "{diagnostics:?}");
}

#[test]
fn temperature_comes_after_the_average() {
    // Orders give .9/.1 and .5/.5 for option 0; their mean .7/.3 at T = 2 goes with square roots.
    let logprob = |option: usize, position: usize| match (option, position) {
        (0, 0) => 0.9_f32.ln(),
        (1, 1) => 0.1_f32.ln(),
        _ => 0.5_f32.ln(),
    };
    let two = ReadingSpec { orders: 2, temperature: 2.0, ..spec(numbered(2)) };
    let (value, _) = read(two, logprob);
    let expected = 0.7_f64.sqrt() / (0.7_f64.sqrt() + 0.3_f64.sqrt());
    assert!((probabilities(&value)[0] - expected).abs() < 1e-7, "{value:?}");
}

#[test]
fn a_tie_goes_to_the_key_first_in_code_point_order() {
    let (value, _) = read(spec(choice(&["é", "b", "a", "Z"])), |_, _| -1.0);
    let Value::Choice { chosen, confidence, .. } = value else { panic!("{value:?}") };
    assert_eq!(chosen, 3, "Z (U+005A) is before a, b and é");
    assert!(confidence.abs() < 1e-12);
}

#[test]
fn a_lone_option_is_certain() {
    let (value, diagnostics) = read(spec(choice(&["only"])), |_, _| -7.0);
    let Value::Choice { chosen, probabilities, confidence, .. } = value else {
        panic!("{value:?}")
    };
    assert_eq!((chosen, probabilities, confidence), (0, vec![1.0], 1.0));
    assert_eq!(diagnostics.reads, 1);
}

#[test]
fn score_levels_with_equal_texts_keep_their_own_probabilities() {
    let legend = ["same", "same", "other"].map(str::to_owned).to_vec();
    let p = [0.5_f32, 0.25, 0.25];
    let (value, _) = read(spec(ReadingKind::Score { legend }), |level, _| p[level].ln());
    let Value::Score { mean, legend, probabilities, .. } = value else { panic!("{value:?}") };
    assert_eq!(legend.len(), 3);
    assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!((mean - 0.75).abs() < 1e-7, "0 * .5 + 1 * .25 + 2 * .25, not {mean}");
}

#[test]
fn a_score_has_the_recorded_mean() {
    // Recorded from vLLM 0.33 for label logprobs -0.1, -3, -5.
    let legend = ["lo", "mid", "hi"].map(str::to_owned).to_vec();
    let logprobs = [-0.1, -3.0, -5.0];
    let (value, _) = read(spec(ReadingKind::Score { legend }), |level, _| logprobs[level]);
    let Value::Score { mean, .. } = value else { panic!("{value:?}") };
    assert!((mean - 0.065_805_527_830_024_16).abs() < 1e-8, "{mean}");
}

#[test]
fn sixty_options_on_52_labels_take_two_chunks_and_a_final() {
    // Recorded by running gmlx 0.5.3's own tournament at T = 0.85: o0 .10780, o30 .03324. Its
    // letter scores are not in the record; -(letter mod 7) gives both numbers.
    let sixty = ReadingSpec { temperature: 0.85, ..spec(numbered(60)) };
    let (value, diagnostics) = read(sixty, |_, position| -((position % 7) as f32));
    let p = probabilities(&value);
    assert_eq!(diagnostics.reads, 3);
    assert!((p[0] - 0.107_797_991_728_600_77).abs() < 1e-12, "{}", p[0]);
    assert!((p[30] - 0.033_241_145_818_304_27).abs() < 1e-12, "{}", p[30]);
    assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn winners_that_exceed_the_labels_are_chunked_again() {
    let many = ReadingSpec { labels_max: 3, ..spec(numbered(20)) };
    let (value, _) = read(many, |option, _| if option == 13 { 0.0 } else { -2.0 });
    let Value::Choice { chosen, .. } = &value else { panic!("{value:?}") };
    assert_eq!(*chosen, 13);
    assert!((probabilities(&value).iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn a_chunk_of_one_needs_no_read() {
    let five = ReadingSpec { labels_max: 2, ..spec(numbered(5)) };
    let wanted = Reading::new(five).wanted();
    assert_eq!(wanted.iter().map(|s| s.options.len()).collect::<Vec<_>>(), vec![2, 2]);
}

#[test]
fn case_42_a_read_without_a_finite_label_fails_its_question() {
    let mut question = Reading::new(spec(numbered(3)));
    assert_eq!(question.absorb(vec![reading(&[f32::NAN; 3])]), Err(NonFinite));
    let mut question = Reading::new(spec(numbered(3)));
    question.absorb(vec![reading(&[f32::NEG_INFINITY, -1.0, -1.0])]).unwrap();
    assert_eq!(probabilities(&question.finish().0), vec![0.0, 0.5, 0.5]);
}

#[test]
fn diagnostics_average_the_label_mass_and_need_every_greedy_token() {
    let mut question = Reading::new(ReadingSpec { orders: 2, ..spec(numbered(2)) });
    let with = |mass: Option<f32>, greedy_is_label| LabelReading {
        log_mass: mass.map(f32::ln),
        greedy_is_label,
        ..reading(&[-1.0, -1.0])
    };
    let mut unknown = question.clone();
    question.absorb(vec![with(Some(0.5), true), with(Some(0.25), false)]).unwrap();
    let diagnostics = question.finish().1;
    assert!((diagnostics.label_mass.unwrap() - 0.375).abs() < 1e-6);
    assert!(!diagnostics.argmax_is_label);
    assert!((diagnostics.entropy - std::f64::consts::LN_2).abs() < 1e-12);

    unknown.absorb(vec![with(None, true), with(Some(0.25), true)]).unwrap();
    let diagnostics = unknown.finish().1;
    assert_eq!((diagnostics.label_mass, diagnostics.argmax_is_label), (None, true));
}

#[test]
fn label_mass_never_exceeds_1() {
    let mut question = Reading::new(spec(numbered(2)));
    let mut above = reading(&[-0.7, -0.7]);
    above.log_mass = Some(1e-6);
    question.absorb(vec![above]).unwrap();
    assert_eq!(question.finish().1.label_mass, Some(1.0));
}

proptest! {
    /// Whatever the numbers, chunks, orders and temperature: a distribution.
    #[test]
    fn every_reading_ends_in_a_distribution(
        options in 1_usize..256,
        labels_max in 2_usize..120,
        orders in 1_u32..6,
        temperature in 0.01_f64..8.0,
        seed in any::<u32>(),
    ) {
        let spec = ReadingSpec { labels_max, orders, temperature, ..spec(numbered(options)) };
        let noise = |option: usize, position: usize| {
            let mixed = (option * 31 + position + seed as usize).wrapping_mul(2_654_435_761);
            -(((mixed >> 8) % 4096) as f32) / 200.0
        };
        let (value, diagnostics) = read(spec, noise);
        let p = probabilities(&value);
        prop_assert_eq!(p.len(), options);
        prop_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        prop_assert!(p.iter().all(|p| (0.0..=1.0).contains(p)));
        prop_assert!((0.0..=1.0).contains(&diagnostics.order_consistency));
        let Value::Choice { chosen, confidence, .. } = value else { panic!("a choice") };
        prop_assert!(p.iter().all(|other| *other <= p[chosen]));
        prop_assert!((0.0..=1.0).contains(&confidence));
    }

    /// An option's probability does not depend on where it was displayed, once every position was.
    #[test]
    fn all_rotations_of_an_unbiased_model_agree_with_one(options in 2_usize..30, seed in any::<u16>()) {
        let own = |option: usize, _| -(((option * 37 + usize::from(seed)) % 23) as f32) / 5.0;
        let one = read(spec(numbered(options)), own).0;
        let all = read(ReadingSpec { orders: 32, ..spec(numbered(options)) }, own).0;
        for (a, b) in probabilities(&one).iter().zip(probabilities(&all)) {
            prop_assert!((a - b).abs() < 1e-12);
        }
    }
}
