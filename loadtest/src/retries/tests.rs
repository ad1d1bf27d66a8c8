//! The way of a refused request, and what is said of it. The loops' own tests are in
//! `load/retry_tests.rs`.

use std::collections::BTreeMap;

use super::*;
use crate::exchange::Reply;
use crate::report::Report;
use crate::workload::{Requests, Workload};

const MS: Duration = Duration::from_millis(1);

fn request(patience: Duration, leaves_after: Option<Duration>) -> Request {
    let workload = Workload::load("smoke").unwrap();
    let mut requests = Requests::new(workload, &BTreeMap::new(), "test", 1).unwrap();
    let planned = requests.draw();
    Request { patience, leaves_after, ..requests.write(&planned) }
}

/// An end a millisecond after the sending.
fn end(sent: Instant, outcome: Outcome, reason: &str, retry_after_ms: Option<u64>) -> Exchange {
    let reason = Some(reason.to_owned());
    let reply = Some(Reply { reason, retry_after_ms, ..Reply::default() });
    Exchange { reply, ..Exchange::bare(outcome, sent, sent + MS) }
}

#[test]
fn what_is_left_of_patience_and_of_a_stay_counts_from_the_first_sending() {
    let now = Instant::now();
    let refusal = end(now, Outcome::Refused, "queue_full", Some(200));
    let request = request(MS * 1_000, Some(MS * 700));
    let mut trail = Trail::begin(&request, 2, &refusal);
    assert_eq!(trail.again_at(&refusal), Some(now + MS * 201));
    let again = trail.shortened(&request, now + MS * 201).unwrap();
    assert_eq!((again.patience, again.leaves_after), (MS * 799, Some(MS * 499)));
    assert_eq!(again.body(), request.body());
    // Its client has left while it waited for a connection.
    assert!(trail.shortened(&request, now + MS * 700).is_none());
    assert_eq!(trail.stop, Some(Stop::Impatient));
}

#[test]
fn a_request_is_listed_under_its_first_refusal_and_reasons_are_bounded() {
    let (now, request, mut retries) =
        (Instant::now(), request(MS * 1_000, None), Retries::default());
    for number in 0..200 {
        let refusal = end(now, Outcome::Refused, &format!("reason {number}"), Some(9));
        let mut trail = Trail::begin(&request, 1, &refusal);
        trail.again_at(&refusal);
        trail.tried(&end(now + MS * 10, Outcome::Refused, "another", Some(9)));
        retries.record(&trail);
    }
    assert_eq!(retries.reasons.len(), REASONS_MAX + 1);
    assert_eq!(retries.reasons[NO_REASON].sent, 200 - REASONS_MAX as u64);
    assert!(!retries.reasons.contains_key("another"));
    assert_eq!(retries.all.sent, 200);
}

#[test]
fn the_report_says_how_many_came_back_in_vain() {
    let (now, request, mut retries) =
        (Instant::now(), request(MS * 9_000, None), Retries::default());
    for outcome in [Outcome::Answered, Outcome::Answered, Outcome::Expired, Outcome::Refused] {
        let refusal = end(now, Outcome::Refused, "queue_full", Some(50));
        let mut trail = Trail::begin(&request, 1, &refusal);
        let at = trail.again_at(&refusal).unwrap();
        let last = end(at, outcome, "queue_full", Some(50));
        trail.tried(&last);
        assert_eq!(trail.again_at(&last), None);
        retries.record(&trail);
    }
    let report = Report { retries, ..Report::default() };
    let table = report.table().to_string();
    for line in [
        "retries: 4 requests were sent again, 4 times in all, when the server had said; 2 were \
         answered at the first\n",
        "refused for good: 0 no_wait_named, 1 out_of_retries, 0 out_of_patience\n",
        "queue_full: 4 sent again, 4 times, 75.0 % not refused again; wait named p50 50 ms",
    ] {
        assert!(table.contains(line), "{table}\nexpected {line}");
    }
    let json = &report.json()["retries"];
    assert_eq!((&json["honesty"], &json["refused_again"]), (&0.75.into(), &1.into()));
    assert_eq!(json["reasons"]["queue_full"]["refused_for_good"]["out_of_retries"], 1);
    assert_eq!(json["admitted_after_ms"]["count"], 3);
    let none = Report::default();
    assert!(!none.table().to_string().contains("retries"));
    assert!(none.json()["retries"]["honesty"].is_null());
}
