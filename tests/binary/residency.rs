//! States stay: registration after a response, prewarm, and what a question then costs.

use serde_json::json;

use crate::server::Server;

const STATE: &str =
    "The parcel was promised for Monday. It is Thursday, and nobody answers the phone.";

/// Waits until a registration has ended.
fn await_registration(server: &Server) {
    for _ in 0..2_000 {
        let counters = &server.get("/health")["details"]["state_boundary"];
        if counters["registered"].as_u64() > Some(0) {
            return;
        }
        std::thread::yield_now();
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

#[test]
fn case_28_without_any_cache_all_questions_are_still_answered() {
    let server = Server::start(&["--engine", "fake", "--kv-bytes", "0"]);
    for question in ["Is the parcel late?", "Is the customer calm?"] {
        assert_eq!(server.ask(STATE, question).status, 200);
    }
}

#[test]
fn case_20_another_tenant_finds_nothing_of_a_prewarmed_state() {
    let server = Server::start(&["--engine", "fake", "--api-key", "a=key-a,b=key-b"]);
    let post = |key: &str, route: &str, body: serde_json::Value| {
        let agent: ureq::Agent = ureq::Agent::config_builder().build().into();
        let request = agent.post(format!("{}{route}", server.base())).header("x-api-key", key);
        let response = request.send_json(body).expect("200");
        let tokens = response.headers()["x-docket-cached-tokens"].to_str().expect("text");
        tokens.parse::<u64>().expect("a number")
    };
    post("key-a", "/v1/prewarm", json!({ "state": STATE }));
    let ask = || crate::server::decision(STATE, "Is the parcel late?");
    let other = post("key-b", "/v1/systemone", ask());
    let own = post("key-a", "/v1/systemone", ask());
    assert!(other < STATE.len() as u64 && own > STATE.len() as u64, "other {other}, own {own}");
}
