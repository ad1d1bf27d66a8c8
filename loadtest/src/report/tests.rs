//! The report: that its numbers are the measures', and that it says when not to trust them.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::drivers::Driver;
use crate::exchange::{Denied, Exchange, Reply, Stages};
use crate::html::tests::check;
use crate::measure::Label;

const OPEN: Loop = Loop::Open { rate: 100.0, duration: Duration::from_secs(10), connections: 64 };

const CLOSED: Loop =
    Loop::Closed { clients: 4, until: Until { requests: Some(64), duration: None } };

fn label(now: Instant) -> Label {
    Label { questions: 2, limit: Some(Duration::from_millis(10)), ..Label::of(now) }
}

fn exchange(now: Instant, outcome: Outcome, took_ms: u64) -> Exchange {
    Exchange::bare(outcome, now, now + Duration::from_millis(took_ms))
}

/// Two answered, 4 and 20 ms, and one refused.
fn report(kind: Loop) -> Report {
    let (now, mut measures) = (Instant::now(), Measures::new(1));
    let stages = Stages {
        queue_us: Some(500),
        state_us: Some(0),
        engine_wait_us: Some(100),
        engine_us: Some(2_000),
        total_us: 3_000,
    };
    let reply = Reply { status: 200, computed_tokens: 7, stages: Some(stages), ..Reply::default() };
    let quick = exchange(now, Outcome::Answered, 4);
    let answers = Some(vec![vec![0.123_456_7], vec![0.25, 0.75]]);
    measures.record(label(now), Exchange { reply: Some(reply), answers, ..quick });
    measures.record(Label { lane: "batch", ..label(now) }, exchange(now, Outcome::Answered, 20));
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
    let close = |value: &Value, ms: f64| (value["max"].as_f64().unwrap() - ms).abs() < 0.01;
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
    let machine = Machine { cores: Some(2), load_before: Some(4.5), ..Machine::default() };
    let disturbed = Report { machine, ..report(OPEN) };
    assert!(disturbed.doubts()[0].contains("4.50 before the run, on 2 cores, be it"));
    let busy = Report { cpu: Duration::from_secs(2), ..report(OPEN) };
    assert!(busy.doubts()[0].contains("used 100 % of its one core"), "{:?}", busy.doubts());
}

#[test]
fn the_report_says_when_connections_ran_out_and_when_the_loop_is_closed() {
    let mut full = report(OPEN);
    (0..5).for_each(|_| full.measures.connection_wait.add(Duration::from_millis(7)));
    full.measures.unsent = 2;
    let doubt = "5 requests found none of --connections 64 free, 2 of them until";
    assert!(full.doubts()[0].starts_with(doubt), "{:?}", full.doubts());
    // Where the generator itself had no processor, that is why.
    let starved = Duration::from_millis(500);
    let busy = Report { starved, ..full };
    assert!(busy.doubts()[1].contains("waited 25 % of the time for a processor"));
    let closed = report(CLOSED);
    assert!(closed.doubts()[0].contains("coordinated omission"));
}

#[test]
fn the_report_says_when_connection_errors_are_of_the_generators_own_making() {
    let mut denied = report(OPEN);
    denied.measures.denials.add(Denied::Own);
    for open in [700, 513, 600] {
        denied.measures.denials.add(Denied::Closed { open });
    }
    let doubts = denied.doubts();
    assert!(
        doubts[0].starts_with("connection errors of the generator's own making: 1, as its"),
        "{doubts:?}"
    );
    assert!(doubts[1].starts_with("3 new connections were closed"), "{doubts:?}");
    assert!(doubts[1].contains("with 513 or more open"), "{doubts:?}");
    assert_eq!(denied.json()["generator"]["new_connections_closed"], 3);
    // The server's own word is better than a guess.
    denied.server.turned_away = Some(2);
    assert!(denied.doubts()[1].contains("the server says that it closed 2 connections"));
    assert_eq!(denied.doubts().len(), 2);
}

#[test]
fn json_says_all_that_two_runs_must_have_in_common() {
    let driver = Settings { driver: Driver::LlamaServer, top: Some(9), ..Settings::default() };
    let limits_ms = vec![Some(500), None];
    let run = Report { driver, limits_ms, digest: 255, ..report(CLOSED) }.json()["run"].clone();
    assert_eq!(
        (&run["loop"], &run["clients"], &run["requests"]),
        (&json!("closed"), &json!(4), &json!(64))
    );
    assert_eq!(run["limits_ms"], json!([500, null]));
    assert_eq!(run["workload_digest"], "00000000000000ff");
    assert_eq!((&run["top"], &run["fan_out"]), (&json!(9), &json!("first-alone")));
    assert_eq!((run.get("duration_s"), run.get("model")), (None, None));
    let run = report(OPEN).json()["run"].clone();
    assert_eq!((&run["duration_s"], run.get("template")), (&json!(10.0), None));
}

