//! Tenants through the running binary: keys that come and go under load, limits of each, and usage that
//! a kill leaves whole.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Reply, Sending, Server, decision, say};

/// How long a change of the key file may take; issue 7 says a second, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `docket keys ARGUMENTS --file FILE`; what it printed.
fn keys(file: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_docket"))
        .arg("keys")
        .args(arguments)
        .arg("--file")
        .arg(file)
        .stderr(Stdio::piped())
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {told}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// The id of a key.
fn id(key: &str) -> &str {
    key.split('_').nth(1).expect("an id")
}

fn ask(server: &Server, key: &str, state: &str) -> Reply {
    send(server, "POST", "/v1/systemone", key, Some(&decision(state, "Is it late?")))
}

fn send(server: &Server, method: &str, path: &str, key: &str, body: Option<&Value>) -> Reply {
    let headers = vec![("x-api-key", Some(key))];
    server.send(&Sending { method, path, headers, text: body.map(Value::to_string) })
}

/// Waits until a key is known, or is not; how long that took.
fn until(server: &Server, key: &str, status: u16) -> Duration {
    let began = Instant::now();
    while send(server, "GET", "/v1/models", key, None).status != status {
        assert!(began.elapsed() < PATIENCE, "still not {status}");
        thread::park_timeout(Duration::from_millis(10));
    }
    began.elapsed()
}

#[test]
fn keys_come_and_go_under_load_and_no_request_is_lost() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("keys.toml");
    let first = keys(&file, &["new", "acme", "--operator"]);
    let path = file.display().to_string();
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "1", "--keys", &path]);
    let is_over = AtomicBool::new(false);
    let (answered, revoked) = thread::scope(|scope| {
        let (asking, over) = ((&server, first.as_str()), &is_over);
        let clients: Vec<_> =
            (0..4).map(|client| scope.spawn(move || asked(asking, client, over))).collect();
        let mut revoked = Vec::new();
        for round in 0..5 {
            let other = keys(&file, &["new", "bolt", "--note", &round.to_string()]);
            until(&server, &other, 200);
            keys(&file, &["revoke", id(&other)]);
            revoked.push(until(&server, &other, 401));
        }
        std::fs::write(&file, "[tenants.acme]\nweight = -1\n").unwrap();
        let began = Instant::now();
        while metric(&server, &first, "docket_keys_reload_failed") != "1" {
            assert!(began.elapsed() < PATIENCE, "a faulty file is not told");
            thread::park_timeout(Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
        let answered: u32 =
            clients.into_iter().map(|client| client.join().expect("no panic")).sum();
        (answered, revoked)
    });
    assert!(answered > 0);
    say(&format!("{answered} answered; revoked after {revoked:?}"));
}

/// Asks one question after the other until it is over; how many were answered, which all must be.
fn asked((server, key): (&Server, &str), client: u32, is_over: &AtomicBool) -> u32 {
    let mut answered = 0;
    while !is_over.load(Ordering::Relaxed) {
        let reply = ask(server, key, &format!("Ticket {client}/{answered}."));
        assert_eq!(reply.status, 200, "{reply:?}");
        answered += 1;
    }
    answered
}

/// The value of a series of `/metrics`, as text.
fn metric(server: &Server, key: &str, name: &str) -> String {
    let page = send(server, "GET", "/metrics", key, None);
    let page = page.body.as_str().expect("text").to_owned();
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_default().to_owned()
}

#[test]
fn a_sighup_reads_the_keys_again_and_is_harmless_without_any() {
    let server = Server::start(&["--engine", "fake"]);
    server.hang_up();
    assert_eq!(server.ask("x", "Is it late?").status, 200);
    drop(server);

    let folder = TempDir::new().unwrap();
    let file = folder.path().join("keys.toml");
    keys(&file, &["new", "acme"]);
    let path = file.display().to_string();
    let server = Server::start(&["--engine", "fake", "--keys", &path]);
    let until_told = |told: &str| {
        let began = Instant::now();
        while !server.log().iter().any(|line| line.contains(told)) {
            assert!(began.elapsed() < PATIENCE, "{told}: {:?}", server.log());
            thread::park_timeout(Duration::from_millis(10));
        }
    };
    server.hang_up();
    until_told("the file was read again: nothing changed");
    let new = keys(&file, &["new", "acme", "--weight", "2"]);
    until_told("read again: other limits: acme; other keys: acme (1 came)");
    keys(&file, &["revoke", id(&new)]);
    until_told("read again: other keys: acme (1 went)");
}

#[test]
fn limits_of_a_tenant_hold_and_those_of_another_are_its_own() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("keys.toml");
    let flags = ["new", "small", "--requests-per-minute", "3", "--lane", "batch"];
    let small = keys(&file, &[&flags[..], &["--models", "other"]].concat());
    let few = keys(&file, &["new", "few", "--tokens-per-minute", "500", "--act-for"]);
    let path = file.display().to_string();
    let names = ["--served-name", "fake", "--served-name", "other"];
    let server =
        Server::start(&[&["--engine", "fake", "--keys", &path], names.as_slice()].concat());
    let mut body = decision("x", "Is it late?");
    body["model"] = json!("fake");
    let path = "/self/v1/systemone";
    assert_eq!(send(&server, "POST", path, &small, Some(&body)).status, 400, "samples");
    body["priority"] = json!("urgent");
    let served = send(&server, "POST", "/v1/systemone", &small, Some(&body));
    assert_eq!((served.status, served.text("x-docket-lane")), (200, Some("batch")));
    assert_eq!(served.text("ratelimit-remaining"), Some("1"));
    assert_eq!(send(&server, "GET", "/v1/models", &small, None).status, 200);
    let refused = send(&server, "POST", "/v1/systemone", &small, Some(&body));
    assert_eq!((refused.status, refused.text("x-docket-reason")), (429, Some("rate_limited")));
    // The fake engine has a token a byte.
    assert_eq!(ask(&server, &few, &"a long state ".repeat(30)).status, 200);
    let refused = ask(&server, &few, &"another state ".repeat(30));
    assert_eq!(refused.text("ratelimit-limit-tokens"), Some("500"));
    assert_eq!(refused.text("ratelimit-policy"), Some("500;w=60;comment=\"tokens\""));
    let (left, reset) = ("ratelimit-remaining-tokens", "ratelimit-reset-tokens");
    assert!(refused.number(left) < 500 && refused.number(reset) > 0, "{refused:?}");
    assert!(refused.number("retry-after") > 0, "{refused:?}");
    assert_eq!((refused.status, refused.text("x-docket-reason")), (429, Some("tokens_per_minute")));
    let as_sub = Sending {
        method: "POST",
        path: "/v1/systemone",
        headers: vec![("x-api-key", Some(&few)), ("x-gateway-inference-fairness-id", Some("ann"))],
        text: Some(decision(&"of a sub-tenant ".repeat(30), "Is it late?").to_string()),
    };
    assert_eq!(server.send(&as_sub).status, 429, "the parent's limit is that of all together");
}

