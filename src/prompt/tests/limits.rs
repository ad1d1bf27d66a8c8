//! How far prompts are made: orders, lengths, and texts that nobody waits for.

use super::*;
use crate::prompt::layout::PerKind;
use crate::prompt::tokens::Gone;

fn own_tokens(prompter: &Prompter, question: &Question) -> u32 {
    let within = Within { tokens_max: 1_000, gone: &Gone::default() };
    Rendering::new(prompter, question).own_tokens(within).unwrap()
}

#[test]
fn a_question_is_counted_without_its_id_and_its_options_once() {
    let made = prompter(&named::BARE);
    let mut renamed = choice(&["a", "b"]);
    renamed.id = "another".to_owned();
    let tokens = own_tokens(&made, &renamed);
    assert_eq!(tokens, own_tokens(&made, &choice(&["a", "b"])));
    assert_eq!(tokens + 3, own_tokens(&made, &choice(&["a", "bcde"])));
}

#[test]
fn orders_are_lowered_to_what_differs_and_to_the_limit() {
    let samples = PerKind { noul: 1, choice: 3, score: 2 };
    let profile = Profile { samples, ..profile(&named::BARE) };
    let bytes = Arc::new(ByteTokenizer::new());
    let made = Prompter::new(bytes, &ByteTokenizer::facts(), profile, "model").unwrap();
    let five = choice(&["a", "b", "c", "d", "e"]);
    assert_eq!(made.orders(&five, Samples::Auto, 32), 3);
    assert_eq!(made.orders(&five, Samples::Count(99), 32), 5);
    assert_eq!(made.orders(&five, Samples::Count(4), 2), 2);
    assert_eq!(made.orders(&score(&["a", "b", "c"]), Samples::Count(9), 32), 2);
    assert_eq!(made.orders(&noul("q"), Samples::Auto, 32), 1);
    let own = Question { samples: Some(Samples::Count(2)), ..noul("q") };
    assert_eq!(made.orders(&own, Samples::Auto, 32), 2);
}

#[test]
fn orders_that_nobody_asked_for_are_as_many_as_can_be_afforded() {
    let affordable = |tokens| Prompter::affordable(4, tokens);
    assert_eq!([0, 1_024, 1_025, 2_048, 4_096, 1 << 40].map(affordable), [4, 4, 3, 2, 1, 1]);
}

#[test]
fn a_state_that_does_not_fit_is_refused_and_not_kept() {
    let made = prompter(&named::BARE);
    let state = string(&" ".repeat(20_000_000));
    let within = Within { tokens_max: 1_000, gone: &Gone::default() };
    let refused = made.prefix_within(&Told::of(state), SALT, within).unwrap_err();
    assert!(matches!(refused, Unfit::AtLeast(20_000_000..)), "{refused:?}");
    let short = Told::of(string("short"));
    let gone = Gone::default();
    gone.set();
    let within = Within { tokens_max: 1_000, gone: &gone };
    assert_eq!(made.prefix_within(&short, SALT, within).unwrap_err(), Unfit::Gone);
    assert!(made.prefix(&short.state, SALT).tokenised, "nothing was kept of it");
}
