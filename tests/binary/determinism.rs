//! D6 through the binary: the same request gives the same bytes, whatever else the server does.

use std::thread;

use serde_json::{Value, json};

use crate::server::{Server, try_post};

/// Questions of all kinds about state `number`, all orders.
fn request(number: usize) -> Value {
    let text = "The invoice of March was charged twice, and the refund has not come. ".repeat(4);
    json!({ "state": format!("Ticket {number}. {text}"), "diagnostics": true, "questions": {
        "due": { "type": "noul", "instructions": "Is a refund due?" },
        "team": { "type": "choice", "instructions": "Which team?",
                  "criteria": { "billing": "payments", "shipping": null, "access": "logins" } },
        "anger": { "type": "score", "instructions": "How angry?",
                   "criteria": ["calm", "cross", "furious"] } } })
}

/// The answers with their diagnostics, as text.
fn answers(base: &str, number: usize) -> String {
    let reply = try_post(base, "/v1/systemone", &request(number)).expect("an answer");
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.body["answers"].to_string()
}

#[test]
fn smollm2_gives_the_same_bytes_cold_warm_chunked_merged_and_at_any_thread_count() {
    let mut seen = Vec::new();
    for precision in ["f32", "bf16", "int8"] {
        let arguments = ["--precision", precision, "--threads", "1", "--register-boundary", "off"];
        let Some(first) = Server::smollm2(&arguments) else { return };
        let alone: Vec<String> = (0..3).map(|number| answers(first.base(), number)).collect();
        drop(first);
        same_in_company(precision, &alone);
        seen.push(alone);
    }
    assert!(seen[0] != seen[1] && seen[1] != seen[2], "the precision makes no difference");
}

/// Asks the same of two servers, twelve clients at a time.
fn same_in_company(precision: &str, alone: &[String]) {
    let small_steps =
        ["--threads", "2", "--chunk-tokens", "64", "--step-tokens", "96", "--rows-max", "3"];
    for arguments in [&["--threads", "2"][..], &small_steps[..]] {
        let server = Server::smollm2(&[&["--precision", precision], arguments].concat());
        let server = server.expect("it is installed");
        let clients: Vec<_> = (0..12)
            .map(|client| {
                let base = server.base().to_owned();
                thread::spawn(move || (client % 3, answers(&base, client % 3)))
            })
            .collect();
        for client in clients {
            let (number, got) = client.join().expect("no panic");
            assert_eq!(got, alone[number], "state {number} in {precision} under {arguments:?}");
        }
    }
}
