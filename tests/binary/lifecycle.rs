//! Start, overload, faults and stop.

use std::fs::File;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::json;

use crate::server::{Server, decision, terminate, try_post};

/// Memory beside weights and kept states: tokenizer, buffers, connections (issue 3: 200 MB).
const OTHER_KIB: u64 = 200 << 10;

#[test]
fn sigterm_under_load_loses_nothing_and_exits_with_0() {
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "20"]);
    let clients: Vec<_> = (0..16)
        .map(|client| {
            let base = server.base().to_owned();
            thread::spawn(move || {
                let mut statuses = Vec::new();
                for number in 0..40 {
                    let body = decision(&format!("Ticket {client}/{number}."), "Is it late?");
                    match try_post(&base, "/v1/systemone", &body) {
                        Ok(reply) => statuses.push(reply.status),
                        // The listener is closed: nothing was admitted.
                        Err(_) => break,
                    }
                }
                statuses
            })
        })
        .collect();
    while server.get("/health")["details"]["engine"]["steps"].as_u64() < Some(5) {
        thread::yield_now();
    }
    server.terminate();
    let statuses: Vec<u16> =
        clients.into_iter().flat_map(|client| client.join().expect("no panic")).collect();
    assert!(server.wait().success());
    let answered = statuses.iter().filter(|status| **status == 200).count();
    assert!(answered >= 5, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
}

#[test]
fn the_address_is_told_whatever_the_log_level() {
    // `start` waits for the line.
    let server = Server::start(&["--engine", "fake", "--log-level", "error"]);
    assert_eq!(server.get("/health")["ready"], json!(true));
}

/// A disk that is full under the log ends the log, and not the server.
#[test]
fn a_log_that_cannot_be_written_is_lost_and_nothing_else() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = free.local_addr().expect("an address").port().to_string();
    drop(free);
    let full = File::options().write(true).open("/dev/full").expect("the device that is full");
    let mut server = Command::new(env!("CARGO_BIN_EXE_docket"))
        .args(["serve", "--engine", "fake", "--offline", "--port", &port])
        .stderr(Stdio::from(full))
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let base = format!("http://127.0.0.1:{port}");
    let body = decision("Ticket.", "Is it late?");
    let reply = loop {
        if let Ok(reply) = try_post(&base, "/v1/systemone", &body) {
            break reply;
        }
        let ended = server.try_wait().expect("its state");
        assert!(ended.is_none(), "it ended before it answered: {ended:?}");
        thread::yield_now();
    };
    assert_eq!(reply.status, 200);
    terminate(&server);
    assert!(server.wait().expect("its end").success());
}

#[test]
fn case_9_a_full_queue_refuses_by_reads_with_a_retry_after() {
    let arguments =
        ["--engine", "fake", "--fake-step-ms", "300", "--max-questions", "4", "--reads-max", "4"];
    let server = Server::start(&arguments);
    let clients: Vec<_> = (0..12)
        .map(|client| {
            let base = server.base().to_owned();
            let body = decision(&format!("Ticket {client}."), "Is it late?");
            thread::spawn(move || try_post(&base, "/v1/systemone", &body).expect("an answer"))
        })
        .collect();
    let replies: Vec<_> = clients.into_iter().map(|c| c.join().expect("no panic")).collect();
    let refused: Vec<_> = replies.iter().filter(|reply| reply.status != 200).collect();
    assert!(!refused.is_empty() && refused.len() < 12);
    for reply in refused {
        assert_eq!(reply.status, 429, "{reply:?}");
        assert_eq!(reply.body["detail"]["error_type"], "rate_limit_error");
        assert!(reply.number("retry-after") >= 1);
    }
}

