//! Prewarm through the binary: what it reads, how it ends, and what it says of itself.

use std::io::Write as _;
use std::net::TcpStream;
use std::thread;

use serde_json::{Value, json};

use crate::server::{Reply, Server, decision, try_post};

/// A fake engine at a thousand tokens a second, one token a byte.
const SLOW: [&str; 6] = ["--engine", "fake", "--fake-step-ms", "0", "--fake-token-us", "1000"];

fn computed(server: &Server) -> u64 {
    let page = server.get("/health");
    page["details"]["engine"]["computed_tokens"].as_u64().expect("a number")
}

fn tokens_waiting(server: &Server) -> u64 {
    let page = server.get("/health");
    page["details"]["queue"]["tokens_waiting"].as_u64().expect("a number")
}

/// Waits until `is_so`; a test that never ends says which.
fn until(server: &Server, is_so: impl Fn(&Server) -> bool) {
    while !is_so(server) {
        thread::yield_now();
    }
}

fn spawn(server: &Server, route: &'static str, body: Value) -> thread::JoinHandle<Reply> {
    let base = server.base().to_owned();
    thread::spawn(move || try_post(&base, route, &body).expect("an answer"))
}

#[test]
fn a_prewarm_reads_the_prefix_that_a_decision_with_its_fields_reads() {
    for layout in ["keys", "keys-short"] {
        let arguments = ["--engine", "fake", "--register-boundary", "off", "--layout", layout];
        let server = Server::start(&arguments);
        let state = json!({"order": 7, "text": "The parcel is late."});
        let fields = json!({"model": "jev-latest", "context": "Be kind.", "state": state,
                            "instructions": "Be strict.",
                            "chat_template_kwargs": {"enable_thinking": true}});
        let warm = server.post("/v1/prewarm", &fields);
        assert_eq!((warm.status, &warm.body["ok"]), (200, &json!(true)), "{warm:?}");
        let mut asked = fields.clone();
        asked["questions"] = decision("", "Is it late?")["questions"].clone();
        asked["samples"] = json!(1);
        let asked = server.post("/v1/systemone", &asked);
        assert_eq!(asked.status, 200, "{asked:?}");
        assert_eq!(asked.text("x-docket-ignored"), warm.text("x-docket-ignored"), "{layout}");
        assert_eq!(asked.body["model"], warm.body["model"]);
        let prompt_tokens = warm.body["prompt_tokens"].as_u64().expect("a number");
        assert_eq!(asked.number("x-docket-cached-tokens"), prompt_tokens, "{layout}");
    }
}

#[test]
fn a_prewarm_of_vllm_reads_the_prefix_of_its_decisions() {
    let server = Server::start(&["--engine", "fake", "--register-boundary", "off"]);
    let fields = json!({"state": {"order": 7}, "instructions": "Be strict.",
                        "chat_template_kwargs": {"tone": "dry"}});
    let warm = server.post("/vllm/v1/prewarm", &fields);
    assert_eq!((warm.status, &warm.body["ok"]), (200, &json!(true)), "{warm:?}");
    let prompt_tokens = warm.body["prompt_tokens"].as_u64().expect("a number");
    let cached = |fields: &Value| {
        let mut asked = fields.clone();
        asked["questions"] = decision("", "Is it late?")["questions"].clone();
        let asked = server.post("/vllm/v1/systemone", &asked);
        assert_eq!(asked.status, 200, "{asked:?}");
        asked.number("x-docket-cached-tokens")
    };
    assert_eq!(cached(&fields), prompt_tokens);
    assert!(cached(&json!({"state": {"order": 7}})) < prompt_tokens, "other instructions");
    let thinking = json!({"state": "s", "chat_template_kwargs": {"enable_thinking": true}});
    assert_eq!(server.post("/vllm/v1/prewarm", &thinking).status, 400);
    assert_eq!(server.post("/vllm/v1/prewarm", &json!({"state": null})).status, 200);
}

