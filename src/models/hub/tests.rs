//! Transfers from a server on the loopback that plays a script, one response a connection.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use tempfile::TempDir;

use super::*;
use crate::models::assembly::Wanted;
use crate::models::progress::Progress;

/// Serves `responses` and returns each request's `Range`.
fn serve(responses: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/o/r/resolve/main/m.gguf", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let answer = |response: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines: Vec<String> =
                lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
            stream.write_all(response.as_bytes()).unwrap();
            lines.into_iter().find(|line| line.starts_with("range:")).unwrap_or_default()
        };
        responses.into_iter().map(answer).collect()
    });
    (url, server)
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n{body}")
}

fn partial(start: usize, length: usize, body: &str) -> String {
    let end = start + length - 1;
    let range = format!("content-length: {length}\r\ncontent-range: bytes {start}-{end}/7\r\n");
    response("206 Partial Content", &range, body)
}

/// Fetches 7 bytes, of which `kept` are there already.
fn fetch(url: &str, kept: &str) -> (Result<(), Failure>, String) {
    let folder = TempDir::new().unwrap();
    let part = folder.path().join("m.gguf.part");
    fs::write(&part, kept).unwrap();
    let wanted = Wanted { file: "m.gguf".to_owned(), bytes: Some(7), sha256: None };
    let mut progress = Progress::Silent;
    let mut assembly = Assembly::open(folder.path(), &wanted, &mut progress).unwrap();
    let outcome = fetch_url(url, &mut assembly);
    (outcome, fs::read_to_string(part).unwrap())
}

fn why(outcome: Result<(), Failure>) -> String {
    match outcome.unwrap_err() {
        Failure::Way(why) | Failure::Damaged(why) => why,
        Failure::Local(error) => panic!("local: {error}"),
    }
}

#[test]
fn a_transfer_goes_on_at_the_first_missing_byte() {
    let (url, server) = serve(vec![partial(3, 4, "ghts")]);
    let (outcome, content) = fetch(&url, "wei");
    outcome.unwrap();
    assert_eq!(content, "weights");
    assert_eq!(server.join().unwrap(), ["range: bytes=3-"]);
}

#[test]
fn a_server_without_ranges_starts_the_file_over() {
    let (url, server) = serve(vec![response("200 OK", "content-length: 7\r\n", "weights")]);
    let (outcome, content) = fetch(&url, "xyz");
    outcome.unwrap();
    assert_eq!(content, "weights");
    server.join().unwrap();
}

#[test]
fn a_transfer_that_breaks_off_is_taken_up_again() {
    let (url, server) = serve(vec![partial(0, 7, "wei"), partial(3, 4, "ghts")]);
    let (outcome, content) = fetch(&url, "");
    outcome.unwrap();
    assert_eq!(content, "weights");
    assert_eq!(server.join().unwrap(), ["range: bytes=0-", "range: bytes=3-"]);
}

#[test]
fn a_missing_file_and_a_closed_one_are_told_apart_from_a_dead_hub() {
    for (status, telling) in [("404 Not Found", "404"), ("403 Forbidden", "403")] {
        let (url, server) = serve(vec![response(status, "content-length: 0\r\n", "")]);
        let (outcome, _) = fetch(&url, "");
        assert!(why(outcome).contains(telling));
        server.join().unwrap();
    }
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (outcome, content) = fetch(&format!("http://{unused}/x"), "wei");
    assert!(why(outcome).contains("refused"));
    assert_eq!(content, "wei");
}

#[test]
fn a_file_longer_than_the_pinned_one_is_refused() {
    let body = "weights and more";
    let (url, server) = serve(vec![response("200 OK", "content-length: 16\r\n", body)]);
    let (outcome, content) = fetch(&url, "");
    assert!(why(outcome).contains("longer"));
    assert_eq!(content, "");
    server.join().unwrap();
}
