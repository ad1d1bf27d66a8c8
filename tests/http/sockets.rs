//! The server loop over loopback sockets: disconnects, order of bytes, shutdown, limits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use docket::http::serve::ServeConfig;
use docket::http::{AuthConfig, HttpConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Server, in_time, message, read_response};
use crate::support::{NOUL, Stub};

#[tokio::test]
async fn a_disconnect_drops_the_decision() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let server = Server::plain(&stub).await;
    let mut stream = server.connect().await;
    stream.write_all(&message(NOUL)).await.unwrap();
    in_time(stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 1)).await;
    assert_eq!(stub.dropped.load(Ordering::SeqCst), 0);
    drop(stream);
    in_time(stub.until(|stub| stub.dropped.load(Ordering::SeqCst) == 1)).await;
    assert_eq!(stub.served.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn served_follows_the_last_byte() {
    let stub = Arc::new(Stub::default());
    let server = Server::plain(&stub).await;
    let mut stream = server.connect().await;
    for count in 1..=3 {
        stream.write_all(&message(NOUL)).await.unwrap();
        let (head, body) = in_time(read_response(&mut stream)).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(body.starts_with(b"{\"model\":\"stub\""));
        in_time(stub.until(|stub| stub.served.load(Ordering::SeqCst) == count)).await;
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let stub = Arc::new(Stub::default());
    let server = Server::plain(&stub).await;
    let mut stream = server.connect().await;
    let second = NOUL.replace("\"q\"", "\"second\"");
    let both = [message(NOUL), message(&second)].concat();
    stream.write_all(&both).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut text = String::new();
    in_time(stream.read_to_string(&mut text)).await.unwrap();
    let (first, rest) = text.split_once("\"q\"").unwrap();
    assert!(first.starts_with("HTTP/1.1 200"));
    assert!(rest.contains("\"second\""));
    in_time(stub.until(|stub| stub.served.load(Ordering::SeqCst) == 2)).await;
}

#[tokio::test]
async fn a_stop_lets_requests_finish_and_closes() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let mut server = Server::plain(&stub).await;
    let mut idle = server.connect().await;
    let mut busy = server.connect().await;
    busy.write_all(&message(NOUL)).await.unwrap();
    in_time(stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 1)).await;
    server.begin_stop();
    assert_eq!(in_time(idle.read(&mut [0; 8])).await.unwrap(), 0);
    assert!(in_time(refused(server.address)).await);
    stub.release.notify_one();
    let (head, _) = in_time(read_response(&mut busy)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(in_time(server.done).await.unwrap(), 0);
}

/// Whether connections are refused, now or soon.
async fn refused(address: SocketAddr) -> bool {
    while let Ok(mut stream) = TcpStream::connect(address).await {
        // Taken by the backlog before the listener closed: it must end without an answer.
        if stream.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await.is_ok() {
            let _ = stream.read(&mut [0; 8]).await;
        }
    }
    true
}

#[tokio::test]
async fn a_stop_cuts_what_outlives_the_grace() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let config = ServeConfig { grace: Duration::from_millis(10), ..ServeConfig::default() };
    let mut server = Server::start(&stub, HttpConfig::default(), config).await;
    let mut stream = server.connect().await;
    stream.write_all(&message(NOUL)).await.unwrap();
    in_time(stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 1)).await;
    server.begin_stop();
    assert_eq!(in_time(server.done).await.unwrap(), 1);
    assert_eq!(stub.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_their_turn() {
    let stub = Arc::new(Stub::default());
    let config = ServeConfig { connections_max: 1, ..ServeConfig::default() };
    let server = Server::start(&stub, HttpConfig::default(), config).await;
    let mut first = server.connect().await;
    first.write_all(&message(NOUL)).await.unwrap();
    in_time(read_response(&mut first)).await;
    let mut second = server.connect().await;
    second.write_all(&message(NOUL)).await.unwrap();
    // Each of these gives the server a turn in which it could take the second connection.
    for _ in 0..20 {
        first.write_all(&message(NOUL)).await.unwrap();
        in_time(read_response(&mut first)).await;
    }
    assert_eq!(stub.begun.load(Ordering::SeqCst), 21, "answered while the only slot was taken");
    drop(first);
    in_time(read_response(&mut second)).await;
}

#[tokio::test]
async fn heads_that_are_large_and_still_http_get_an_answer_with_an_id() {
    let stub = Arc::new(Stub::default());
    let server = Server::plain(&stub).await;
    let headers: Vec<String> = (0..900).map(|number| format!("x-{number}: 1\r\n")).collect();
    let (headers, long) = (headers.concat(), format!("/{}", "x".repeat(60_000)));
    for (target, headers, status) in [("/health", headers.as_str(), 431), (&long, "", 414)] {
        let mut stream = server.connect().await;
        let head = format!("GET {target} HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let (head, body) = in_time(read_response(&mut stream)).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        assert!(head.contains("x-typesafe-request-id: ") && !body.is_empty(), "{head}");
    }
}

#[tokio::test]
async fn what_is_no_http_gets_an_empty_400() {
    let stub = Arc::new(Stub::default());
    let server = Server::plain(&stub).await;
    for sent in ["what is this\r\n\r\n", "POST /v1/decide HTTP/1.1\r\ncontent-length: x\r\n\r\n"] {
        let mut stream = server.connect().await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut text = String::new();
        in_time(stream.read_to_string(&mut text)).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 400"), "{text}");
        // What docs/API.md says of these.
        assert!(!text.contains("x-typesafe-request-id") && text.ends_with("\r\n\r\n"), "{text}");
    }
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_sends_everything_first() {
    let stub = Arc::new(Stub::default());
    let auth = AuthConfig::from_texts(&["secret".to_owned()]).unwrap();
    let http = HttpConfig { auth, ..HttpConfig::default() };
    let server = Server::start(&stub, http, ServeConfig::default()).await;
    let mut stream = server.connect().await;
    let large = " ".repeat(16 << 20);
    in_time(stream.write_all(&message(&large))).await.unwrap();
    let (head, _) = in_time(read_response(&mut stream)).await;
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
}
