//! Workload files: what they may say, what is said of their faults, and that seeds hold.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::*;

const SMALL: &str = r#"
about = "test"
[states.s]
count = 10
length = [{ words = 20 }]
zipf = 1
[[traffic]]
states = "s"
questions = { count = [1, 3], kinds = { noul = 1, choice = 1 }, variants = 9 }
"#;

fn fault(find: &str, put: &str) -> String {
    assert!(SMALL.contains(find), "{find}");
    format!("{:#}", Workload::parse("w", &SMALL.replace(find, put)).unwrap_err())
}

fn requests(text: &str, seed: u64) -> Requests {
    let workload = Workload::parse("w", text).unwrap();
    Requests::new(workload, &BTreeMap::new(), "test:80", seed).unwrap()
}

fn bodies(text: &str, seed: u64, count: usize) -> Vec<Value> {
    let mut requests = requests(text, seed);
    let body = |_| {
        let planned = requests.draw();
        serde_json::from_slice(&requests.write(&planned).body()).unwrap()
    };
    (0..count).map(body).collect()
}

#[test]
fn shipped_workloads_load_and_write_json() {
    for (name, _) in SHIPPED {
        let workload = Workload::load(name).unwrap_or_else(|fault| panic!("{fault:#}"));
        let mut requests = Requests::new(workload, &BTreeMap::new(), "test", 7).unwrap();
        for _ in 0..50 {
            let planned = requests.draw();
            let request = requests.write(&planned);
            let body: Value = serde_json::from_slice(&request.body()).unwrap();
            assert_eq!(body["questions"].as_object().unwrap().len(), request.questions, "{name}");
            assert!(body["state"].as_str().unwrap().len() > 50, "{name}");
        }
    }
}

#[test]
fn every_file_of_the_folder_is_shipped() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files: BTreeSet<String> =
        files.map(|path| path.file_stem().unwrap().to_string_lossy().to_string()).collect();
    assert_eq!(files, SHIPPED.iter().map(|(name, _)| (*name).to_owned()).collect());
}

