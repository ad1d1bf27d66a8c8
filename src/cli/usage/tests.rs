//! `docket usage`: the same table from a folder and from a server, and clear words where there is
//! neither.
//!
//! Goal: whoever runs it sees right numbers or why not. Method: folders of their own, and a server
//! that is one thread which answers once.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use actors::TenantId;
use tempfile::TempDir;

use super::*;
use crate::cli::vouched::{http, serve_tls};
use crate::config::keys::tenant_hash;
use crate::usage::Counts;

fn typed(words: &[&str]) -> UsageArgs {
    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        usage: UsageArgs,
    }
    let words = ["usage"].iter().chain(words);
    <Typed as clap::Parser>::try_parse_from(words).unwrap().usage
}

fn printed(words: &[&str], home: &Path) -> Result<String, String> {
    let mut out = Vec::new();
    run(&typed(words), home, &mut out).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

/// A home in whose folder a few tenants were counted, one of them long ago.
fn home() -> TempDir {
    let home = TempDir::new().unwrap();
    let meter = Meter::open(&home.path().join(FOLDER)).unwrap();
    let now = SystemTime::now();
    let counts = |reads| Counts { requests: 1, answered: 1, reads, ..Counts::default() };
    for (name, reads, days_ago) in
        [("acme", 1, 0), ("acme/x", 20, 0), ("b", 300, 0), ("b", 4_000, 9)]
    {
        let then = now - Duration::from_hours(24 * days_ago);
        meter.add_at(&TenantId(name.into()), counts(reads), then);
    }
    meter.close(Duration::from_mins(1)).unwrap();
    home
}

/// The words of the line that begins with `first`.
fn words(text: &str, first: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(first));
    let line = line.unwrap_or_else(|| panic!("no {first} in\n{text}"));
    line.split_whitespace().map(str::to_owned).collect()
}

/// Requests, answered and reads of a line.
fn numbers(text: &str, first: &str) -> [u64; 3] {
    let words = words(text, first);
    [1, 2, 6].map(|column: usize| words[column].parse().unwrap())
}

/// A server that answers one request; the first lines of the request come back.
fn server(status: u16, body: &'static str) -> (String, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let length = body.len();
        write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        sender.send(head).unwrap();
    });
    (url, receiver)
}

#[test]
fn all_tenants_are_listed_with_their_sum() {
    let home = home();
    let text = printed(&[], home.path()).unwrap();
    assert_eq!(words(&text, "TENANT").len(), 12, "{text}");
    for name in ["acme", "acme/x", "b"] {
        assert_eq!(words(&text, name)[10], tenant_hash(name), "{text}");
    }
    assert_eq!(numbers(&text, "acme"), [2, 2, 21]);
    assert_eq!(numbers(&text, "acme/x"), [1, 1, 20]);
    assert_eq!(numbers(&text, "b"), [2, 2, 4_300]);
    assert_eq!(numbers(&text, "all"), [4, 4, 4_321]);
    let text = printed(&["--days", "3"], home.path()).unwrap();
    assert_eq!((numbers(&text, "b"), numbers(&text, "all")), ([1, 1, 300], [3, 3, 321]));
}

#[test]
fn one_tenant_is_listed_by_day() {
    let home = home();
    let text = printed(&["--tenant", "b"], home.path()).unwrap();
    assert_eq!(text.lines().count(), 4, "a head, two days and their sum: {text}");
    assert_eq!(numbers(&text, "b"), [2, 2, 4_300]);
    let text = printed(&["--tenant", "acme"], home.path()).unwrap();
    assert_eq!(numbers(&text, "acme/x"), [1, 1, 20]);
    let text = printed(&["--tenant", "nobody"], home.path()).unwrap();
    assert_eq!(words(&text, "nobody").last().map(String::as_str), Some("never"));
}

#[test]
fn json_is_what_the_server_would_answer() {
    let home = home();
    let all: Value = serde_json::from_str(&printed(&["--json"], home.path()).unwrap()).unwrap();
    assert_eq!((&all["days"], &all["total"]["reads"]), (&30.into(), &4_321.into()));
    let words = ["--json", "--tenant", "b", "--days", "1"];
    let one: Value = serde_json::from_str(&printed(&words, home.path()).unwrap()).unwrap();
    assert_eq!((&one["recent"]["reads"], &one["total"]["reads"]), (&300.into(), &4_300.into()));
}

#[test]
fn a_folder_without_usage_is_told() {
    let home = TempDir::new().unwrap();
    let message = printed(&[], home.path()).unwrap_err();
    assert!(message.contains("no usage was ever counted there; --usage-dir"), "{message}");
    let other = home.path().join("other");
    let words = ["--usage-dir", other.to_str().unwrap()];
    assert!(printed(&words, home.path()).unwrap_err().contains(other.to_str().unwrap()));
}

