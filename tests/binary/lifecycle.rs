//! Start, overload, faults and stop.

use std::thread;

use serde_json::json;

use crate::server::{Server, decision, try_post};

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
fn case_42_logits_that_are_not_finite_fail_their_own_request_only() {
    let server = Server::start(&["--engine", "fake", "--fake-fault", "nan@2"]);
    let statuses: Vec<u16> =
        (0..3).map(|n| server.ask(&format!("Ticket {n}."), "Is it late?").status).collect();
    assert_eq!(statuses, [200, 500, 200]);
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
fn loading_takes_little_more_memory_than_what_stays() {
    let Some(server) = Server::smollm2(&[]) else { return };
    assert_eq!(server.ask("The parcel is late.", "Is it late?").status, 200);
    let (stays_kib, peak_kib) = server.private_kib();
    println!("at the start at most {peak_kib} KiB, after an answer {stays_kib} KiB");
    assert!(stays_kib > 400_000, "the weights of a 135 M model are there: {stays_kib} KiB");
    assert!(peak_kib * 10 <= stays_kib * 13, "{peak_kib} KiB at the start, {stays_kib} KiB after");
}