#[test]
fn several_states_share_what_they_have_in_common_and_each_is_resident() {
    let server = Server::start(&["--engine", "fake", "--register-boundary", "off"]);
    let common = "The parcel was promised for Monday, and it is Thursday. ".repeat(20);
    let states = ["Nobody answers.", "The driver was ill.", "It rains."]
        .map(|end| json!(format!("{common}{end}")));
    let warm = server.post("/v1/prewarm", &json!({ "states": states, "priority": "normal" }));
    assert_eq!((warm.status, &warm.body["ok"]), (200, &json!(true)), "{warm:?}");
    let told = |entry: &Value| entry["prompt_tokens"].as_u64().expect("a number");
    let entries = warm.body["prefixes"].as_array().expect("a list");
    assert_eq!(told(&warm.body), entries.iter().map(told).sum::<u64>());
    let ran = warm.number("x-docket-computed-tokens");
    assert_eq!(ran, server.metric("docket_computed_tokens_total"));
    assert!(ran < told(&warm.body) / 2, "{ran} tokens: {warm:?}");
    for (state, entry) in states.iter().zip(entries) {
        let mut body = decision("", "Is it late?");
        body["state"] = state.clone();
        let asked = server.post("/v1/systemone", &body);
        assert_eq!(asked.number("x-docket-cached-tokens"), told(entry));
        let route = format!("/v1/prewarm/{}", entry["handle"].as_str().expect("a handle"));
        assert_eq!(server.delete(&route), 200);
    }
    let again = server.post("/v1/prewarm", &json!({ "states": states }));
    assert_eq!(again.body["prefix"]["reused"], json!(true), "{again:?}");
}

#[test]
fn a_state_that_fails_is_told_apart_and_all_that_fail_are_refused() {
    let server = Server::start(&["--engine", "fake", "--context", "512"]);
    let (long, longer) = ("word ".repeat(200), "word ".repeat(20_000));
    let mixed = server.post("/v1/prewarm", &json!({ "states": ["short", long, "brief"] }));
    assert_eq!((mixed.status, &mixed.body["ok"]), (200, &json!(false)), "{mixed:?}");
    let oks = [0, 1, 2].map(|index| mixed.body["prefixes"][index]["ok"].clone());
    assert_eq!(oks, [json!(true), json!(false), json!(true)]);
    let error = &mixed.body["prefixes"][1]["error"];
    assert_eq!((&error["status"], &error["reason"]), (&json!(422), &json!("too_long")));
    assert_eq!(error["detail"][0]["loc"], json!(["body", "states", 1]));
    let none = server.post("/v1/prewarm", &json!({ "states": [long, longer] }));
    assert_eq!((none.status, none.text("x-docket-reason")), (422, Some("too_long")), "{none:?}");
    let places = [0, 1].map(|index| none.body["detail"][index]["loc"].clone());
    assert_eq!(places, [json!(["body", "states", 0]), json!(["body", "states", 1])]);
}

#[test]
fn a_state_that_cannot_be_held_is_off_and_not_read() {
    for (kv_bytes, state) in [("0", "Short."), ("1KiB", "The parcel is late. ")] {
        let server = Server::start(&["--engine", "fake", "--kv-bytes", kv_bytes]);
        let warm = server.post("/v1/prewarm", &json!({ "state": state.repeat(200) }));
        assert_eq!((warm.status, &warm.body["ok"]), (200, &json!(false)), "{warm:?}");
        let prefix = json!({ "reused": false, "stored": false, "tier": "off" });
        assert_eq!(warm.body["prefix"], prefix, "--kv-bytes {kv_bytes}");
        assert_eq!((&warm.body["handle"], computed(&server)), (&Value::Null, 0));
    }
}

