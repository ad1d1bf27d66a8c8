//! The report: that its numbers are the measures', and that it says when not to trust them.

use tokio::time::Instant;

use super::*;
use crate::exchange::{Exchange, Reply, Stages};
use crate::measure::Label;

const OPEN: Loop = Loop::Open { rate: 100.0, duration: Duration::from_secs(10), connections: 64 };

fn label(now: Instant) -> Label {
    let limit = Some(Duration::from_millis(10));
    Label {
        number: 0,
        lane: "urgent",
        tenant: 0,
        questions: 2,
        limit,
        intended: now,
        first_sent: now,
        waited: false,
        is_loaded: true,
    }
}

fn exchange(now: Instant, outcome: Outcome, took_ms: u64) -> Exchange {
    let ended = now + Duration::from_millis(took_ms);
    Exchange::bare(outcome, now, ended)
}

/// Two answered, 4 and 20 ms, and one refused.
fn report(kind: Loop) -> Report {
    let (now, mut measures) = (Instant::now(), Measures::new(1));
    let stages = Stages {
        queue_us: 500,
        state_us: 0,
        engine_wait_us: 100,
        engine_us: 2_000,
        total_us: 3_000,
    };
    let reply = Reply { status: 200, computed_tokens: 7, stages: Some(stages), ..Reply::default() };
    let quick = exchange(now, Outcome::Answered, 4);
    measures.record(label(now), Exchange { reply: Some(reply), ..quick });
    measures.record(label(now), exchange(now, Outcome::Answered, 20));
    let refusal = Reply {
        status: 429,
        reason: Some("queue_full".to_owned()),
        retry_after_ms: Some(1_500),
        ..Reply::default()
    };
    let refused = exchange(now, Outcome::Refused, 1);
    measures.record(label(now), Exchange { reply: Some(refusal), ..refused });
    let (load, whole) = (Duration::from_secs(1), Duration::from_secs(2));
    Report { kind, measures, load, whole, tenants: vec!["acme".to_owned()], ..Report::default() }
}

#[test]
fn json_has_the_numbers_of_the_run() {
    let json = report(OPEN).json();
    assert_eq!(json["offered_rate"], 3.0);
    assert_eq!(json["achieved_rate"], 2.0);
    assert_eq!(json["answers_rate"], 4.0);
    assert_eq!(json["all"]["outcomes"]["refused"], 1);
    assert_eq!(json["all"]["goodput"], 0.5);
    assert_eq!(json["lanes"]["urgent"]["computed_tokens"], 7);
    assert_eq!(json["tenants"]["acme"]["sent"], 3);
    assert_eq!(json["reasons"]["queue_full"], 1);
    assert_eq!(json["retry_after_ms"]["count"], 1);
    let stages = &json["stages_ms"];
    let close =
        |value: &serde_json::Value, ms: f64| (value["max"].as_f64().unwrap() - ms).abs() < 0.01;
    assert!(close(&stages["queue_wait"], 0.5) && close(&stages["engine_wait"], 0.1));
    assert!(close(&stages["other"], 0.4) && close(&stages["unexplained"], 1.0), "{stages}");
}

#[test]
fn the_table_counts_every_end() {
    let table = report(OPEN).table().to_string();
    assert!(table.contains("3 requests: 2 answered 1 refused\n"), "{table}");
    assert!(table.contains("1 x 429; reasons: 1 x queue_full"), "{table}");
    assert!(table.contains("retry after: p50 1500 ms"), "{table}");
    assert!(!table.contains("note:"), "{table}");
}

#[test]
fn the_report_says_when_the_generator_is_the_bottleneck() {
    let mut late = report(OPEN);
    (0..10).for_each(|_| late.measures.lag.add(Duration::from_millis(5)));
    assert!(late.doubts()[0].contains("start lag p99 is 5.0"), "{:?}", late.doubts());
    // Of a latency of seconds, five milliseconds are nothing.
    (0..10).for_each(|_| late.measures.all.latency.add(Duration::from_secs(2)));
    assert_eq!(late.doubts(), Vec::<String>::new());
    let busy = Report { cpu: Duration::from_secs(2), ..report(OPEN) };
    assert!(busy.doubts()[0].contains("used 100 % of its one core"), "{:?}", busy.doubts());
}

#[test]
fn the_report_says_when_connections_ran_out_and_when_the_loop_is_closed() {
    let mut full = report(OPEN);
    (0..5).for_each(|_| full.measures.connection_wait.add(Duration::from_millis(7)));
    assert!(full.doubts()[0].starts_with("5 requests found none of --connections 64 free"));
    let closed = report(Loop::Closed { clients: 4 });
    assert!(closed.doubts()[0].contains("coordinated omission"));
}
