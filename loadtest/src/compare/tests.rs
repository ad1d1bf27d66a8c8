//! Comparisons of reports that are written by hand: that they are right, and say when they mean
//! nothing.

use serde_json::{Value, json};

use super::*;
use crate::html::tests::check;

fn report(p99: f64, rate: f64, seed: u64) -> Value {
    json!({
        "run": {
            "loop": "open", "rate": 100.0, "duration_s": 10.0, "workload": "tiny",
            "seed": seed, "url": "u",
        },
        "achieved_rate": rate,
        "all": {
            "sent": 10, "outcomes": {"answered": 9, "refused": 1},
            "latency_ms": {"count": 9, "mean": 2.0, "p50": 1.0, "p99": p99, "max": p99},
            "latency_cdf": [[1.0, 0.5], [p99, 1.0]],
        },
        "lanes": {
            "urgent": {"latency_ms": {"count": 4, "p50": 1.0, "p99": p99}},
            "a/b": {"latency_ms": {"count": 0, "p50": 0.0}},
        },
        "answers": {"0": [[0.9], [0.1, 0.9]], "7": [[0.4]]},
    })
}

fn side(reports: &[(f64, f64, u64)]) -> Vec<Run> {
    let run = |(p99, rate, seed): &(f64, f64, u64)| {
        Run::of("f.json".to_owned(), report(*p99, *rate, *seed)).unwrap()
    };
    reports.iter().map(run).collect()
}

fn meaning(comparison: &Comparison, name: &str) -> &'static str {
    comparison.ratio(name).unwrap().meaning().as_str()
}

#[test]
fn pairs_give_the_median_ratio_and_noise_says_what_it_means() {
    let a = side(&[(10.0, 100.0, 1), (11.0, 100.0, 2), (10.0, 98.0, 3)]);
    let b = side(&[(5.0, 101.0, 1), (6.0, 100.0, 2), (4.0, 99.0, 3)]);
    let comparison = Comparison::of(a, b);
    assert!(comparison.work.is_same(), "{:?}", comparison.work);
    let p99 = comparison.ratio("latency p99, ms").unwrap();
    assert_eq!((p99.a, p99.b, p99.median), (Some(10.0), Some(5.0), Some(0.5)));
    assert_eq!((p99.range, p99.noise), (Some((0.4, 6.0 / 11.0)), Some((10.0 / 11.0, 1.1))));
    assert_eq!(meaning(&comparison, "latency p99, ms"), "better");
    assert_eq!(meaning(&comparison, "decisions/s answered"), "within noise");
    assert_eq!(meaning(&comparison, "lane urgent p99, ms"), "better");
    // Nothing was measured of that lane.
    assert!(comparison.ratio("lane a/b p50, ms").is_none());
    let table = comparison.table().to_string();
    assert!(
        table.starts_with("the same work on both sides: tiny, open loop at 100.0/s"),
        "{table}"
    );
    assert!(table.contains("noise: the range of ratios among 3 runs of A"), "{table}");
}

#[test]
fn one_run_of_a_says_nothing_of_noise() {
    let comparison = Comparison::of(side(&[(10.0, 100.0, 1)]), side(&[(30.0, 100.0, 1)]));
    assert_eq!(meaning(&comparison, "latency p99, ms"), "noise unknown");
    assert!(comparison.table().to_string().contains("noise is not known"));
}

#[test]
fn pairs_that_contradict_each_other_are_noise_however_quiet_a_is() {
    let a = side(&[(10.0, 100.0, 1), (10.0, 100.0, 2), (10.0, 100.0, 3)]);
    let b = side(&[(5.0, 101.0, 1), (20.0, 102.0, 2), (9.0, 103.0, 3)]);
    let comparison = Comparison::of(a, b);
    assert_eq!(meaning(&comparison, "latency p99, ms"), "within noise");
    assert_eq!(meaning(&comparison, "decisions/s answered"), "better");
}

/// A report of a search whose step at the knee has a p99 of 30 ms.
fn knee(knee: Option<f64>, seed: u64) -> Value {
    let step = |rate: f64, holds: bool, p99: f64| {
        let mut step = report(p99, rate, seed);
        step["run"]["rate"] = json!(rate);
        step["holds"] = json!(holds);
        step["machine"] = json!({"cores": 2});
        step
    };
    let at = knee.unwrap_or(9.0);
    json!({
        "run": {"loop": "knee", "from": 10.0, "workload": "tiny", "seed": seed, "url": "u"},
        "knee": knee, "failed": at * 1.05, "precision": 0.05, "is_found": knee.is_some(),
        "verdict": "no knee: <so>", "notes": [],
        "steps": [step(at, false, 900.0), step(at, knee.is_some(), 30.0), step(at * 1.05, false, 800.0)],
    })
}

fn knees(of: &[f64]) -> Vec<Run> {
    let run = |(number, at): (usize, &f64)| {
        Run::of("k.json".to_owned(), knee(Some(*at), number as u64)).unwrap()
    };
    of.iter().enumerate().map(run).collect()
}

