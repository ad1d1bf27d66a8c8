//! What goes wrong around the model, and to whom: steps, rows, states, actors, the engine itself.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Reply, Server, decision, try_post};

const STATE: &str = "The parcel was promised for Monday. It is Thursday.";

/// Longest time for something to come about.
const PATIENCE: Duration = Duration::from_secs(20);

fn faulty(fault: &str, more: &[&str]) -> Server {
    Server::start(&[&["--engine", "fake", "--fake-fault", fault], more].concat())
}

fn spawn(server: &Server, state: &str, question: &str) -> JoinHandle<Reply> {
    let (base, body) = (server.base().to_owned(), decision(state, question));
    thread::spawn(move || try_post(&base, "/v1/systemone", &body).expect("an answer"))
}

/// Asks until `is_so` of what `/health` shows.
fn await_health(server: &Server, route: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let health = server.get(route);
        if is_so(&health) {
            return health;
        }
        assert!(began.elapsed() < PATIENCE, "{health}");
        thread::yield_now();
    }
}

fn await_running(server: &Server) {
    await_health(server, "/health", |health| {
        health["details"]["queue"]["reads_in_flight"].as_u64() > Some(0)
    });
}

/// Asks a first question, and when it runs all others, so that they come to one step together.
fn ask_together(server: &Server, asked: &[(&str, &str)]) -> Vec<Reply> {
    let first = spawn(server, "Another state.", "Is it first?");
    await_running(server);
    let clients: Vec<_> = asked.iter().map(|(state, ask)| spawn(server, state, ask)).collect();
    assert_eq!(first.join().expect("no panic").status, 200);
    clients.into_iter().map(|client| client.join().expect("no panic")).collect()
}

#[test]
fn case_32_a_poisoned_question_fails_alone_among_those_of_other_requests() {
    for (kind, reason) in
        [("panic", "engine_failed"), ("error", "engine_failed"), ("nan", "non_finite")]
    {
        let server = faulty(&format!("hang@1=400ms,{kind}@row~poison"), &[]);
        let questions: Vec<String> = (0..8).map(|n| format!("Is number {n} late?")).collect();
        let mut asked: Vec<_> = questions.iter().map(|ask| (STATE, ask.as_str())).collect();
        asked.insert(4, (STATE, "Is it poison?"));
        let replies = ask_together(&server, &asked);
        let statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
        let expected: Vec<_> = (0..9).map(|n| if n == 4 { 500 } else { 200 }).collect();
        assert_eq!(statuses, expected, "{kind}");
        assert_eq!(replies[4].text("x-docket-reason"), Some(reason), "{kind}");
        let log = server.log().join("\n");
        assert!(log.contains("each is tried alone") && log.contains("given up"), "{log}");
        assert!(!log.contains("Is it poison") && !log.contains("parcel"), "{log}");
        assert_eq!(server.get("/health")["ready"], json!(true));
    }
}

#[test]
fn a_poisoned_state_fails_those_who_asked_about_it_and_nobody_else() {
    for kind in ["panic", "error", "nan"] {
        let server = faulty(&format!("hang@1=400ms,{kind}@state~poison"), &[]);
        let bad = "A poisoned state: poison.";
        let asked = [
            (bad, "Is it late?"),
            (STATE, "Is it late?"),
            (bad, "Is it calm?"),
            ("A third state.", "Is it late?"),
        ];
        let statuses: Vec<_> =
            ask_together(&server, &asked).iter().map(|reply| reply.status).collect();
        assert_eq!(statuses, [500, 200, 500, 200], "{kind}");
    }
}

#[test]
fn where_memory_is_short_steps_are_halved_and_everything_is_answered() {
    let server = faulty("hang@1=400ms,oom@over~300", &[]);
    let questions: Vec<String> = (0..8).map(|n| format!("Is number {n} late?")).collect();
    let asked: Vec<_> = questions.iter().map(|ask| (STATE, ask.as_str())).collect();
    let replies = ask_together(&server, &asked);
    assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
    let log = server.log().join("\n");
    assert!(log.contains("half of it is tried"), "{log}");
}

#[test]
fn after_repeated_failures_everything_says_why_and_the_process_ends_with_70() {
    let server = faulty("panic@3+", &["--log", "json"]);
    for number in 0..2 {
        assert_eq!(server.ask(&format!("State {number}."), "Is it late?").status, 200);
    }
    let mut failed = 0;
    let health = loop {
        let reply = server.ask(&format!("Failing {failed}."), "Is it late?");
        if reply.status == 503 {
            break server.try_get("/health").expect("an answer");
        }
        assert_eq!(reply.status, 500, "{reply:?}");
        failed += 1;
        assert!(failed < 20, "it never dies");
    };
    assert_eq!(health.status, 503);
    assert_eq!(health.body["ok"], json!(false));
    assert_eq!(health.body["engine"], "dead");
    assert_eq!(health.body["exit_code"], 70);
    let why = health.body["reason"].as_str().expect("a reason").to_owned();
    assert!(why.contains("in a row failed") && why.contains("injected"), "{why}");
    for route in ["/v1/models", "/metrics", "/openapi.json"] {
        let reply = server.try_get(route).expect("an answer");
        assert_eq!((reply.status, reply.text("x-docket-reason")), (503, Some("engine_dead")));
        assert!(reply.body["detail"]["message"].as_str().expect("text").contains(&why));
    }
    let warm = server.post("/v1/prewarm", &json!({ "state": STATE }));
    assert_eq!((warm.status, warm.text("x-docket-reason")), (503, Some("engine_dead")));
    let (status, log) = server.end();
    assert_eq!(status.code(), Some(70), "{log:?}");
    // Each line is JSON, the panics' too; each panic is told once, with its place.
    let lines: Vec<Value> =
        log.iter().map(|line| serde_json::from_str(line).expect("a JSON line")).collect();
    let told = |message: &str| {
        lines.iter().filter(|line| line["fields"]["message"] == message).collect::<Vec<_>>()
    };
    let (panics, failures) = (told("a thread panicked"), told("a step failed"));
    assert_eq!(panics.len(), failures.len() + 1, "one more in the probe: {log:?}");
    assert!(panics.iter().all(|line| line["fields"]["thread"] == "engine-0"), "{panics:?}");
    assert!(panics[0]["fields"]["place"].as_str().expect("a place").contains("fake.rs"));
    let first = &failures[0]["fields"];
    assert_eq!(
        (&first["step"], &first["kind"], &first["items"]),
        (&json!(2), &json!("panic"), &json!(2))
    );
    assert_eq!(told("the engine is dead").len(), 1);
    assert_eq!(told("ended, since the engine is dead")[0]["fields"]["exit_code"], 70);
}