#[test]
fn a_server_is_asked_with_the_key_for_what_is_wanted() {
    const ONE: &str = r#"{"requests":7,"answered":6,"refused":0,"failed":1,"questions":0,"reads":5,
        "computed_tokens":0,"cached_tokens":0,"images":0}"#;
    let body = format!(
        r#"{{"days":30,"total":{ONE},"recent":{ONE},"tenants":[
            {{"tenant":"acme","since":"2026-11-30T12:00:00Z","total":{ONE},"recent":{ONE}}}]}}"#
    );
    let (url, asked) = server(200, body.leak());
    let home = TempDir::new().unwrap();
    let text = printed(&["--url", &url, "--key", "s3cret"], home.path()).unwrap();
    assert_eq!((numbers(&text, "acme"), numbers(&text, "all")), ([7, 6, 5], [7, 6, 5]));
    assert_eq!(words(&text, "acme").last().map(String::as_str), Some("2026-11-30"));
    let head = asked.recv().unwrap();
    assert_eq!(head[0], "GET /v1/usage?days=30&all=true HTTP/1.1");
    assert!(head.iter().any(|line| line == "authorization: Bearer s3cret"), "{head:?}");
}

#[test]
fn a_server_that_does_not_answer_with_usage_is_told() {
    for (status, body, part) in [
        (401, "{}", "wants the API key of an operator"),
        (403, "{}", "wants the API key of an operator"),
        (404, r#"{"detail":{"message":"no such\u001b route"}}"#, "refused (404): no such  route"),
        (200, "<html>", "no JSON came back"),
        (200, r#"{"tenants":[{"tenant":"a"}]}"#, "`requests` is missing"),
        (200, "{}", "`tenants` is missing"),
    ] {
        let (url, _asked) = server(status, body);
        let message = printed(&["--url", &url, "--key", "s3cret"], Path::new("/none")).unwrap_err();
        assert!(message.contains(part) && !message.contains("s3cret"), "{message}");
    }
    let message = printed(&["--url", "localhost:8000"], Path::new("/none")).unwrap_err();
    assert!(message.contains("http:// or https:// is missing"), "{message}");
}

#[test]
fn a_private_certificate_vouches_where_it_is_named() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("ca.pem");
    let path = path.to_str().unwrap();
    let (url, authority, server) = serve_tls(http("200 OK", "", r#"{"asked":true}"#));
    std::fs::write(path, authority).unwrap();
    let words = ["--url", &url, "--key", "s3cret", "--json", "--ca", path];
    assert_eq!(printed(&words, home.path()).unwrap(), "{\"asked\":true}\n");
    assert!(server.join().unwrap().starts_with("GET /v1/usage?days=30&all=true HTTP/1.1"));
    // The certificate of another authority does not vouch for it.
    let (url, _, server) = serve_tls(String::new());
    let words = ["--url", &url, "--key", "s3cret", "--ca", path];
    let told = printed(&words, home.path()).unwrap_err();
    assert!(told.starts_with(&url) && told.contains("its certificate"), "{told}");
    assert_eq!(server.join().unwrap(), "", "and the key was not sent");
}

#[test]
fn whoever_counts_is_asked_while_it_counts() {
    let home = home();
    let meter = Meter::open(&home.path().join(FOLDER)).unwrap();
    let (url, asked) = server(200, r#"{"asked":true}"#);
    let outcome = found(&typed(&["--days", "7"]), home.path(), &url).unwrap();
    assert_eq!(outcome["asked"], true);
    assert!(asked.recv().unwrap()[0].contains("?days=7&all=true"));
    let (url, _asked) = server(401, "{}");
    let error = found(&typed(&[]), home.path(), &url).unwrap_err().to_string();
    assert!(error.contains("a server keeps its usage there") && error.contains("--key"), "{error}");
    meter.close(Duration::from_mins(1)).unwrap();
    assert!(printed(&[], home.path()).is_ok());
}

#[test]
fn a_server_that_keeps_nothing_is_asked() {
    let home = home();
    let (url, _asked) = server(200, r#"{"asked":true}"#);
    let outcome = found(&typed(&["--usage-dir", "off"]), home.path(), &url).unwrap();
    assert_eq!(outcome["asked"], true);
}

#[test]
fn what_cannot_be_wanted_is_refused_as_it_is_typed() {
    use clap::Args as _;
    let command = UsageArgs::augment_args(clap::Command::new("usage"));
    for words in [["--days", "401"], ["--days", "x"], ["--tenant", "a/b/c"], ["--tenant", ""]] {
        let words = ["usage"].into_iter().chain(words);
        assert!(command.clone().try_get_matches_from(words).is_err());
    }
}