#[test]
fn the_workloads_for_overload_come_back_when_they_are_told_to() {
    for name in ["overload", "classes"] {
        let traffic = Workload::load(name).unwrap().traffic;
        assert!(traffic.iter().all(|kind| kind.retries == Some(3)), "{name}");
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let fault = Workload::load("tinny").unwrap_err().to_string();
    assert!(fault.contains("\"tinny\"") && fault.contains("tiny, overload"), "{fault}");
}

#[test]
fn faults_name_the_field_the_value_and_the_limit() {
    let cases = [
        ("count = 10", "count = 0", "states.s.count is 0, must be from 1 to 1000000"),
        (
            "words = 20",
            "words = 900000",
            "states.s.length[0].words is 900000, must be from 1 to 200000",
        ),
        (
            "words = 20",
            "words = 20, bytes = 5",
            "states.s.length[0] must have either words or bytes",
        ),
        (
            "words = 20",
            "words = 20, sigma = -1",
            "states.s.length[0].sigma is -1, must be from 0 to 4",
        ),
        ("zipf = 1", "zipf = nan", "states.s.zipf is NaN, must be from 0 to 10"),
        ("zipf = 1", "", "states.s must have either zipf or in_turn"),
        ("states = \"s\"", "states = \"t\"", "traffic[0].states is \"t\", must be one of s"),
        ("states = \"s\"", "states = \"s\"\ntenant = \"x\"", "traffic[0].tenant is \"x\""),
        (
            "states = \"s\"",
            "states = \"s\"\nsamples = 0",
            "traffic[0].samples is 0, must be \"auto\" or from 1 to 255",
        ),
        ("states = \"s\"", "states = \"s\"\nshare = 0", "traffic.share adds up to 0, must be more"),
        (
            "states = \"s\"",
            "states = \"s\"\ndisconnect = { share = 2, after_ms = 9 }",
            "traffic[0].disconnect.share is 2, must be from 0 to 1",
        ),
        (
            "[1, 3]",
            "[3, 1]",
            "traffic[0].questions.count is [3, 1], the first must not be the larger",
        ),
        ("[1, 3]", "[0, 3]", "traffic[0].questions.count[0] is 0, must be from 1 to 1024"),
        (
            "variants = 9",
            "variants = 9, options = [1, 2]",
            "traffic[0].questions.options[0] is 1, must be from 2 to 255",
        ),
        (
            "about = \"test\"",
            "about = \"test\"\nscripts = { latin = 1, han = -1 }",
            "scripts is -1, must be from 0 to 1000000000",
        ),
        (
            "kinds = { noul = 1, choice = 1 }",
            "kinds = {}",
            "traffic[0].questions.kinds adds up to 0, must be more",
        ),
    ];
    for (find, put, expected) in cases {
        let fault = fault(find, put);
        assert!(fault.contains(expected), "{fault}\nexpected {expected}");
    }
}

#[test]
fn faults_of_retries_and_arrivals_name_the_field_the_value_and_the_limit() {
    let cases = [
        (
            "states = \"s\"",
            "states = \"s\"\nretries = 11",
            "traffic[0].retries is 11, must be from 0 to 10",
        ),
        (
            "[states.s]",
            "[arrivals]\nkind = \"gamma\"\nburstiness = 0\n[states.s]",
            "arrivals.burstiness is 0, must be from 0.05 to 100",
        ),
        (
            "[states.s]",
            "[arrivals]\nkind = \"gama\"\n[states.s]",
            "unknown variant `gama`, expected one of `poisson`, `gamma`, `on-off`",
        ),
        (
            "[states.s]",
            "[arrivals]\nkind = \"poisson\"\nrate = 1\n[states.s]",
            "unknown field `rate`",
        ),
    ];
    for (find, put, expected) in cases {
        let fault = fault(find, put);
        assert!(fault.contains(expected), "{fault}\nexpected {expected}");
    }
}

#[test]
fn several_faults_are_named_at_once() {
    let text = SMALL.replace("count = 10", "count = 0").replace("words = 20", "words = 0");
    let fault = Workload::parse("w", &text).unwrap_err().to_string();
    assert!(fault.contains("count is 0") && fault.contains("words is 0"), "{fault}");
}

#[test]
fn misspelt_fields_and_lanes_are_named() {
    let text = fault("zipf", "zpif");
    assert!(text.contains("unknown field `zpif`") && text.contains("`zipf`"), "{text}");
    let text = fault("states = \"s\"", "states = \"s\"\nlane = \"fast\"");
    assert!(text.contains("unknown variant `fast`") && text.contains("`urgent`"), "{text}");
    let text = fault("about = \"test\"", "about = \"test\"\nscripts = { latim = 1 }");
    assert!(text.contains("unknown variant `latim`") && text.contains("`cyrillic`"), "{text}");
    let text = fault("count = 10", "count = -1");
    assert!(text.contains("-1") && text.contains("count = -1"), "{text}");
}

#[test]
fn a_seed_gives_the_same_requests() {
    assert_eq!(bodies(SMALL, 1, 200), bodies(SMALL, 1, 200));
    assert_ne!(bodies(SMALL, 1, 200), bodies(SMALL, 2, 200));
}

#[test]
fn arrivals_of_a_workload_are_those_of_the_command_line() {
    for (settings, pattern) in [
        ("kind = \"poisson\"", "poisson"),
        ("kind = \"gamma\"\nburstiness = 0.5", "gamma:0.5"),
        ("kind = \"on-off\"\ntimes = 8\non_s = 5\nperiod_s = 60", "on-off:8,5,60"),
        ("kind = \"ramp\"\nfrom = 0\nto = 2", "ramp:0,2"),
        ("kind = \"trace\"\nfile = \"a.txt\"", "trace:a.txt,1"),
    ] {
        let text = SMALL.replace("[states.s]", &format!("[arrivals]\n{settings}\n[states.s]"));
        let workload = Workload::parse("w", &text).unwrap();
        assert_eq!(workload.arrivals, Some(Pattern::parse(pattern).unwrap()));
    }
}

#[test]
fn a_limit_is_every_kinds() {
    let mut workload = Workload::load("overload").unwrap();
    assert_eq!(workload.limit_longest(), Some(Duration::from_secs(20)));
    workload.limit(Duration::from_millis(700)).unwrap();
    assert!(workload.traffic.iter().all(|traffic| traffic.limit_ms == Some(700)));
    let fault = workload.limit(Duration::ZERO).unwrap_err().to_string();
    assert_eq!(fault, "--limit is 0 ms, must be from 1 to 3600000");
    assert_eq!(Workload::parse("w", SMALL).unwrap().limit_longest(), None);
}

#[test]
fn a_digest_tells_other_work_of_the_same_name() {
    let of = |find: &str, put: &str| {
        assert!(SMALL.contains(find), "{find}");
        Workload::parse("w", &SMALL.replace(find, put)).unwrap().digest()
    };
    let own = of("test", "test");
    assert_eq!(own, of("about = \"test\"", "# said otherwise\nabout = \"other\""));
    assert_eq!(own, of("states = \"s\"", "states = \"s\"\nlimit_ms = 7"));
    for (find, put) in [("count = 10", "count = 11"), ("zipf = 1", "in_turn = 1")] {
        assert_ne!(own, of(find, put));
    }
}

#[test]
fn decisions_are_numbered_as_they_are_drawn() {
    let mut requests = requests(SMALL, 1);
    for number in 0..5 {
        let planned = requests.draw();
        assert_eq!(requests.write(&planned).number, number);
        assert_eq!(requests.write(&Requests::prewarm_of(&planned)).number, number);
    }
}

#[test]
fn in_turn_takes_each_state_so_many_times() {
    let text = SMALL.replace("zipf = 1", "in_turn = 3");
    let states: Vec<Value> =
        bodies(&text, 1, 33).iter().map(|body| body["state"].clone()).collect();
    assert!(states.chunks(3).all(|run| run[0] == run[1] && run[1] == run[2]));
    assert!(states[0] != states[3] && states[0] == states[30]);
}

#[test]
fn a_growing_state_is_extended_by_each_request_and_then_replaced() {
    let text = SMALL
        .replace("count = 10", "count = 1")
        .replace("zipf = 1", "zipf = 0\ngrowth = { words = 10, max_words = 45 }");
    let bodies = bodies(&text, 1, 6);
    let states: Vec<&str> = bodies.iter().map(|body| body["state"].as_str().unwrap()).collect();
    let words: Vec<usize> = states.iter().map(|state| state.split(' ').count()).collect();
    assert_eq!(words, [20, 30, 40, 20, 30, 40]);
    assert!(states[1].starts_with(states[0]) && states[2].starts_with(states[1]));
    assert!(states[4].starts_with(states[3]) && states[3] != states[0]);
}

#[test]
fn shares_of_traffic_tenants_and_disconnects_are_kept() {
    let mut requests =
        Requests::new(Workload::load("hog-tenant").unwrap(), &BTreeMap::new(), "test", 3).unwrap();
    let hog = requests.tenant_names().iter().position(|name| name == "hog").unwrap();
    let hogs = (0..10_000).filter(|_| usize::from(requests.draw().tenant) == hog).count();
    assert!((7_850..8_150).contains(&hogs), "{hogs}");
    let mut requests =
        Requests::new(Workload::load("disconnects").unwrap(), &BTreeMap::new(), "test", 3).unwrap();
    let leaving = (0..10_000).filter(|_| requests.draw().disconnects).count();
    assert!((4_800..5_200).contains(&leaving), "{leaving}");
}

#[test]
fn lanes_deadlines_keys_and_samples_reach_the_wire() {
    let text = SMALL.replace(
        "states = \"s\"",
        "states = \"s\"\nlane = \"urgent\"\ntimeout_ms = 250\nsamples = \"auto\"",
    );
    let keys = BTreeMap::from([("acme".to_owned(), "sk-1".to_owned())]);
    let workload = Workload::parse("w", &text).unwrap();
    let mut requests = Requests::new(workload, &keys, "test:80", 1).unwrap();
    let planned = requests.draw();
    let request = requests.write(&planned);
    for (name, value) in [
        ("host", "test:80"),
        ("content-type", "application/json"),
        ("authorization", "Bearer sk-1"),
        ("x-docket-priority", "urgent"),
        ("x-docket-timeout-ms", "250"),
    ] {
        assert_eq!(request.headers[name], value);
    }
    let body: Value = serde_json::from_slice(&request.body()).unwrap();
    assert_eq!(body["samples"], "auto");
    let prewarm = requests.write(&Requests::prewarm_of(&planned));
    assert!(!prewarm.headers.contains_key("x-docket-priority"));
    assert_eq!(
        serde_json::from_slice::<Value>(&prewarm.body()).unwrap(),
        serde_json::json!({ "state": body["state"] })
    );
}
