//! States stay: registration after a response, prewarm, and what a question then costs.

use std::thread;

use serde_json::{Value, json};

use crate::server::{Server, decision, try_post};

const STATE: &str =
    "The parcel was promised for Monday. It is Thursday, and nobody answers the phone.";

/// Waits until a registration has ended.
fn await_registration(server: &Server) {
    for _ in 0..2_000 {
        let counters = &server.get("/health")["details"]["state_boundary"];
        if counters["registered"].as_u64() > Some(0) {
            return;
        }
        thread::yield_now();
    }
    panic!("no registration ended: {}", server.get("/health"));
}

#[test]
fn a_second_question_computes_only_its_own_tokens_once_registered() {
    let server = Server::start(&["--engine", "fake", "--register-boundary", "after"]);
    let first = server.ask(STATE, "Is the parcel late?");
    await_registration(&server);
    let second = server.ask(STATE, "Is the customer calm?");
    assert_eq!((first.status, second.status), (200, 200));
    assert!(first.number("x-docket-computed-tokens") > STATE.len() as u64);
    let warm = server.post("/v1/prewarm", &json!({ "state": STATE }));
    assert_eq!(warm.body["prefix"]["reused"], json!(true), "{warm:?}");
    let prefix_tokens = warm.body["prompt_tokens"].as_u64().expect("a number");
    assert_eq!(second.number("x-docket-cached-tokens"), prefix_tokens);
}

#[test]
fn with_registration_off_a_second_question_reads_the_state_again() {
    let server = Server::start(&["--engine", "fake", "--register-boundary", "off"]);
    let first = server.ask(STATE, "Is the parcel late?");
    let second = server.ask(STATE, "Is the customer calm?");
    assert_eq!((first.status, second.status), (200, 200));
    assert!(second.number("x-docket-computed-tokens") > STATE.len() as u64);
}

#[test]
fn a_prewarmed_state_costs_a_question_its_own_tokens_only() {
    let server = Server::start(&["--engine", "fake", "--register-boundary", "off"]);
    let warm = server.post("/v1/prewarm", &json!({ "state": STATE }));
    assert_eq!((warm.status, &warm.body["ok"]), (200, &json!(true)), "{warm:?}");
    let asked = server.ask(STATE, "Is the parcel late?");
    let prompt_tokens = warm.body["prompt_tokens"].as_u64().expect("a number");
    assert_eq!(asked.number("x-docket-cached-tokens"), prompt_tokens);
    let again = server.post("/v1/prewarm", &json!({ "state": STATE }));
    assert_eq!(again.body["prefix"]["reused"], json!(true), "{again:?}");
}

/// A look with what is held in it, which is made from the first look on.
fn looked(server: &Server) -> Value {
    for _ in 0..50 {
        let look = server.get("/v1/live");
        if !look["resident"].is_null() {
            return look;
        }
    }
    panic!("what is held is never told");
}

#[test]
fn a_look_names_what_is_held_and_who_waits() {
    let server = Server::start(&["--engine", "fake", "--register-boundary", "after"]);
    assert_eq!(server.ask(STATE, "Is the parcel late?").status, 200);
    await_registration(&server);
    assert_eq!(server.post("/v1/prewarm", &json!({ "state": STATE })).status, 200);
    let look = looked(&server);
    let runs = look["resident"]["runs"].as_array().expect("runs");
    let bytes = |run: &Value| run["bytes"].as_u64().expect("a number");
    assert_eq!(look["residency"]["used_bytes"], runs.iter().map(bytes).sum::<u64>(), "{look}");
    assert!(runs.iter().all(|run| run["state"].as_str().is_some_and(|key| key.len() == 8)));
    let pinned: Vec<_> = runs.iter().filter(|run| run["pins"] == 1).collect();
    assert_eq!(pinned.len(), 1, "{look}");
    assert_eq!(pinned[0]["tenant"], "default", "{look}");
    assert!(pinned[0]["pinned_s"].as_f64() > Some(0.0), "{look}");
    for lane in ["urgent", "normal", "batch", "idle"] {
        assert_eq!(look["waiting"][lane]["tenants"], 0, "{look}");
    }
    assert!(look["running"].is_null(), "{look}");
    assert!(!look.to_string().contains("parcel"), "{look}");
}

