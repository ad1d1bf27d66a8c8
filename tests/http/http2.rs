//! HTTP/2 on the same port: several requests at once, one that does not disturb the others, and limits
//! against those who abuse it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use docket::http::HttpConfig;
use docket::http::serve::{Http2Config, ServeConfig};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::server::{Server, in_time};
use crate::support::{NOUL, Stub};

const SHORT: Duration = Duration::from_millis(30);

type Sent = BoxBody<Bytes, std::convert::Infallible>;

/// A connection of HTTP/2 without any talk about it, and its end.
pub(crate) async fn spoken<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
) -> (SendRequest<Sent>, JoinHandle<hyper::Result<()>>) {
    let shaken = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = in_time(shaken).await.unwrap();
    (sender, tokio::spawn(connection))
}

pub(crate) fn post(body: &'static str) -> Request<Sent> {
    let body = Full::new(Bytes::from_static(body.as_bytes())).boxed();
    Request::post("http://docket/v1/systemone").body(body).unwrap()
}

pub(crate) fn get(path: &str) -> Request<Sent> {
    let body = Full::default().boxed();
    Request::get(format!("http://docket{path}")).body(body).unwrap()
}

pub(crate) async fn text(response: Response<Incoming>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A body that never comes.
struct Stalled;

impl Body for Stalled {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn several_requests_at_once_are_answered_on_one_connection() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let server = Server::plain(&stub).await;
    let (sender, _connection) = spoken(server.connect().await).await;
    let asking: Vec<_> = (0..8)
        .map(|_| {
            let mut sender = sender.clone();
            tokio::spawn(async move { sender.send_request(post(NOUL)).await.unwrap() })
        })
        .collect();
    in_time(stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 8)).await;
    // What needs no decision is not held up by those that wait.
    let health = in_time(sender.clone().send_request(get("/health"))).await.unwrap();
    assert_eq!(health.status(), 200);
    stub.release.notify_waiters();
    in_time(stub.until(|stub| stub.served.load(Ordering::SeqCst) == 8)).await;
    for asked in asking {
        let response = in_time(asked).await.unwrap();
        assert_eq!(
            (response.status(), response.version()),
            (StatusCode::OK, hyper::Version::HTTP_2)
        );
        assert!(response.headers().contains_key("x-typesafe-request-id"));
        assert!(text(response).await.starts_with("{\"model\":\"stub\""));
    }
}

#[tokio::test]
async fn a_request_that_is_given_up_drops_its_decision_and_no_other() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let server = Server::plain(&stub).await;
    let (sender, _connection) = spoken(server.connect().await).await;
    let ask = || {
        let mut sender = sender.clone();
        tokio::spawn(async move { sender.send_request(post(NOUL)).await })
    };
    let (given_up, kept) = (ask(), ask());
    in_time(stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 2)).await;
    given_up.abort();
    in_time(stub.until(|stub| stub.dropped.load(Ordering::SeqCst) == 1)).await;
    stub.release.notify_waiters();
    assert_eq!(in_time(kept).await.unwrap().unwrap().status(), 200);
    in_time(stub.until(|stub| stub.served.load(Ordering::SeqCst) == 1)).await;
}

#[tokio::test]
async fn a_stop_lets_requests_finish_and_cuts_none() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let mut server = Server::plain(&stub).await;
    let (mut sender, connection) = spoken(server.connect().await).await;
    let asking = tokio::spawn(async move { sender.send_request(post(NOUL)).await });
    in_time(stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 1)).await;
    server.begin_stop();
    tokio::task::yield_now().await;
    stub.release.notify_waiters();
    let response = in_time(asking).await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    assert!(text(response).await.contains("stub"));
    in_time(connection).await.unwrap().unwrap();
    assert_eq!(in_time(server.done).await.unwrap(), 0);
}

#[tokio::test]
async fn a_stalled_upload_ends_alone_and_too_many_headers_are_told() {
    let stub = Arc::new(Stub::default());
    let http = HttpConfig { body_timeout: SHORT, ..HttpConfig::default() };
    let server = Server::start(&stub, http, ServeConfig::default()).await;
    let (sender, _connection) = spoken(server.connect().await).await;
    let mut many = get("/health");
    for number in 0..900 {
        let name: hyper::header::HeaderName = format!("x-{number}").parse().unwrap();
        many.headers_mut().insert(name, "1".parse().unwrap());
    }
    let long = get(&format!("/{}", "x".repeat(60_000)));
    let stalled = post("").map(|_| Stalled.boxed());
    for (request, status) in [(stalled, 408), (many, 431), (long, 414), (get("/health"), 200)] {
        let response = in_time(sender.clone().send_request(request)).await.unwrap();
        assert_eq!(response.status(), status);
        assert!(response.headers().contains_key("x-typesafe-request-id"));
        assert!(!text(response).await.is_empty());
    }
}