#[test]
fn usage_is_kept_over_kills_and_never_counted_twice() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("keys.toml");
    let acme = keys(&file, &["new", "acme"]);
    let boss = keys(&file, &["new", "boss", "--operator"]);
    let (path, usage) = (file.display().to_string(), folder.path().join("usage"));
    let usage = usage.display().to_string();
    let flags = ["--engine", "fake", "--keys", &path, "--usage-dir", &usage];
    let (mut sent, mut settled) = (0, 0);
    for round in 0..3 {
        let server = Server::start(&flags);
        let counted = requests(&server, &boss, "acme");
        assert!((settled..=sent).contains(&counted), "{settled} <= {counted} <= {sent}");
        // What was forgotten is not counted later.
        sent = counted;
        for number in 0..40 {
            assert_eq!(ask(&server, &acme, &format!("{round}/{number}")).status, 200);
            sent += 1;
        }
        settled = sent;
        // A flush that ends after this may have begun before it; one that ends after a second request
        // has begun after the first of them.
        for mark in 0..2 {
            let asked = SystemTime::now();
            assert_eq!(ask(&server, &acme, &format!("{round}/mark/{mark}")).status, 200);
            sent += 1;
            until_written(Path::new(&usage), asked);
        }
        for number in 0..10 {
            assert_eq!(ask(&server, &acme, &format!("{round}/late/{number}")).status, 200);
            sent += 1;
        }
        drop(server);
    }
    let server = Server::start(&flags);
    let counted = requests(&server, &boss, "acme");
    assert!((settled..=sent).contains(&counted), "{settled} <= {counted} <= {sent}");
    let own = send(&server, "GET", "/v1/usage", &acme, None);
    assert_eq!(own.body["total"]["answered"], own.body["total"]["questions"]);
    assert_eq!(send(&server, "GET", "/v1/usage?tenant=boss", &acme, None).status, 403);
    assert_eq!(send(&server, "GET", "/v1/usage?days=x", &acme, None).status, 400);
    let all = send(&server, "GET", "/v1/usage?all=true", &boss, None);
    assert_eq!(all.body["tenants"].as_array().map(Vec::len), Some(2), "{all:?}");
    server.terminate();
    assert!(server.wait().success());
    let shown = Command::new(env!("CARGO_BIN_EXE_docket"))
        .args(["usage", "--usage-dir", &usage, "--tenant", "acme", "--json"])
        .output()
        .expect("it runs");
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["total"]["requests"].as_u64(), Some(counted + 3), "those just now too");
}

/// Waits until the store was written after a time.
fn until_written(folder: &Path, time: SystemTime) {
    let began = Instant::now();
    let written = || std::fs::metadata(folder.join("usage.redb")).and_then(|file| file.modified());
    while written().is_ok_and(|written| written <= time) {
        assert!(began.elapsed() < PATIENCE, "usage is not written");
        thread::park_timeout(Duration::from_millis(10));
    }
}

fn requests(server: &Server, key: &str, tenant: &str) -> u64 {
    let path = format!("/v1/usage?tenant={tenant}");
    let reply = send(server, "GET", &path, key, None);
    reply.body["total"]["requests"].as_u64().expect("a number")
}

#[test]
fn a_server_without_keys_listens_on_this_machine_only() {
    let output = Command::new(env!("CARGO_BIN_EXE_docket"))
        .args(["serve", "--engine", "fake", "--host", "0.0.0.0", "--port", "0"])
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("--insecure-open"), "{told}");
}
