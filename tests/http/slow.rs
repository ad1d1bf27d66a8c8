//! Clients that are slow, silent or too many: what they hold, and for how long.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use docket::http::HttpConfig;
use docket::http::serve::ServeConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Server, in_time, message, read_response};
use crate::support::{NOUL, Stub};

const SHORT: Duration = Duration::from_millis(30);

/// Asks once and leaves the connection open.
async fn asked(server: &Server) -> TcpStream {
    let mut stream = server.connect().await;
    stream.write_all(&message(NOUL)).await.unwrap();
    let (head, _) = in_time(read_response(&mut stream)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    stream
}

/// Whether the server closes it without a word.
async fn is_closed(stream: &mut TcpStream) -> bool {
    in_time(stream.read(&mut [0; 8])).await.is_ok_and(|read| read == 0)
}

#[tokio::test]
async fn a_slow_head_is_cut_off_also_in_an_old_connection() {
    let stub = Arc::new(Stub::default());
    let config = ServeConfig { head_timeout: SHORT, ..ServeConfig::default() };
    let server = Server::start(&stub, HttpConfig::default(), config).await;
    for mut stream in [server.connect().await, asked(&server).await] {
        for part in [&b"P"[..], b"OST /v1/systemone HTTP/1.1\r\nhost:"] {
            stream.write_all(part).await.unwrap();
        }
        assert!(is_closed(&mut stream).await);
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_time_and_a_busy_one_is_not() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let config = ServeConfig { idle_timeout: SHORT, ..ServeConfig::default() };
    let server = Server::start(&stub, HttpConfig::default(), config).await;
    let mut busy = server.connect().await;
    busy.write_all(&message(NOUL)).await.unwrap();
    in_time(stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 1)).await;
    // Both wait longer than the limit while this one is not closed.
    for _ in 0..2 {
        assert!(is_closed(&mut server.connect().await).await);
    }
    stub.release.notify_one();
    let (head, _) = in_time(read_response(&mut busy)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(is_closed(&mut busy).await);
}

#[tokio::test]
async fn case_48_a_stalled_upload_ends_with_408_and_holds_nobody_up() {
    let stub = Arc::new(Stub::default());
    let http = HttpConfig { body_timeout: SHORT, ..HttpConfig::default() };
    let server = Server::start(&stub, http, ServeConfig::default()).await;
    let mut stalled = Vec::new();
    for _ in 0..50 {
        let mut stream = server.connect().await;
        let sent = message(NOUL);
        stream.write_all(&sent[..sent.len() - 9]).await.unwrap();
        stalled.push(stream);
    }
    asked(&server).await;
    for mut stream in stalled {
        let (head, _) = in_time(read_response(&mut stream)).await;
        assert!(head.starts_with("HTTP/1.1 408"), "{head}");
    }
    assert_eq!(stub.begun.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn under_pressure_the_longest_idle_leaves_for_a_newcomer() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let config =
        ServeConfig { connections_max: 4, idle_min: Duration::ZERO, ..ServeConfig::default() };
    let server = Server::start(&stub, HttpConfig::default(), config).await;
    let mut busy = server.connect().await;
    busy.write_all(&message(NOUL)).await.unwrap();
    in_time(stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 1)).await;
    stub.release.notify_one();
    let (head, _) = in_time(read_response(&mut busy)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    busy.write_all(&message(NOUL)).await.unwrap();
    in_time(stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 2)).await;
    let mut slow = server.connect().await;
    slow.write_all(b"GET /health HT").await.unwrap();
    let mut silent = server.connect().await;
    // Each of these is taken at once, and the one that asked nothing for the longest time goes.
    let mut third = server.connect().await;
    assert!(is_closed_or_reset(&mut slow).await);
    let _fourth = server.connect().await;
    assert!(is_closed_or_reset(&mut silent).await);
    third.write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let (head, _) = in_time(read_response(&mut third)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    stub.release.notify_one();
    let (head, _) = in_time(read_response(&mut busy)).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}

/// The same of one that may have sent what was never read.
async fn is_closed_or_reset(stream: &mut TcpStream) -> bool {
    in_time(stream.read(&mut [0; 8])).await.map_or(true, |read| read == 0)
}

#[tokio::test]
async fn a_bomb_is_refused_before_it_is_unpacked() {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    let stub = Arc::new(Stub::default());
    let server = Server::plain(&stub).await;
    // 64 MiB of zeros, twice what a body may have, in 64 KiB.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![0; 64 << 20]).unwrap();
    let gzip = encoder.finish().unwrap();
    // 1 GB in blocks of one repeated byte (RFC 8878, section 3.1.1.2.2), four bytes each.
    let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for block in 0..8_192_u32 {
        let is_last = u32::from(block == 8_191);
        zstd.extend_from_slice(&((128 << 10) << 3 | 1 << 1 | is_last).to_le_bytes()[..3]);
        zstd.push(0);
    }
    for (encoding, body) in [("gzip", gzip), ("zstd", zstd)] {
        let length = body.len();
        assert!(length < 70_000, "{length}");
        let head = format!(
            "POST /v1/systemone HTTP/1.1\r\nhost: x\r\ncontent-encoding: {encoding}\r\n\
             content-length: {length}\r\n\r\n"
        );
        let mut stream = server.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        let (head, _) = in_time(read_response(&mut stream)).await;
        assert!(head.starts_with("HTTP/1.1 413"), "{encoding}: {head}");
    }
    assert_eq!(stub.begun.load(Ordering::SeqCst), 0);
}