#[tokio::test]
async fn an_idle_connection_is_told_to_go() {
    let stub = Arc::new(Stub::default());
    let config = ServeConfig { idle_timeout: SHORT, ..ServeConfig::default() };
    let server = Server::start(&stub, HttpConfig::default(), config).await;
    let (mut sender, connection) = spoken(server.connect().await).await;
    assert_eq!(in_time(sender.send_request(post(NOUL))).await.unwrap().status(), 200);
    in_time(connection).await.unwrap().unwrap();
}

#[tokio::test]
async fn requests_that_are_given_up_again_and_again_end_their_connection() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let server = Server::plain(&stub).await;
    let (sender, mut connection) = spoken(server.connect().await).await;
    let mut given_up = 0;
    // At once as many as may be; the limit is 200, and more with the time that this takes.
    let ended = loop {
        let ask =
            |mut sender: SendRequest<Sent>| async move { sender.send_request(post(NOUL)).await };
        let asking: Vec<_> = (0..100).map(|_| tokio::spawn(ask(sender.clone()))).collect();
        given_up += asking.len();
        let begun = stub.until(|stub| stub.begun.load(Ordering::SeqCst) >= given_up);
        tokio::select! {
            () = in_time(begun) => {}
            ended = &mut connection => break ended,
        }
        asking.iter().for_each(JoinHandle::abort);
        let dropped = stub.until(|stub| stub.dropped.load(Ordering::SeqCst) >= given_up);
        tokio::select! {
            () = in_time(dropped) => {}
            ended = &mut connection => break ended,
        }
    };
    ended.unwrap().unwrap();
    assert!((200..3_000).contains(&given_up), "{given_up}");
}

/// Frames written by hand.
mod raw {
    pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    pub(super) const HEADERS: u8 = 1;
    pub(super) const RESET: u8 = 3;
    pub(super) const SETTINGS: u8 = 4;
    pub(super) const GOAWAY: u8 = 7;
    pub(super) const CONTINUATION: u8 = 9;
    pub(super) const END_STREAM: u8 = 1;
    pub(super) const END_HEADERS: u8 = 4;
    /// `GET /` of authority `x`, by RFC 7541.
    pub(super) const GET: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'x'];

    pub(super) fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), content].concat()
    }

    pub(super) fn hello() -> Vec<u8> {
        [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[])].concat()
    }

    /// The frames in what came: kind, flags, stream, content.
    pub(super) fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
        let mut found = Vec::new();
        while bytes.len() >= 9 {
            let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
            let stream = u32::from_be_bytes(bytes[5..9].try_into().unwrap());
            let Some(content) = bytes.get(9..9 + length) else { break };
            found.push((bytes[3], bytes[4], stream, content.to_vec()));
            bytes = &bytes[9 + length..];
        }
        found
    }
}