#[test]
fn a_pin_lasts_as_long_as_it_was_asked_for_and_can_be_given_up() {
    let server = Server::start(&["--engine", "fake", "--kv-bytes", "64MiB"]);
    let pinned = || {
        let page = server.get("/health");
        page["details"]["residency"]["pinned_bytes"].as_u64().expect("a number")
    };
    let warm = server.post("/v1/prewarm", &json!({ "state": STATE, "ttl_s": 600 }));
    assert_eq!(warm.body["prefix"]["tier"], "exact", "{warm:?}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let left = warm.body["expires_at"].as_u64().expect("a time") - now.expect("a time").as_secs();
    assert!((590..=600).contains(&left), "{left} s");
    assert!(pinned() > 0);
    let route = format!("/v1/prewarm/{}", warm.body["handle"].as_str().expect("a handle"));
    assert_eq!(server.delete(&route), 200);
    assert_eq!(pinned(), 0);
    assert_eq!(server.delete(&route), 404);
    let later = json!({ "state": [STATE, 2], "wait": false });
    assert_eq!(server.post("/v1/prewarm", &later).body["prefix"]["tier"], "pending");
}

#[test]
fn case_28_without_any_cache_all_questions_are_still_answered() {
    let server = Server::start(&["--engine", "fake", "--kv-bytes", "0"]);
    for question in ["Is the parcel late?", "Is the customer calm?"] {
        assert_eq!(server.ask(STATE, question).status, 200);
    }
}

#[test]
fn case_20_another_tenant_finds_nothing_of_a_prewarmed_state() {
    let server =
        Server::start(&["--engine", "fake", "--api-key", "a=key-a", "--api-key", "b=key-b"]);
    let post = |key: &str, route: &str, body: Value| {
        let agent: ureq::Agent = ureq::Agent::config_builder().build().into();
        let request = agent.post(format!("{}{route}", server.base())).header("x-api-key", key);
        let response = request.send_json(body).expect("200");
        let tokens = response.headers()["x-docket-cached-tokens"].to_str().expect("text");
        tokens.parse::<u64>().expect("a number")
    };
    post("key-a", "/v1/prewarm", json!({ "state": STATE }));
    let ask = || decision(STATE, "Is the parcel late?");
    let other = post("key-b", "/v1/systemone", ask());
    let own = post("key-a", "/v1/systemone", ask());
    assert!(other < STATE.len() as u64 && own > STATE.len() as u64, "other {other}, own {own}");
}

#[test]
fn requests_that_come_together_read_their_state_once() {
    const CLIENTS: u64 = 8;
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "50"]);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let base = server.base().to_owned();
            let body = decision(STATE, &format!("Is number {client} late?"));
            thread::spawn(move || try_post(&base, "/v1/systemone", &body).expect("an answer"))
        })
        .collect();
    let replies: Vec<_> = clients.into_iter().map(|c| c.join().expect("no panic")).collect();
    let warm = server.post("/v1/prewarm", &json!({ "state": STATE }));
    let prefix_tokens = warm.body["prompt_tokens"].as_u64().expect("a number");
    let sum = |name: &str| replies.iter().map(|reply| reply.number(name)).sum::<u64>();
    let cached = sum("x-docket-cached-tokens");
    assert_eq!(cached, prefix_tokens * (CLIENTS - 1), "one of them read the prefix, for all");
    let steps = server.get("/health")["details"]["engine"]["steps"].as_u64().expect("a number");
    assert!(steps < CLIENTS, "rows of different requests share steps: {steps} steps");
}

#[test]
fn questions_in_another_order_or_in_requests_of_their_own_have_the_same_answers() {
    let server = Server::start(&["--engine", "fake"]);
    let noul = |name: &str| json!({ "type": "noul", "instructions": format!("Is it {name}?") });
    let pick = json!({ "type": "choice", "instructions": "Which?", "criteria": { "a": null, "b": "x", "c": null } });
    let asked = [noul("late"), pick, noul("calm")];
    let ask = |ids: &[&str], asked: &[Value]| {
        let questions: serde_json::Map<_, _> =
            ids.iter().map(|id| (*id).to_owned()).zip(asked.iter().cloned()).collect();
        let body = json!({ "state": STATE, "questions": questions });
        let reply = server.post("/v1/systemone", &body);
        assert_eq!(reply.status, 200, "{reply:?}");
        ids.iter().map(|id| reply.body["answers"][*id].clone()).collect::<Vec<_>>()
    };
    let together = ask(&["1", "2", "3"], &asked);
    assert!(together.iter().all(Value::is_object), "{together:?}");
    let (turned, mut answers) = (asked.iter().rev().cloned().collect::<Vec<_>>(), together.clone());
    answers.reverse();
    assert_eq!(ask(&["1", "2", "3"], &turned), answers);
    for (question, answer) in asked.iter().zip(&together) {
        assert_eq!(ask(&["q"], std::slice::from_ref(question))[0], *answer);
    }
}

#[test]
fn a_state_is_tokenised_once_for_all_its_questions() {
    let server = Server::start(&["--engine", "fake"]);
    let questions: serde_json::Map<String, Value> = (0..8)
        .map(|n| {
            (format!("q{n}"), json!({ "type": "noul", "instructions": format!("Is {n} so?") }))
        })
        .collect();
    let body = json!({ "state": STATE, "diagnostics": true, "questions": questions });
    let count = || {
        let reply = server.post("/v1/systemone", &body);
        reply.body["x_diagnostics"]["state_tokenisations"].as_u64()
    };
    assert_eq!((count(), count()), (Some(1), Some(0)));
}