#[test]
fn a_question_that_spoils_every_step_does_not_end_the_server() {
    let server = faulty("panic@row~poison", &[]);
    for _ in 0..3 {
        let questions: serde_json::Map<String, Value> = (0..20)
            .map(|n| {
                let text = format!("Is {n} poison?");
                (format!("q{n}"), json!({ "type": "noul", "instructions": text }))
            })
            .collect();
        let body = json!({ "state": STATE, "samples": 1, "questions": questions });
        assert_eq!(server.post("/v1/systemone", &body).status, 500);
    }
    assert_eq!(server.get("/health")["ok"], json!(true));
    assert_eq!(server.ask(STATE, "Is it late?").status, 200);
}

#[test]
fn a_lost_actor_is_started_again_and_what_was_in_flight_may_be_sent_again() {
    for actor in ["scheduler", "cache", "registration"] {
        let server = faulty(&format!("{actor}@3"), &["--fake-step-ms", "30", "--rows-max", "2"]);
        let clients: Vec<_> = (0..12)
            .map(|n| spawn(&server, &format!("Ticket {n}: a text of its own."), "Is it late?"))
            .collect();
        for client in clients {
            let reply = client.join().expect("no panic");
            if reply.status != 200 {
                assert_ne!(actor, "registration", "{reply:?}");
                assert_eq!(
                    (reply.status, reply.text("x-docket-reason")),
                    (503, Some("unavailable"))
                );
                assert!(reply.number("retry-after") >= 1);
            }
        }
        let health = await_health(&server, "/health", |health| {
            health["details"]["restarts"][actor] == json!(1)
        });
        let restarts = &health["details"]["restarts"];
        let sum: u64 =
            restarts.as_object().expect("counts").values().filter_map(Value::as_u64).sum();
        assert_eq!(sum, 1, "{restarts}");
        let series = format!("docket_actor_restarts_total{{actor=\"{actor}\"}}");
        assert_eq!(server.metric(&series), 1);
        await_health(&server, "/health?ready=1", |health| health["ready"] == json!(true));
        assert_eq!(server.ask(STATE, "Is it late?").status, 200);
        let queue = server.get("/health")["details"]["queue"].clone();
        assert_eq!(queue["reads_in_flight"], json!(0), "{queue}");
        let log = server.log().join("\n");
        assert!(log.contains("an actor was lost and started again"), "{log}");
    }
}

#[test]
fn actors_that_are_lost_again_and_again_end_the_server_with_70() {
    let server = faulty("scheduler@1+", &[]);
    let began = Instant::now();
    while server.try_get("/health").is_ok_and(|health| health.status == 200) {
        let reply = server.ask(STATE, "Is it late?");
        assert_eq!(reply.status, 503, "{reply:?}");
        assert!(began.elapsed() < PATIENCE, "{reply:?}");
    }
    assert_eq!(server.end().0.code(), Some(70));
}

#[test]
fn a_stuck_step_makes_the_server_unready_until_it_ends_and_never_dead() {
    let server = faulty("hang@2=1500ms", &["--stall-after", "300ms"]);
    assert_eq!(server.ask(STATE, "Is it early?").status, 200);
    let ready = || server.try_get("/health?ready=1").expect("an answer");
    assert_eq!(ready().status, 200);
    let client = spawn(&server, STATE, "Is it late?");
    await_running(&server);
    let unready =
        await_health(&server, "/health?ready=1", |health| health["ready"] == json!(false));
    let reason = unready["reason"].as_str().expect("a reason");
    assert!(reason.contains("in one step for"), "{reason}");
    let alive = server.try_get("/health").expect("an answer");
    assert_eq!((alive.status, &alive.body["ok"]), (200, &json!(true)));
    assert_eq!(client.join().expect("no panic").status, 200);
    await_health(&server, "/health?ready=1", |health| health["ready"] == json!(true));
    assert_eq!(ready().status, 200);
}

#[test]
fn a_fault_without_its_place_is_refused_with_the_grammar() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_docket"))
        .args(["serve", "--engine", "fake", "--fake-fault", "panic"])
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("KIND@PLACE"), "{told}");
}
