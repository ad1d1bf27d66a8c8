//! Sizes, encodings and media types of bodies.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use docket::http::{HttpConfig, router};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::support::{NOUL, Stub, call, plain, post, request};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

fn encoded(encoding: &str, body: Vec<u8>) -> Request<Body> {
    Request::post("/v1/systemone").header("content-encoding", encoding).body(body.into()).unwrap()
}

#[tokio::test]
async fn compressed_bodies_are_read() {
    let router = plain();
    for (encoding, body) in [
        ("gzip", gzip(NOUL.as_bytes())),
        ("zstd", zstd(NOUL.as_bytes())),
        ("identity", NOUL.into()),
    ] {
        assert_eq!(call(&router, encoded(encoding, body)).await.status, 200, "{encoding}");
    }
    let reply = call(&router, encoded("br", NOUL.into())).await;
    assert_eq!(reply.failure(), (415, "api_usage_error".to_owned()));
}

#[tokio::test]
async fn bombs_stop_at_the_limit() {
    let bytes = vec![b' '; 33 << 20];
    let router = plain();
    for (encoding, bomb) in [("gzip", gzip(&bytes)), ("zstd", zstd(&bytes))] {
        assert!(bomb.len() < 1 << 20);
        let reply = call(&router, encoded(encoding, bomb)).await;
        assert_eq!(reply.status, 413, "{encoding}");
    }
}

#[tokio::test]
async fn damaged_bodies_are_faults_of_the_body() {
    let router = plain();
    for (encoding, whole) in [("gzip", gzip(NOUL.as_bytes())), ("zstd", zstd(NOUL.as_bytes()))] {
        let cut = whole[..whole.len() - 3].to_vec();
        assert_eq!(call(&router, encoded(encoding, cut)).await.fault(), "encoding_invalid");
        let plain_text = NOUL.as_bytes().to_vec();
        assert_eq!(call(&router, encoded(encoding, plain_text)).await.fault(), "encoding_invalid");
        assert_eq!(call(&router, encoded(encoding, Vec::new())).await.fault(), "encoding_invalid");
    }
}

#[tokio::test]
async fn a_changed_body_is_not_answered() {
    let router = plain();
    let mut stored = GzEncoder::new(Vec::new(), Compression::none());
    stored.write_all(NOUL.as_bytes()).unwrap();
    let zstd = compress_to_vec(NOUL.as_bytes(), CompressionLevel::Uncompressed);
    for (encoding, mut body) in [("gzip", stored.finish().unwrap()), ("zstd", zstd)] {
        // The state becomes another one; the JSON is as good as before.
        let at = body.windows(3).position(|bytes| bytes == b"\"s\"").unwrap();
        body[at + 1] = b't';
        assert_eq!(call(&router, encoded(encoding, body)).await.fault(), "encoding_invalid");
    }
    // A frame of one empty raw block, with a window of 64 MiB.
    let wide = [0x28, 0xb5, 0x2f, 0xfd, 0, 16 << 3, 1, 0, 0].to_vec();
    let reply = call(&router, encoded("zstd", wide)).await;
    assert_eq!(reply.fault(), "encoding_invalid");
    let message = reply.json()["detail"][0]["msg"].to_string();
    assert!(message.contains("67108864") && message.contains("33554432"), "{message}");
}

#[tokio::test]
async fn case_47_a_body_over_the_limit_is_413_announced_or_not() {
    let config = HttpConfig { body_bytes_max: 1_000, ..HttpConfig::default() };
    let router = router(Arc::new(Stub::default()), config);
    let long = format!("{NOUL}{}", " ".repeat(1_000));
    assert_eq!(post(&router, long.clone()).await.status, 413);
    let chunks: Vec<Result<Bytes, std::io::Error>> =
        long.as_bytes().chunks(100).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    assert_eq!(post(&router, Body::from_stream(stream::iter(chunks))).await.status, 413);
    let announced = Request::post("/v1/systemone").header("content-length", "99999999999");
    assert_eq!(call(&router, announced.body(Body::empty()).unwrap()).await.status, 413);
    assert_eq!(post(&router, NOUL).await.status, 200);
}

#[tokio::test]
async fn chunked_bodies_are_read() {
    let chunks: Vec<Result<Bytes, std::io::Error>> =
        NOUL.as_bytes().chunks(7).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    assert_eq!(post(&plain(), Body::from_stream(stream::iter(chunks))).await.status, 200);
}

#[tokio::test]
async fn bodies_are_refused_beyond_the_memory_for_all_of_them() {
    let config = HttpConfig { bodies_bytes_max: 40, ..HttpConfig::default() };
    let router = router(Arc::new(Stub::default()), config);
    let reply = post(&router, NOUL).await;
    assert_eq!(reply.failure(), (503, "internal_error".to_owned()));
    assert_eq!(reply.header("x-docket-reason"), "bodies_full");
    assert_eq!(reply.header("retry-after"), "1");
    // What a refused body held has been given back.
    let small = r#"{"state":1,"questions":{}}"#;
    assert_eq!(post(&router, small).await.fault(), "too_few");
}

#[tokio::test(start_paused = true)]
async fn case_48_a_stalled_body_is_408() {
    let head = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{\"sta"))]);
    let stalled = Body::from_stream(futures_util::StreamExt::chain(head, stream::pending()));
    let start = tokio::time::Instant::now();
    let reply = post(&plain(), stalled).await;
    assert_eq!(reply.failure(), (408, "timeout".to_owned()));
    assert!(start.elapsed() >= Duration::from_secs(30));
    assert!(start.elapsed() < Duration::from_secs(35));
}

#[tokio::test]
async fn media_types_other_than_json_are_415() {
    let router = plain();
    let typed = |path: &str, media: &'static str| {
        let mut sent = request("POST", path, NOUL);
        sent.headers_mut().insert("content-type", media.parse().unwrap());
        sent
    };
    for media in ["application/json", "Application/JSON; charset=utf-8", "application/x+json", ""] {
        assert_eq!(call(&router, typed("/v1/systemone", media)).await.status, 200, "{media}");
    }
    for media in ["text/plain", "application/x-www-form-urlencoded", "application/jsonl"] {
        let reply = call(&router, typed("/v1/decide", media)).await;
        assert_eq!(reply.failure(), (415, "api_usage_error".to_owned()), "{media}");
    }
    let form = typed("/v1/prewarm", "application/x-www-form-urlencoded");
    assert_eq!(call(&router, form).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn case_47_health_answers_while_large_bodies_are_parsed() {
    let router = plain();
    let state = "\\u00e9".repeat(5 << 20);
    let large = format!(r#"{{"state":"{state}","questions":{{"q":{{"type":"noul"}}}}}}"#);
    let posts: Vec<_> = (0..4)
        .map(|_| {
            let (router, large) = (router.clone(), large.clone());
            tokio::spawn(async move { post(&router, large).await.status })
        })
        .collect();
    let health = call(&router, request("GET", "/health", "")).await;
    assert_eq!(health.status, 200);
    for post in posts {
        assert_eq!(post.await.unwrap(), 200);
    }
}
