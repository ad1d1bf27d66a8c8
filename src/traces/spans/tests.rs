//! Spans against the times that they are made of.

use actors::Lane;
use proptest::prelude::*;

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Prepare, queue wait, state wait, engine wait, engine time.
fn cost([prepare, queue, state, wait, engine]: [u64; 5]) -> Cost {
    Cost {
        lane: Lane::Normal,
        input_tokens: 10,
        prompt_tokens: 20,
        computed_tokens: 15,
        cached_tokens: 5,
        prepare: ms(prepare),
        queue_wait: ms(queue),
        state_wait: ms(state),
        state_time: ms(state),
        engine_wait: ms(wait),
        engine_time: ms(engine),
        steps_time: ms(engine),
        behind_registration: false,
        state_tokenisations: 1,
        rows: Vec::new(),
        prefix_tokens: 7,
        runs: 2,
    }
}

fn request(took: u64) -> Request {
    Request {
        method: "POST",
        route: "/v1/systemone",
        scheme: "http",
        status: 200,
        reason: None,
        dialect: "systemone",
        lane: Some("normal"),
        tenant: "0a1b2c3d".to_owned(),
        request_id: "ticket-7".to_owned(),
        took: ms(took),
    }
}

fn whole(took: u64, times: [u64; 5]) -> Work {
    Work {
        state: None,
        began: Duration::ZERO,
        tried: Duration::ZERO,
        ended: ms(took),
        status: 200,
        reason: None,
        questions: 3,
        cost: Some(cost(times)),
    }
}

fn laid(spans: &[Span]) -> Vec<(&'static str, Option<usize>, u64, u64)> {
    let at = |time: Duration| u64::try_from(time.as_millis()).unwrap();
    spans.iter().map(|span| (span.name, span.parent, at(span.from), at(span.until))).collect()
}

fn attribute<'a>(span: &'a Span, name: &str) -> Option<&'a Attribute> {
    span.attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[test]
fn the_parts_of_a_decision_stand_end_to_end_and_the_rest_is_the_readout() {
    let spans = spans(&request(40), &Works::one(whole(39, [1, 5, 6, 7, 8])));
    let expected = [
        ("request", None, 0, 40),
        ("render", Some(0), 0, 1),
        ("queue", Some(0), 1, 6),
        ("state", Some(0), 6, 12),
        ("queue", Some(0), 12, 19),
        ("step", Some(0), 19, 27),
        ("readout", Some(0), 27, 40),
    ];
    assert_eq!(laid(&spans), expected);
    assert_eq!(attribute(&spans[0], "docket.questions"), Some(&Attribute::Count(3)));
    assert_eq!(attribute(&spans[0], "docket.tokens.cached"), Some(&Attribute::Count(5)));
    assert_eq!(attribute(&spans[4], "docket.waits_for"), Some(&word("engine")));
    assert_eq!(attribute(&spans[5], "docket.steps"), Some(&Attribute::Count(2)));
}

#[test]
fn what_took_no_time_has_no_span() {
    let spans = spans(&request(30), &Works::one(whole(30, [1, 5, 0, 0, 24])));
    let names: Vec<&str> = spans.iter().map(|span| span.name).collect();
    assert_eq!(names, ["request", "render", "queue", "step"]);
}

#[test]
fn a_refused_request_has_its_reason_and_no_parts() {
    let refused = |status, reason| Request { status, reason: Some(reason), ..request(3) };
    let full = spans(&refused(429, "queue_full"), &Works::default());
    assert_eq!(laid(&full), [("request", None, 0, 3)]);
    assert_eq!(attribute(&full[0], "docket.reason"), Some(&word("queue_full")));
    assert!(!full[0].failed && attribute(&full[0], "error.type").is_none());
    let failed = spans(&refused(500, "engine"), &Works::default());
    assert!(failed[0].failed);
    assert_eq!(attribute(&failed[0], "error.type"), Some(&word("engine")));
}