/// Reads until the server closes.
async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4_096];
        match in_time(stream.read(&mut buffer)).await {
            Ok(0) | Err(_) => return bytes,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

#[tokio::test]
async fn a_rapid_reset_ends_the_connection_and_asks_nothing_of_the_engine() {
    let stub = Arc::new(Stub::default());
    let server = Server::plain(&stub).await;
    let mut stream = server.connect().await;
    let mut sent = raw::hello();
    for number in 0..2_000 {
        let (id, flags) = (number * 2 + 1, raw::END_HEADERS | raw::END_STREAM);
        sent.extend(raw::frame(raw::HEADERS, flags, id, raw::GET));
        sent.extend(raw::frame(raw::RESET, 0, id, &8_u32.to_be_bytes()));
    }
    // The end may come while this is still being written.
    let _ = stream.write_all(&sent).await;
    let frames = raw::frames(&until_closed(&mut stream).await);
    let calm = |content: &[u8]| content.get(4..8) == Some(&11_u32.to_be_bytes());
    assert!(
        frames.iter().any(|(kind, _, _, content)| *kind == raw::GOAWAY && calm(content)),
        "{frames:?}"
    );
    assert_eq!(stub.begun.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn more_requests_than_the_limit_are_refused_and_the_others_answered() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let http2 = Http2Config { streams_max: 2, ..Http2Config::default() };
    let config = ServeConfig { http2, ..ServeConfig::default() };
    let server = Server::start(&stub, HttpConfig::default(), config).await;
    let mut stream = server.connect().await;
    let mut sent = raw::hello();
    for number in 0..3 {
        sent.extend(raw::frame(raw::HEADERS, raw::END_HEADERS, number * 2 + 1, raw::GET));
    }
    stream.write_all(&sent).await.unwrap();
    let mut bytes = Vec::new();
    let refused = loop {
        let mut buffer = [0; 4_096];
        let read = in_time(stream.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "closed");
        bytes.extend_from_slice(&buffer[..read]);
        let frames = raw::frames(&bytes);
        if let Some(found) = frames.iter().find(|(kind, ..)| *kind == raw::RESET) {
            break found.clone();
        }
    };
    assert_eq!((refused.2, refused.3), (5, 7_u32.to_be_bytes().to_vec()), "REFUSED_STREAM");
}

#[tokio::test]
async fn a_head_over_the_limit_is_refused_by_itself() {
    let stub = Arc::new(Stub::default());
    let server = Server::plain(&stub).await;
    let mut stream = server.connect().await;
    let mut block = raw::GET.to_vec();
    for _ in 0..20 {
        // A literal of 4,000 bytes that is not kept: 127, and 3,873 in seven bits each.
        block.extend_from_slice(&[0x00, 1, b'h', 0x7f, 0xa1, 0x1e]);
        block.extend_from_slice(&[b'v'; 4_000]);
    }
    let parts: Vec<&[u8]> = block.chunks(16_384).collect();
    let mut sent = raw::hello();
    for (number, part) in parts.iter().enumerate() {
        let kind = if number == 0 { raw::HEADERS } else { raw::CONTINUATION };
        let end = if number + 1 == parts.len() { raw::END_HEADERS } else { 0 };
        let stream_end = if number == 0 { raw::END_STREAM } else { 0 };
        sent.extend(raw::frame(kind, end | stream_end, 1, part));
    }
    stream.write_all(&sent).await.unwrap();
    let mut bytes = Vec::new();
    let (_, flags, id, _) = loop {
        let mut buffer = [0; 4_096];
        let read = in_time(stream.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "closed: {:?}", raw::frames(&bytes));
        bytes.extend_from_slice(&buffer[..read]);
        let frames = raw::frames(&bytes);
        if let Some(found) = frames.iter().find(|(kind, ..)| *kind == raw::HEADERS) {
            break found.clone();
        }
    };
    assert_eq!((flags & raw::END_STREAM, id), (raw::END_STREAM, 1), "a 431 without a body");
}

#[tokio::test]
async fn what_is_half_there_is_cut_off() {
    let stub = Arc::new(Stub::default());
    let config = ServeConfig { head_timeout: SHORT, ..ServeConfig::default() };
    let server = Server::start(&stub, HttpConfig::default(), config).await;
    let begun = raw::frame(raw::HEADERS, raw::END_STREAM, 1, raw::GET);
    for sent in [raw::PREFACE[..10].to_vec(), [raw::hello(), begun].concat()] {
        let mut stream = server.connect().await;
        stream.write_all(&sent).await.unwrap();
        until_closed(&mut stream).await;
    }
    assert_eq!(stub.begun.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_answer_that_is_never_taken_ends_the_connection() {
    let stub = Arc::new(Stub::default());
    let config = ServeConfig { write_timeout: SHORT, ..ServeConfig::default() };
    let server = Server::start(&stub, HttpConfig::default(), config).await;
    let mut stream = server.connect().await;
    // A window of no bytes: nothing of a body may be sent.
    let window = [&[0, 4][..], &0_u32.to_be_bytes()].concat();
    let hello = [raw::PREFACE.to_vec(), raw::frame(raw::SETTINGS, 0, 0, &window)].concat();
    let flags = raw::END_HEADERS | raw::END_STREAM;
    let asked = raw::frame(raw::HEADERS, flags, 1, raw::GET);
    stream.write_all(&[hello, asked].concat()).await.unwrap();
    let frames = raw::frames(&until_closed(&mut stream).await);
    assert!(frames.iter().any(|(kind, ..)| *kind == raw::HEADERS), "{frames:?}");
    assert!(frames.iter().all(|(kind, ..)| *kind != 0), "{frames:?}");
}
