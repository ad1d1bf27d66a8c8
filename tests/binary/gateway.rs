//! `docket gateway` in front of dockets, all of them real processes: keys that a fleet agrees on, the
//! gateway's own pages, and its end.

use std::collections::BTreeSet;

use serde_json::json;
use tempfile::TempDir;

use crate::exposition::Exposition;
use crate::server::Server;

const KEY: &str = "x-docket-state-key";

fn fake(more: &[&str]) -> Server {
    Server::start(&[&["--engine", "fake", "--fake-step-ms", "0"], more].concat())
}

/// The key of a state, as a server calls it.
fn key(server: &Server, state: &str) -> String {
    let reply = server.ask(state, "Is it late?");
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.text(KEY).expect("a key").to_owned()
}

#[test]
fn servers_with_one_secret_agree_on_the_keys_of_states_and_others_do_not() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("secret");
    std::fs::write(&path, "a secret that all of them have\n").expect("written");
    let secret = ["--state-key-secret", path.to_str().expect("text")];
    let (one, other, stranger) = (fake(&secret), fake(&secret), fake(&[]));
    let state = "A parcel that is late.";
    let own = key(&one, state);
    assert_eq!(key(&one, state), own);
    assert_eq!(key(&other, state), own);
    assert_ne!(key(&stranger, state), own);
    assert_ne!(key(&one, "Another parcel."), own);
    let prewarmed = one.post("/v1/prewarm", &json!({ "state": state }));
    assert_eq!((prewarmed.status, prewarmed.text(KEY)), (200, Some(own.as_str())));
    let states = one.post("/v1/prewarm", &json!({ "states": [state] }));
    assert_eq!((states.status, states.text(KEY)), (200, None));
    let bad = ["--state-key-secret", "no/such/file"];
    let checked = std::process::Command::new(env!("CARGO_BIN_EXE_docket"))
        .args(["config", "check", "--engine", "fake"])
        .args(bad)
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(!checked.status.success() && told.contains("--state-key-secret"), "{told}");
}

#[test]
fn a_gateway_keeps_states_together_and_ends_in_order() {
    let dockets = [fake(&[]), fake(&[])];
    let backends = dockets.iter().flat_map(|docket| ["--backend", docket.base()]);
    let gateway = Server::gateway(&backends.collect::<Vec<_>>());
    let answered = || dockets.each_ref().map(|docket| docket.metric("docket_reads_admitted_total"));
    let mut used = BTreeSet::new();
    for state in 0..12 {
        let state = format!("Ticket {state}.");
        let before = answered();
        let first = key(&gateway, &state);
        let home = answered()[0] == before[0];
        assert_eq!(key(&gateway, &state), first);
        let now = answered();
        let at = usize::from(home);
        assert_eq!((now[at] - before[at], now[1 - at] - before[1 - at]), (2, 0), "{state}");
        used.insert(at);
    }
    assert_eq!(used.len(), 2, "both are used");
    let health = gateway.get("/health?ready=1");
    assert_eq!(health["backends"], json!({ "ready": 2, "all": 2 }));
    let page = gateway.page("/metrics");
    let found = Exposition::parse(&page).unwrap_or_else(|fault| panic!("{fault}\n{page}"));
    for name in docket::telemetry::gateway_metric_names() {
        let comes_with_the_first = name.ends_with("_failures_total");
        assert!(comes_with_the_first || found.0.contains_key(name), "{name}");
    }
    assert!(!found.0.contains_key("docket_ready"), "it is no server");
    gateway.terminate();
    let (status, log) = gateway.end();
    assert_eq!(status.code(), Some(0), "{log:?}");
}

#[test]
fn a_gateway_tells_all_its_faults_at_once() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_docket"))
        .args(["gateway", "--load-factor", "0.5", "--backend", "ftp://host"])
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{told}");
    assert!(told.contains("--load-factor: 0.5") && told.contains("--backend: "), "{told}");
}