#[test]
fn each_state_of_a_batch_is_a_decision_with_parts_of_its_own() {
    let mut works = Works::default();
    // The first began at once; the second found no room at 5 and was tried again at 20, when 12 of
    // what counts as its preparation since the request's first byte were its own.
    works.add(Work { state: Some(0), ended: ms(10), ..whole(10, [2, 0, 0, 0, 8]) });
    let second = whole(40, [32, 0, 0, 0, 6]);
    works.add(Work { state: Some(1), began: ms(5), tried: ms(20), ..second });
    let lost = Work { cost: None, status: 504, reason: Some("timeout"), ..whole(50, [0; 5]) };
    works.add(Work { state: Some(2), began: ms(6), questions: 0, ..lost });
    let spans = spans(&request(60), &works);
    let expected = [
        ("request", None, 0, 60),
        ("decision", Some(0), 0, 10),
        ("render", Some(1), 0, 2),
        ("step", Some(1), 2, 10),
        ("decision", Some(0), 5, 40),
        ("render", Some(4), 20, 32),
        ("step", Some(4), 32, 38),
        ("readout", Some(4), 38, 40),
        ("decision", Some(0), 6, 50),
    ];
    assert_eq!(laid(&spans), expected);
    assert!(spans[8].failed && !spans[0].failed);
    assert_eq!(attribute(&spans[0], "docket.decisions"), Some(&Attribute::Count(3)));
    assert_eq!(attribute(&spans[0], "docket.questions"), Some(&Attribute::Count(6)));
}

#[test]
fn the_spans_of_a_large_batch_are_bounded_and_its_sums_are_whole() {
    let mut works = Works::default();
    for state in 0..STATES_MAX + 100 {
        works.add(Work { state: Some(state), ..whole(50, [1, 2, 3, 4, 5]) });
    }
    let spans = spans(&request(60), &works);
    assert_eq!(spans.len(), SPANS_MAX);
    let all = (STATES_MAX + 100) as u64;
    assert_eq!(attribute(&spans[0], "docket.decisions"), Some(&Attribute::Count(all)));
    assert_eq!(attribute(&spans[0], "docket.tokens.input"), Some(&Attribute::Count(10 * all)));
}

#[test]
fn rows_are_not_kept() {
    use crate::question::answer::RowTokens;

    let rows = vec![RowTokens { prompt: 1, cached: 0 }];
    let cost = Cost { rows, ..cost([1; 5]) };
    assert!(without_rows(&cost).rows.is_empty());
    assert_eq!(without_rows(&cost).input_tokens, 10);
}

proptest! {
    /// Whatever the times say of each other, a trace can be drawn.
    #[test]
    fn parts_lie_within_their_parent_in_order_and_fill_it(
        took in 0_u64..200,
        times in prop::array::uniform5(0_u64..100),
        marks in prop::array::uniform3(0_u64..250),
        is_batch in any::<bool>(),
    ) {
        let work = if is_batch {
            let [began, tried, ended] = marks.map(ms);
            Work { state: Some(0), began, tried, ended, ..whole(took, times) }
        } else {
            whole(took, times)
        };
        let spans = spans(&request(took), &Works::one(work));
        for span in &spans {
            prop_assert!(span.from <= span.until);
            let Some(parent) = span.parent else { continue };
            let parent = &spans[parent];
            prop_assert!(parent.from <= span.from && span.until <= parent.until, "{spans:?}");
        }
        let parent = usize::from(is_batch);
        let parts: Vec<&Span> = spans.iter().filter(|span| span.parent == Some(parent) && span.name != "decision").collect();
        for pair in parts.windows(2) {
            prop_assert_eq!(pair[0].until, pair[1].from);
        }
        if !is_batch && took > 0 {
            let sum: Duration = parts.iter().map(|part| length(part)).sum();
            prop_assert_eq!(sum, length(&spans[0]));
        }
    }
}

fn length(span: &Span) -> Duration {
    span.until.saturating_sub(span.from)
}