#[test]
fn json_has_what_happened_in_each_second_the_answers_and_the_distribution() {
    let json = report(OPEN).json();
    let series = &json["series"];
    assert_eq!((&series["bin_s"], &series["started"]), (&json!(1.0), &json!([3])));
    assert_eq!((&series["answered"], &series["refused"]), (&json!([2]), &json!([1])));
    assert_eq!(
        (&series["latency_mean_ms"], &series["queue_wait_ms"]),
        (&json!([12.0]), &json!([0.5]))
    );
    assert_eq!(json["answers"], json!({"0": [[0.12346], [0.25, 0.75]]}));
    let cdf = json["all"]["latency_cdf"].as_array().unwrap();
    assert_eq!(cdf.last().unwrap()[1], 1.0);
    assert_eq!(json["lanes"]["urgent"]["stages_mean_ms"]["engine_time"], 2.0);
    assert_eq!(json["lanes"]["batch"]["stages_mean_ms"]["engine_time"], Value::Null);
    assert_eq!(json["all"]["offered_goodput"], 1.0 / 3.0);
}

#[test]
fn what_is_not_known_is_null_and_said_not_to_be() {
    let report = report(OPEN);
    let json = report.json();
    assert_eq!(json["fairness"]["mean_latency_ms"], Value::Null);
    assert_eq!(json["duplicate_prefill"]["by_server_tokens"], Value::Null);
    assert_eq!(json["duplicate_prefill"]["by_client_tokens"], Value::Null);
    assert_eq!((&json["server"]["cores"], &json["server"]["build"]), (&Value::Null, &Value::Null));
    let table = report.table().to_string();
    assert!(
        table.contains("twice: not told by the server's count, not told by the answers"),
        "{table}"
    );
    assert!(table.contains("server: processor time and memory are not known"), "{table}");
}

/// Two tenants of which the second got four times what the first got, at three times the latency.
fn shared() -> Report {
    let (now, mut measures) = (Instant::now(), Measures::new(3));
    for (tenant, computed_tokens, took_ms) in [(0, 100, 10), (1, 400, 30)] {
        let reply = Some(Reply { status: 200, computed_tokens, ..Reply::default() });
        let label = Label { tenant, ..label(now) };
        measures.record(label, Exchange { reply, ..exchange(now, Outcome::Answered, took_ms) });
    }
    let tenants = ["acme", "bolt", "idle"].map(str::to_owned).to_vec();
    let (load, whole) = (Duration::from_secs(1), Duration::from_secs(1));
    Report { kind: OPEN, measures, load, whole, tenants, ..Report::default() }
}

#[test]
fn fairness_is_by_weight_and_over_those_that_asked() {
    let even = Report { weights: vec![1.0, 4.0, 1.0], ..shared() };
    let tokens = even.fairness_of_tokens().unwrap();
    assert_eq!((tokens.jain, tokens.gap), (1.0, 0.0));
    let uneven = shared();
    let tokens = uneven.fairness_of_tokens().unwrap();
    // 500^2 / (2 * 170,000)
    assert!((tokens.jain - 0.735).abs() < 0.001 && tokens.most == (1, 400.0), "{tokens:?}");
    assert!((uneven.fairness_of_latency().unwrap().jain - 0.8).abs() < 0.001);
    let (unit, shares) = even.shares();
    assert_eq!((unit, shares.len()), ("tokens computed under load", 2));
    assert_eq!((shares[1].served, shares[1].fair, shares[1].offered), (0.8, 0.8, 0.5));
    let table = uneven.table().to_string();
    assert!(
        table.contains("per weight: Jain 0.735, largest gap 300.0: acme 100.0, bolt 400.0"),
        "{table}"
    );
    assert_eq!(uneven.json()["fairness"]["mean_latency_ms"]["most"]["tenant"], "bolt");
}

#[test]
fn the_page_says_the_outcome_and_escapes_names_from_outside() {
    let hostile = "</title><script>alert(1)</script>".to_owned();
    let mut report = Report { workload: hostile.clone(), about: hostile.clone(), ..report(OPEN) };
    report.tenants = vec![hostile.clone()];
    report.measures.first_fault = Some(hostile);
    let page = report.html();
    check(&page);
    assert!(page.contains("Of 3.0 requests/s offered, 2.0/s were answered"), "{page}");
    assert!(page.contains("33.3 % were refused"), "{page}");
    assert!(page.contains("the numbers are the server&#39;s"), "{page}");
    for card in
        ["How long answers took", "Where the time went", "How requests ended", "By lane and tenant"]
    {
        assert!(page.contains(card), "{card}");
    }
}

#[test]
fn the_page_shows_shares_of_several_tenants_and_stands_without_any_answer() {
    let page = shared().html();
    check(&page);
    assert!(page.contains("got 80 %, asked for 50 %, fair 50 %"), "{page}");
    let empty = Report::default().html();
    check(&empty);
    assert!(empty.contains("None of 0 requests was answered."), "{empty}");
}

#[test]
fn a_closed_loop_is_no_alarm_by_itself() {
    let closed = report(CLOSED).html();
    assert!(closed.contains("coordinated omission") && !closed.contains("trust doubt"), "{closed}");
    let mut late = report(OPEN);
    (0..10).for_each(|_| late.measures.lag.add(Duration::from_millis(50)));
    assert!(late.html().contains("trust doubt"));
}