#[test]
fn a_prewarm_whose_client_left_stops() {
    let server = Server::start(&SLOW);
    let body = json!({ "state": "x".repeat(6_000) }).to_string();
    let address = server.base().strip_prefix("http://").expect("an address");
    let mut client = TcpStream::connect(address).expect("it listens");
    let head = format!(
        "POST /v1/prewarm HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).expect("it is taken");
    client.write_all(body.as_bytes()).expect("it is taken");
    until(&server, |server| computed(server) > 0);
    drop(client);
    until(&server, |server| tokens_waiting(server) == 0);
    assert!(computed(&server) < 4_000, "{} tokens of 6,000 and more", computed(&server));
    // One for which nobody waits goes on by itself.
    let pending = json!({ "state": "y".repeat(500), "wait": false });
    assert_eq!(server.post("/v1/prewarm", &pending).body["prefix"]["tier"], "pending");
    until(&server, |server| {
        let again = server.post("/v1/prewarm", &pending);
        again.body["prefix"]["reused"] == json!(true)
    });
}

#[test]
fn a_prewarm_is_refused_or_expires_as_a_decision_does() {
    let server = Server::start(&SLOW);
    let late =
        server.post("/v1/prewarm", &json!({ "state": "x".repeat(3_000), "timeout_ms": 500 }));
    assert_eq!((late.status, late.text("x-docket-reason")), (504, Some("expired")), "{late:?}");
    let message = late.body["detail"]["message"].as_str().expect("a message");
    assert!(message.contains("ms until its turn"), "{message}");
    until(&server, |server| tokens_waiting(server) == 0);
    let ahead = json!({ "state": "y".repeat(4_000), "wait": false });
    assert_eq!(server.post("/v1/prewarm", &ahead).status, 200);
    until(&server, |server| tokens_waiting(server) > 0);
    let hasty = json!({ "state": "z".repeat(100), "timeout_ms": 1_000 });
    let refused = server.post("/v1/prewarm", &hasty);
    assert_eq!((refused.status, refused.text("x-docket-reason")), (429, Some("wait")));
    assert!(refused.number("retry-after-ms") >= 100);
}

#[test]
fn a_prewarm_that_runs_at_sigterm_is_finished() {
    let server = Server::start(&SLOW);
    let running = spawn(&server, "/v1/prewarm", json!({ "state": "x".repeat(2_000) }));
    until(&server, |server| computed(server) > 0);
    server.terminate();
    let reply = running.join().expect("no panic");
    assert_eq!((reply.status, &reply.body["prefix"]["stored"]), (200, &json!(true)), "{reply:?}");
    assert!(server.wait().success());
}

#[test]
fn what_is_displaced_is_counted_and_has_the_status_that_was_asked_for() {
    let arguments = [
        "--engine",
        "fake",
        "--fake-step-ms",
        "2000",
        "--max-questions",
        "4",
        "--reads-max",
        "4",
        "--wait-urgent",
        "60s",
        "--queue-full-status",
        "503",
    ];
    let server = Server::start(&arguments);
    let in_queue = |server: &Server, name: &str| {
        let page = server.get("/health");
        page["details"]["queue"][name].clone()
    };
    let running = spawn(&server, "/v1/systemone", decision("One.", "Is it late?"));
    until(&server, |server| in_queue(server, "reads_in_flight") == 1);
    let question = |n: u32| (format!("q{n}"), json!({ "type": "noul", "instructions": n }));
    let questions: serde_json::Map<_, _> = (0..4).map(question).collect();
    let bulk =
        json!({ "state": "Two.", "samples": 1, "priority": "batch", "questions": questions });
    let bulk = spawn(&server, "/v1/systemone", bulk);
    until(&server, |server| in_queue(server, "reads_waiting")["batch"] == 4);
    let mut urgent = decision("Three.", "Is it late?");
    urgent["priority"] = json!("urgent");
    let urgent = spawn(&server, "/v1/systemone", urgent);
    let displaced = bulk.join().expect("no panic");
    assert_eq!(displaced.status, 503, "{displaced:?}");
    assert_eq!(displaced.text("x-docket-reason"), Some("displaced"));
    assert_eq!(displaced.body["detail"]["error_type"], "rate_limit_error");
    assert!(displaced.number("retry-after") >= 1);
    for client in [running, urgent] {
        assert_eq!(client.join().expect("no panic").status, 200);
    }
    let refused = "docket_admission_rejections_total{reason=\"displaced\"}";
    let reads = "docket_reads_total{outcome=\"displaced\"}";
    assert_eq!((server.metric(refused), server.metric(reads)), (1, 4));
}