#[test]
fn knees_are_compared_by_pairs_and_no_finer_than_they_were_searched() {
    let comparison = Comparison::of(knees(&[100.0, 100.0]), knees(&[150.0, 160.0]));
    assert!(comparison.work.is_same(), "{:?}", comparison.work);
    let ratio = comparison.ratio("knee, requests/s").unwrap();
    assert_eq!((ratio.median, ratio.range), (Some(1.55), Some((1.5, 1.6))));
    assert_eq!(ratio.noise, Some((1.0 / 1.05, 1.05)));
    assert_eq!(meaning(&comparison, "knee, requests/s"), "better");
    assert_eq!(comparison.ratio("p99 at the knee, ms").unwrap().a, Some(30.0));
    let table = comparison.table().to_string();
    assert!(table.starts_with("the same work on both sides: tiny, knee from 10.0/s"), "{table}");
    assert!(!table.contains("answers of A and B"), "{table}");
    let page = comparison.html();
    check(&page);
    assert!(page.contains("knee 100 to 155/s (1.550x, better)"), "{page}");
    let near = Comparison::of(knees(&[100.0, 100.0]), knees(&[104.0, 103.0]));
    assert_eq!(meaning(&near, "knee, requests/s"), "within noise");
}

#[test]
fn a_search_that_found_no_knee_has_none_to_compare_and_says_why() {
    let none = Run::of("k.json".to_owned(), knee(None, 0)).unwrap();
    let comparison = Comparison::of(knees(&[100.0]), vec![none]);
    let ratio = comparison.ratio("knee, requests/s").unwrap();
    assert_eq!((ratio.a, ratio.b, ratio.median), (Some(100.0), None, None));
    let table = comparison.table().to_string();
    assert!(table.contains("note of B1: no knee: <so>"), "{table}");
}

#[test]
fn runs_and_knees_are_not_set_against_each_other() {
    let fault = super::check(&knees(&[9.0]), &side(&[(1.0, 1.0, 1)])).unwrap_err().to_string();
    assert!(fault.starts_with("k.json is a report of `knee` and f.json one of `open`"), "{fault}");
    assert!(super::check(&knees(&[9.0]), &knees(&[9.0])).is_ok());
    let mut old = knee(Some(9.0), 1);
    old.as_object_mut().unwrap().remove("run");
    let fault = Run::of("old.json".to_owned(), old).unwrap_err().to_string();
    assert_eq!(
        fault,
        "old.json has no /run/loop: it is no report that this version's `knee` wrote"
    );
}

#[test]
fn other_work_is_named_before_anything_else_and_its_answers_are_not_compared() {
    let comparison = Comparison::of(side(&[(10.0, 100.0, 1)]), side(&[(10.0, 100.0, 2)]));
    let table = comparison.table().to_string();
    assert!(
        table.starts_with("NOT the same work, ratios mean little: seed: A1 \"1\", B1 \"2\""),
        "{table}"
    );
    assert_eq!(comparison.answers, Agreement::default());
    assert!(comparison.html().contains("trust doubt"));
}

#[test]
fn answers_are_compared_by_the_number_of_the_decision() {
    let a = side(&[(10.0, 100.0, 1)]);
    let mut other = report(10.0, 100.0, 1);
    other["answers"] = json!({"0": [[0.8], [0.6, 0.4]], "8": [[0.4]]});
    let comparison = Comparison::of(a, vec![Run::of("b.json".to_owned(), other).unwrap()]);
    assert_eq!((comparison.answers.questions, comparison.answers.same_top), (2, 1));
    let json = comparison.json();
    assert_eq!(json["answers"]["same_top_share"], 0.5);
    assert_eq!(json["answers"]["dp_max"], 0.5);
    assert_eq!(json["same_work"], true);
    assert_eq!(json["measures"][0]["name"], "decisions/s answered");
}

#[test]
fn the_page_is_whole_and_escapes_what_it_shows() {
    let mut hostile = report(10.0, 100.0, 1);
    hostile["run"]["workload"] = json!("<script>");
    hostile["notes"] = json!(["<script>"]);
    hostile["lanes"]["<script>"] = hostile["lanes"]["urgent"].clone();
    let run = || vec![Run::of("<script>".to_owned(), hostile.clone()).unwrap()];
    let page = Comparison::of(run(), run()).html();
    check(&page);
    assert!(page.matches("&lt;script&gt;").count() >= 5, "{page}");
    assert!(page.contains("Both chose the same in 100 %"), "{page}");
}

#[test]
fn a_file_that_is_no_report_is_named() {
    let fault = Run::of("x.json".to_owned(), json!({"steps": []})).unwrap_err().to_string();
    assert!(fault.contains("x.json has no /run/loop"), "{fault}");
    let fault = format!("{:#}", Run::read(std::path::Path::new("no/such.json")).unwrap_err());
    assert!(fault.contains("no/such.json"), "{fault}");
}
