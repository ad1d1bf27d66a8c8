//! The client against servers on this machine's loopback that are a few lines each.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

use super::*;
use crate::null;
use crate::workload::{Requests, Workload};

fn request() -> Request {
    let workload = Workload::load("smoke").unwrap();
    let mut requests = Requests::new(workload, &BTreeMap::new(), "test", 1).unwrap();
    let planned = requests.draw();
    requests.write(&planned)
}

/// A client of a listener of its own.
async fn client() -> (TcpListener, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let target = Target::resolve(&url).await.unwrap();
    (listener, Client::connect(target, &Settings::default(), None).await.unwrap())
}

async fn says(mut stream: TcpStream, text: &str) {
    let mut received = Vec::new();
    stream.read_buf(&mut received).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
}

async fn answer_and_count(listener: TcpListener, opened: Rc<Cell<u32>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        opened.set(opened.get() + 1);
        spawn_local(null::answer(stream));
    }
}

#[tokio::test]
async fn requests_in_a_row_share_a_connection() {
    let run = async {
        let (listener, client) = client().await;
        let opened = Rc::new(Cell::new(0));
        spawn_local(answer_and_count(listener, Rc::clone(&opened)));
        for _ in 0..5 {
            let exchange = client.send(request()).await;
            assert_eq!((exchange.outcome, exchange.fault), (Outcome::Answered, None));
            assert_eq!(exchange.reply.unwrap().status, 200);
        }
        assert_eq!(opened.get(), 1);
    };
    LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn only_the_first_answers_of_a_run_are_read() {
    let run = async {
        let (listener, client) = client().await;
        spawn_local(answer_and_count(listener, Rc::default()));
        client.answers_left.set(3);
        // Two questions each: the second request begins within what is left.
        for is_read in [true, true, false] {
            let exchange = client.send(request()).await;
            assert_eq!((exchange.outcome, exchange.parts), (Outcome::Answered, 1));
            assert_eq!(exchange.answers.map(|answers| answers.len()), is_read.then_some(2));
        }
    };
    LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn a_client_that_goes_away_closes_its_connection() {
    let run = async {
        let (listener, client) = client().await;
        let server = spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut received = Vec::new();
            // The end of the stream, without an answer.
            stream.read_to_end(&mut received).await.map(|_| received)
        });
        // Long enough for the request to be on its way, on a busy machine too.
        let leaves_after = Some(Duration::from_millis(500));
        let exchange = client.send(Request { leaves_after, ..request() }).await;
        assert_eq!(exchange.outcome, Outcome::Disconnected);
        let received = server.await.unwrap().unwrap();
        assert!(received.starts_with(b"POST /v1/systemone HTTP/1.1\r\n"));
    };
    LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn patience_that_ends_is_a_time_out() {
    let run = async {
        let (_listener, client) = client().await;
        let patience = Duration::from_millis(5);
        let leaves_after = Some(Duration::from_secs(1));
        let exchange = client.send(Request { patience, leaves_after, ..request() }).await;
        assert_eq!(exchange.outcome, Outcome::TimedOut);
    };
    LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn a_status_of_a_fault_comes_with_its_words() {
    let run = async {
        let (listener, client) = client().await;
        spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            says(stream, "HTTP/1.1 422 No\r\ncontent-length: 5\r\n\r\nwrong").await;
        });
        let exchange = client.send(request()).await;
        assert_eq!(exchange.outcome, Outcome::Failed);
        assert_eq!(exchange.fault.as_deref(), Some("decision 0: 422 Unprocessable Entity: wrong"));
    };
    LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn a_connection_that_breaks_or_never_is_is_an_error_and_the_next_one_is_new() {
    let run = async {
        let (listener, client) = client().await;
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            says(stream, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhal").await;
            let (stream, _) = listener.accept().await.unwrap();
            says(stream, "HTTP/1.1 503 No\r\ncontent-length: 0\r\nretry-after-ms: 7\r\n\r\n").await;
        });
        let broken = client.send(request()).await;
        assert_eq!(broken.outcome, Outcome::ConnectionError);
        assert!(broken.fault.unwrap().starts_with("the response broke off"));
        let refused = client.send(request()).await;
        assert_eq!(refused.outcome, Outcome::Refused);
        assert_eq!(refused.reply.unwrap().retry_after_ms, Some(7));
        server.await.unwrap();
        let absent = client.send(request()).await;
        assert_eq!(absent.outcome, Outcome::ConnectionError);
    };
    LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn urls_that_cannot_be_used_are_named() {
    let fault = async |url| format!("{:#}", Target::resolve(url).await.unwrap_err());
    assert!(
        fault("https://localhost").await.contains("\"https://localhost\" must begin with http://")
    );
    assert!(fault("http://localhost/v1").await.contains("must not have a path"));
    assert!(fault("localhost:80").await.contains("--url"));
}

async fn refuse_and_close(listener: TcpListener, times: u32) {
    for _ in 0..times {
        let (stream, _) = listener.accept().await.unwrap();
        says(stream, "HTTP/1.1 429 No\r\ncontent-length: 0\r\n\r\n").await;
    }
}

/// Sends a body until the client closes; how many bytes of it.
async fn talk_on(listener: TcpListener) -> usize {
    let (mut stream, _) = listener.accept().await.unwrap();
    let (mut received, part, mut sent) = (Vec::new(), vec![b' '; 1 << 20], 0);
    stream.read_buf(&mut received).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    while stream.write_all(&part).await.is_ok() {
        sent += part.len();
    }
    sent
}

#[tokio::test]
async fn a_connection_that_the_server_closed_while_it_was_idle_costs_no_request() {
    let run = async {
        let (listener, client) = client().await;
        // Each connection ends with its response, without a word of that in its head.
        let server = spawn_local(refuse_and_close(listener, 2));
        for _ in 0..2 {
            let exchange = client.send(request()).await;
            assert_eq!((exchange.outcome, exchange.fault), (Outcome::Refused, None));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server.await.unwrap();
    };
    LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn a_response_without_an_end_is_cut_off() {
    let run = async {
        let (listener, client) = client().await;
        let server = spawn_local(talk_on(listener));
        let exchange = client.send(request()).await;
        assert_eq!(exchange.outcome, Outcome::ConnectionError);
        let fault = exchange.fault.unwrap();
        assert!(fault.contains("is over 33554432 bytes"), "{fault}");
        assert!(server.await.unwrap() < 64 << 20);
    };
    LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn what_is_no_http_is_a_connection_error() {
    let run = async {
        let (listener, client) = client().await;
        spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            says(stream, "220 mail.example ready\r\n").await;
        });
        let exchange = client.send(request()).await;
        assert_eq!(exchange.outcome, Outcome::ConnectionError);
        assert!(exchange.fault.unwrap().starts_with("no response on a new connection: "));
    };
    LocalSet::new().run_until(run).await;
}