#[test]
fn case_31_a_panic_in_the_forward_pass_is_retried_and_answered() {
    let server = Server::start(&["--engine", "fake", "--fake-fault", "panic@2"]);
    for number in 0..4 {
        let reply = server.ask(&format!("Ticket {number}."), "Is it late?");
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    assert_eq!(server.get("/health")["ready"], json!(true));
}

#[test]
fn case_42_a_read_that_is_not_finite_once_is_retried_and_answered_like_any() {
    let asked = |arguments: &[&str]| {
        let server = Server::start(&[&["--engine", "fake"], arguments].concat());
        let replies = (0..4).map(|n| server.ask(&format!("Ticket {n}."), "Is it late?"));
        replies.map(|reply| (reply.status, reply.body["answers"].to_string())).collect::<Vec<_>>()
    };
    let sound = asked(&[]);
    assert!(sound.iter().all(|(status, _)| *status == 200), "{sound:?}");
    for step in 1..4 {
        assert_eq!(asked(&["--fake-fault", &format!("nan@{step}")]), sound, "nan@{step}");
    }
}

#[test]
fn case_51_a_state_beyond_the_context_is_refused_with_both_lengths() {
    let server = Server::start(&["--engine", "fake", "--context", "512"]);
    let reply = server.ask(&"word ".repeat(200), "Is it late?");
    assert_eq!(reply.status, 422);
    let message = reply.body["detail"][0]["msg"].as_str().expect("a message");
    assert!(message.contains("512"), "{message}");
    let reply = server.ask(&"word ".repeat(20_000), "Is it late?");
    assert_eq!(reply.status, 422, "{reply:?}");
}

#[test]
fn memory_is_what_health_says_and_loading_takes_no_more() {
    for (precision, weights_kib) in [("f32", 500_000), ("bf16", 250_000), ("int8", 150_000)] {
        let arguments = ["--precision", precision, "--packed-max", "0", "--kv-bytes", "64MiB"];
        let Some(server) = Server::smollm2(&arguments) else { return };
        let state = "The parcel is late. ".repeat(100);
        assert_eq!(server.post("/v1/prewarm", &json!({ "state": state })).status, 200);
        assert_eq!(server.ask(&state, "Is it late?").status, 200);
        let (stays_kib, peak_kib) = server.private_kib();
        let memory = &server.get("/health")["details"]["model"]["memory"];
        let told = |part: &str| memory[part].as_u64().expect(part) / 1024;
        println!(
            "{precision}: at most {peak_kib} KiB at the start, then {stays_kib} KiB: {memory}"
        );
        assert!(told("weights_bytes") > weights_kib, "{precision}: {memory}");
        assert_eq!(told("kv_budget_bytes"), 64 << 10);
        assert!((1..=64 << 10).contains(&told("kv_used_bytes")), "{memory}");
        assert!(told("scratch_bytes") > 0, "{memory}");
        let least = told("weights_bytes") + told("kv_used_bytes");
        assert!((least..least + OTHER_KIB).contains(&stays_kib), "{stays_kib} KiB: {memory}");
        assert!(peak_kib <= stays_kib + stays_kib / 20, "{peak_kib} KiB, then {stays_kib} KiB");
    }
}

#[test]
fn a_catalogue_model_is_listed_with_its_release_date() {
    let Some(server) = Server::smollm2(&[]) else { return };
    assert_eq!(server.get("/v1/models")["models"][0]["release_date"], "2024-11-01");
}

#[test]
fn case_30_a_deadline_holds_while_a_step_runs() {
    let server = Server::start(&["--engine", "fake", "--fake-fault", "hang@1"]);
    let mut body = decision("The parcel is late.", "Is it late?");
    body["timeout_ms"] = json!(300);
    let reply = server.post("/v1/systemone", &body);
    assert_eq!((reply.status, &reply.body["detail"]["error_type"]), (504, &json!("timeout")));
}

#[test]
fn a_drain_ends_although_a_step_hangs() {
    let arguments = ["--engine", "fake", "--fake-fault", "hang@1", "--drain-timeout", "1s"];
    let server = Server::start(&arguments);
    let base = server.base().to_owned();
    let body = decision("The parcel is late.", "Is it late?");
    let client = thread::spawn(move || try_post(&base, "/v1/systemone", &body));
    while server.get("/health")["details"]["queue"]["reads_in_flight"].as_u64() != Some(1) {
        thread::yield_now();
    }
    server.terminate();
    let reply = client.join().expect("no panic").expect("an answer");
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(server.wait().success());
}

#[test]
fn case_35_while_it_drains_a_server_says_so() {
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "1500"]);
    let base = server.base().to_owned();
    let body = decision("The parcel is late.", "Is it late?");
    let client = thread::spawn(move || try_post(&base, "/v1/systemone", &body));
    while server.get("/health")["details"]["queue"]["reads_in_flight"].as_u64() != Some(1) {
        thread::yield_now();
    }
    server.terminate();
    let ready = loop {
        let ready = server.get("/health?ready=1");
        if ready["ready"] == json!(false) {
            break ready;
        }
    };
    assert_eq!(ready["reason"], "draining");
    assert_eq!(server.ask("Another one.", "Is it late?").status, 503);
    assert_eq!(client.join().expect("no panic").expect("an answer").status, 200);
    assert!(server.wait().success());
}

