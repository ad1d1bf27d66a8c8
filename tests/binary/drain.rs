//! The end of a server: what was admitted is finished or told, and nothing else is taken.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::server::{Reply, Server, decision, try_post};

/// A client; it has nothing where the connection ended without an answer.
type Client = JoinHandle<Option<Reply>>;

/// A server whose steps are so slow and small that much waits.
fn slow(step_ms: &str, more: &[&str]) -> Server {
    let slow = ["--engine", "fake", "--fake-step-ms", step_ms, "--rows-max", "1"];
    Server::start(&[&slow, more].concat())
}

/// Asks about states of their own until all are let in.
fn ask(server: &Server, count: u64) -> Vec<Client> {
    let clients = (0..count)
        .map(|n| {
            let base = server.base().to_owned();
            let body = decision(&format!("Ticket {n}: a text of its own."), "Is it late?");
            thread::spawn(move || try_post(&base, "/v1/systemone", &body).ok())
        })
        .collect();
    // Counted once for each, however far it is: a decision that ends meanwhile stays let in.
    while server.metric("docket_reads_admitted_total") < count {
        thread::yield_now();
    }
    clients
}

fn ends(clients: Vec<Client>) -> Vec<Reply> {
    let end = |client: Client| client.join().expect("no panic").expect("an answer");
    clients.into_iter().map(end).collect()
}

fn count(replies: &[Reply], status: u16) -> usize {
    replies.iter().filter(|reply| reply.status == status).count()
}

#[test]
fn a_drain_that_is_shorter_than_the_work_finishes_what_it_can_and_refuses_the_rest() {
    let server = slow("200", &["--drain-timeout", "1s", "--wait-normal", "1h"]);
    let clients = ask(&server, 20);
    let began = Instant::now();
    assert_eq!(server.metric("docket_ready"), 1);
    server.terminate();
    let ready = loop {
        let ready = server.try_get("/health?ready=1").expect("an answer");
        if ready.status == 503 {
            break ready;
        }
    };
    assert_eq!(ready.body["reason"], "draining");
    assert_eq!(server.metric("docket_ready"), 0);
    assert_eq!(server.try_get("/health").expect("an answer").status, 200, "it is alive");
    let newcomer = server.ask("Another one.", "Is it late?");
    assert_eq!((newcomer.status, newcomer.text("x-docket-reason")), (503, Some("draining")));
    let replies = ends(clients);
    let (done, refused) = (count(&replies, 200), count(&replies, 503));
    assert!(done > 0 && refused > 0 && done + refused == 20, "{done} done, {refused} refused");
    for reply in replies.iter().filter(|reply| reply.status == 503) {
        assert_eq!(reply.text("x-docket-reason"), Some("draining"), "{reply:?}");
        assert!(reply.number("retry-after") >= 1);
    }
    let (status, log) = server.end();
    assert_eq!(status.code(), Some(0), "{log:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let told = log.iter().find(|line| line.contains("drained in")).expect("a report");
    assert!(told.contains(" s: ") && told.contains(&format!("{refused} refused")), "{told}");
}

#[test]
fn a_drain_that_is_long_enough_answers_everything() {
    let server = slow("20", &["--drain-timeout", "30s"]);
    let clients = ask(&server, 10);
    server.terminate();
    let replies = ends(clients);
    assert_eq!(count(&replies, 200), 10, "{replies:?}");
    assert!(server.wait().success());
}

#[test]
fn without_time_to_drain_everything_that_waits_is_refused_at_once() {
    let server = slow("400", &["--drain-timeout", "0s"]);
    let clients = ask(&server, 8);
    let began = Instant::now();
    server.terminate();
    let replies = ends(clients);
    assert!(count(&replies, 503) >= 6, "{replies:?}");
    assert!(server.wait().success());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let server = slow("20000", &["--drain-timeout", "1h"]);
    let clients = ask(&server, 2);
    server.terminate();
    while server.get("/health?ready=1")["reason"] != json!("draining") {
        thread::yield_now();
    }
    let began = Instant::now();
    server.terminate();
    assert_eq!(server.wait().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    for client in clients {
        assert!(client.join().expect("no panic").is_none(), "an answer");
    }
}

#[test]
fn an_idle_server_is_drained_in_no_time_and_says_so_like_a_person() {
    let server = slow("1", &[]);
    server.terminate();
    let (status, log) = server.end();
    assert!(status.success());
    let told = log.iter().find(|line| line.contains("drained in")).expect("a report");
    assert!(told.contains("drained in 0.0 s: 0 reads answered, 0 refused"), "{told}");
}
