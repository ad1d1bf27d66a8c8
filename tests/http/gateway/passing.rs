//! What passes through: bodies as they come, headers of the whole way only, within limits and to the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::backend::Act;
use super::front::{Front, KEY, answer, backends, of_state, request, settings};
use crate::server::{Server, in_time};
use crate::support::Stub;

#[tokio::test]
async fn an_answer_is_passed_on_as_it_comes() {
    let backends = backends(1).await;
    let front = Front::before(&backends).await;
    backends[0].next([Act::Drip]);
    let mut stream = front.sent(&request("POST /v1/systemone/batch", &[], "{}")).await;
    let mut text = String::new();
    while !text.contains("one\n") {
        let mut buffer = [0; 1_024];
        let read = in_time(stream.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "{text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    assert!(!text.contains("two"), "{text}");
    backends[0].release();
    while !text.contains("two\n") {
        let mut buffer = [0; 1_024];
        let read = in_time(stream.read(&mut buffer)).await.unwrap();
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
}

#[tokio::test]
async fn a_client_that_goes_ends_its_request_at_the_backend() {
    let backends = backends(1).await;
    let front = Front::before(&backends).await;
    for act in [Act::Hold, Act::Drip] {
        let gone = backends[0].gone();
        backends[0].next([act]);
        let stream = front.sent(&request("POST /v1/systemone", &[], &of_state("s"))).await;
        in_time(backends[0].until(|backend| backend.held() == 1)).await;
        drop(stream);
        in_time(backends[0].until(|backend| backend.gone() > gone)).await;
    }
}

#[tokio::test]
async fn headers_of_the_whole_way_pass_and_those_of_a_connection_do_not() {
    let backends = backends(1).await;
    let front = Front::before(&backends).await;
    let told = [
        ("connection", "x-own"),
        ("x-own", "1"),
        ("keep-alive", "timeout=1"),
        ("x-docket-queue-ms", "1.5"),
    ];
    backends[0].next([Act::say(200, &told, "{}")]);
    let sent = [
        ("connection", "keep-alive, x-private"),
        ("x-private", "1"),
        ("te", "trailers"),
        ("authorization", "Bearer key"),
        ("x-request-id", "mine"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ];
    let answer = front.decide("state", &sent).await;
    let head = backends[0].heads().remove(0);
    for (name, value) in &sent[3..] {
        assert!(head.contains(&format!("{name}: {value}\r\n")), "{head}");
    }
    assert!(head.contains("host: x\r\n"), "whom the client asked: {head}");
    assert!(head.contains("via: 1.1 docket-gateway\r\n"), "{head}");
    for name in ["x-private", "te: ", "connection", "keep-alive"] {
        assert!(!head.contains(name), "{head}");
    }
    assert_eq!(answer.header("x-docket-queue-ms"), Some("1.5"));
    assert_eq!(answer.header("via"), Some("1.1 docket-gateway"));
    assert_eq!((answer.header("x-own"), answer.header("keep-alive")), (None, None));
}

#[tokio::test]
async fn a_request_without_a_name_is_given_one() {
    let backends = backends(1).await;
    let front = Front::before(&backends).await;
    front.decide("state", &[]).await;
    let head = backends[0].heads().remove(0);
    let id = head.lines().find_map(|line| line.strip_prefix("x-request-id: "));
    assert_eq!(id.map(str::len), Some(36), "{head}");
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_and_nobody_is_asked() {
    let backends = backends(1).await;
    let mut config = settings(&[backends[0].address]);
    config.requests.body_bytes_max = 1 << 10;
    let front = Front::start(config).await;
    let long = of_state(&"x".repeat(2_000));
    let refused = front.ask(&request("POST /v1/systemone", &[], &long)).await;
    let reason = refused.header("x-docket-reason");
    assert_eq!((refused.status, reason), (413, Some("body_too_large")));
    let mut stream = front
        .sent(b"POST /v1/systemone HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    stream
        .write_all(format!("7d0\r\n{}\r\n0\r\n\r\n", "x".repeat(2_000)).as_bytes())
        .await
        .unwrap();
    assert_eq!(answer(&mut stream).await.status, 413);
    assert_eq!(backends[0].count(), 0);
}

#[tokio::test]
async fn a_body_in_chunks_is_sent_whole() {
    let backends = backends(1).await;
    let front = Front::before(&backends).await;
    let mut stream = front
        .sent(b"POST /v1/systemone HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    let (one, two) = (&of_state("state")[..10], &of_state("state")[10..]);
    let chunks = [one, two].map(|part| format!("{:x}\r\n{part}\r\n", part.len())).concat();
    stream.write_all(format!("{chunks}0\r\n\r\n").as_bytes()).await.unwrap();
    let key = answer(&mut stream).await.header(KEY).unwrap().to_owned();
    assert_eq!(front.decide("state", &[]).await.header(KEY), Some(key.as_str()));
    assert_eq!(backends[0].bodies()[0], of_state("state").as_bytes());
    let head = backends[0].heads().remove(0);
    assert!(!head.contains("transfer-encoding"), "{head}");
}

#[tokio::test]
async fn beyond_the_requests_that_may_be_under_way_one_is_told_to_come_back() {
    let backends = backends(1).await;
    let mut config = settings(&[backends[0].address]);
    config.requests.max = 1;
    let front = Front::start(config).await;
    backends[0].next([Act::Hold]);
    let asked = request("POST /v1/systemone", &[], &of_state("s"));
    let mut first = front.sent(&asked).await;
    in_time(backends[0].until(|backend| backend.held() == 1)).await;
    let second = front.ask(&asked).await;
    assert_eq!((second.status, second.header("x-docket-reason")), (503, Some("gateway_full")));
    assert_eq!(second.header("retry-after"), Some("1"));
    assert_eq!(front.ask(&request("GET /health", &[], "")).await.status, 200, "it is alive");
    backends[0].release();
    assert_eq!(answer(&mut first).await.status, 200);
    assert_eq!(front.ask(&asked).await.status, 200, "and there is room again");
}

#[tokio::test]
async fn a_stop_finishes_what_is_under_way() {
    let backends = backends(1).await;
    let mut front = Front::before(&backends).await;
    backends[0].next([Act::Hold]);
    let mut stream = front.sent(&request("POST /v1/systemone", &[], &of_state("s"))).await;
    in_time(backends[0].until(|backend| backend.held() == 1)).await;
    front.gateway.begin_drain();
    let health = front.ask(&request("GET /health?ready=1", &[], "")).await;
    assert_eq!((health.status, health.json()["reason"].as_str()), (503, Some("draining")));
    assert_eq!(front.decide("t", &[]).await.status, 200, "what comes all the same is answered");
    front.begin_stop();
    backends[0].release();
    assert_eq!(answer(&mut stream).await.status, 200);
    assert_eq!(in_time(front.done).await.unwrap(), 0);
}

#[tokio::test]
async fn a_docket_behind_it_answers_as_it_does_alone() {
    let stub = Arc::new(Stub::default());
    let server = Server::plain(&stub).await;
    let front = Front::start(settings(&[server.address])).await;
    let host = [("host", "localhost")];
    for (start, status) in
        [("POST /v1/systemone", 200), ("GET /v1/models", 200), ("GET /v1/nothing", 404)]
    {
        let answer = front.ask(&request(start, &[], &of_state("s"))).await;
        assert_eq!(answer.status, status, "{start}: {}", answer.head);
        assert!(answer.header("x-typesafe-request-id").is_some(), "{start}");
    }
    in_time(stub.until(|stub| stub.served.load(Ordering::SeqCst) == 1)).await;
    let full = front.decide("full", &[]).await;
    assert_eq!((full.status, full.header("retry-after-ms")), (429, Some("2400")));
    let two_hosts = front.ask(&request("GET /v1/models", &host, "")).await;
    assert_eq!(two_hosts.status, 400, "for the server to refuse");
}

#[tokio::test]
async fn a_client_that_goes_drops_the_decision_of_a_docket() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let server = Server::plain(&stub).await;
    let front = Front::start(settings(&[server.address])).await;
    let stream = front.sent(&request("POST /v1/systemone", &[], &of_state("s"))).await;
    in_time(stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 1)).await;
    drop(stream);
    in_time(stub.until(|stub| stub.dropped.load(Ordering::SeqCst) == 1)).await;
}