#[test]
fn long_instructions_run_in_chunks_and_answer_the_same() {
    let long = "Is the parcel late, and is it the one that was promised for Monday? ".repeat(60);
    let answer = |arguments: &[&str]| {
        let server = Server::start(&[&["--engine", "fake"], arguments].concat());
        let reply = server.ask("The parcel is late.", &long);
        assert_eq!(reply.status, 200, "{reply:?}");
        let steps = server.get("/health")["details"]["engine"]["steps"].as_u64();
        (reply.body["answers"].to_string(), steps.expect("a number"))
    };
    let (in_chunks, steps) = answer(&["--step-tokens", "512", "--chunk-tokens", "256"]);
    let (at_once, one) = answer(&["--step-tokens", "16384"]);
    assert_eq!(in_chunks, at_once);
    assert!(steps >= 8 && one <= 2, "{steps} steps, and {one}");
}

#[test]
fn the_tokens_shown_for_a_layout_are_those_that_its_questions_cost() {
    for layout in ["bare", "keys-short"] {
        let server = Server::start(&["--engine", "fake", "--layout", layout]);
        let body = json!({ "state": "s", "samples": 2, "questions": {
            "n": { "type": "noul", "instructions": "Late?" },
            "c": { "type": "choice", "instructions": "Which?",
                   "criteria": { "red": null, "green": null, "blue": null } },
            "s": { "type": "score", "instructions": "How?", "criteria": ["low", "high"] } } });
        assert_eq!(server.post("/v1/systemone", &body).status, 200);
        let shown = &server.get("/health")["details"]["model"]["layout_tokens"];
        // One token a byte; each text has a space before it.
        let own = [
            ("noul", " Late?", 2),
            ("choice", " Which? red green blue", 3),
            ("score", " How? low high", 2),
        ];
        for (kind, words, options) in own {
            let of = |part: &str| shown[kind][part].as_u64().unwrap_or(0);
            let read = of("read") + options * of("option") + words.len() as u64;
            let metric = |name: &str| server.metric(&format!("docket_{name}{{kind=\"{kind}\"}}"));
            assert_eq!(metric("question_reads_total"), 2, "{layout} {kind}");
            assert_eq!(metric("suffix_tokens_total"), 2 * read, "{layout} {kind}");
            assert_eq!(metric("questions_total"), 1, "{layout} {kind}");
        }
    }
}

#[test]
fn a_prompt_that_is_too_long_names_its_question() {
    let server = Server::start(&["--engine", "fake", "--context", "512"]);
    let reply = server.post(
        "/v1/systemone",
        &json!({ "state": "s", "questions": {
            "good": { "type": "noul" },
            "bad": { "type": "noul", "instructions": "word ".repeat(200) } } }),
    );
    assert_eq!(reply.status, 422);
    assert_eq!(reply.body["detail"][0]["loc"], json!(["body", "questions", "bad"]));
}

#[test]
fn text_of_many_megabytes_is_refused_at_once_wherever_it_stands() {
    let server = Server::start(&["--engine", "fake", "--context", "512"]);
    let much = "! ".repeat(4 << 20);
    for question in [
        json!({ "type": "noul", "instructions": much, "samples": 32 }),
        json!({ "type": "choice", "criteria": { "a": much, "b": null }, "samples": 32 }),
        json!({ "type": "choice", "criteria": [much, "b"], "samples": 32 }),
        json!({ "type": "score", "criteria": ["low", ["high", much]], "samples": 32 }),
    ] {
        let body = json!({ "state": "s", "questions": { "q": question }, "timeout_ms": 5_000 });
        let reply = server.post("/v1/systemone", &body);
        assert_eq!(reply.status, 422);
        let fault = &reply.body["detail"][0];
        assert_eq!(fault["loc"], json!(["body", "questions", "q"]));
        let message = fault["msg"].as_str().expect("a message");
        assert!(message.contains("at least 8") && message.contains("512"), "{message}");
    }
    let reply = server.ask(&much, "Is it late?");
    assert_eq!(reply.body["detail"][0]["loc"], json!(["body", "state"]));
}
