//! What is sent once more and what is not, and how long anybody waits.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use docket::config::GatewayConfig;

use super::backend::{Act, Backend};
use super::front::{Front, asked, backends, counts, of_state, request, settings};

async fn front(backends: &[Backend], change: impl FnOnce(&mut GatewayConfig)) -> Front {
    let addresses: Vec<SocketAddr> = backends.iter().map(|backend| backend.address).collect();
    let mut config = settings(&addresses);
    change(&mut config);
    Front::start(config).await
}

/// Where the state `state` is at home.
async fn home(front: &Front, backends: &[Backend]) -> usize {
    let before = counts(backends);
    assert_eq!(front.decide("state", &[]).await.status, 200);
    asked(backends, &before)[0]
}

fn total(backends: &[Backend]) -> usize {
    counts(backends).iter().sum()
}

#[tokio::test]
async fn what_cannot_be_sent_goes_elsewhere_even_if_it_changes_something() {
    let mut backends = backends(3).await;
    let front = front(&backends, |_| ()).await;
    // No connection is left open that could break in the middle of a request.
    for backend in &backends {
        backend.next(vec![Act::say(200, &[("connection", "close")], "{}"); 4]);
    }
    for start in ["POST /v1/tasks", "POST /v1/systemone"] {
        let asked_first = request(start, &[], &of_state("state"));
        let before = counts(&backends);
        assert_eq!(front.ask(&asked_first).await.status, 200);
        let home = asked(&backends, &before)[0];
        backends[home].kill().await;
        assert_eq!(front.ask(&asked_first).await.status, 200, "{start}");
    }
}

#[tokio::test]
async fn a_decision_whose_connection_breaks_is_made_elsewhere_once() {
    let backends = backends(3).await;
    let front = front(&backends, |_| ()).await;
    let home = home(&front, &backends).await;
    backends[home].next([Act::Break]);
    let before = counts(&backends);
    assert_eq!(front.decide("state", &[]).await.status, 200);
    assert_eq!(asked(&backends, &before).len(), 2);
    for backend in &backends {
        backend.next([Act::Break]);
    }
    let before = total(&backends);
    let answer = front.decide("state", &[]).await;
    assert_eq!((answer.status, answer.header("x-docket-reason")), (502, Some("backend_lost")));
    assert_eq!(total(&backends) - before, 2, "it does not break them all");
}

#[tokio::test]
async fn what_may_have_changed_something_is_not_sent_again() {
    let backends = backends(2).await;
    let front = front(&backends, |_| ()).await;
    for backend in &backends {
        backend.next([Act::Break]);
    }
    let answer = front.ask(&request("POST /v1/tasks", &[], "{}")).await;
    assert_eq!((answer.status, answer.header("x-docket-reason")), (502, Some("backend_lost")));
    assert_eq!(total(&backends), 1);
    assert!(answer.header("x-typesafe-request-id").is_some(), "{}", answer.head);
    assert_eq!(answer.json()["detail"]["error_type"], "internal_error");
}

#[tokio::test]
async fn a_full_backend_sends_to_the_next_and_a_tenants_limit_does_not() {
    let backends = backends(2).await;
    let front = front(&backends, |_| ()).await;
    let home = home(&front, &backends).await;
    for (reason, status, others) in [
        ("queue_full", 200, 1),
        ("draining", 200, 1),
        ("tenant", 429, 0),
        ("tokens_per_minute", 429, 0),
        ("rate_limited", 429, 0),
    ] {
        backends[home].next([Act::refuse(429, reason, "60000")]);
        let before = counts(&backends);
        let answer = front.decide("state", &[]).await;
        assert_eq!(answer.status, status, "{reason}");
        assert_eq!(counts(&backends)[1 - home] - before[1 - home], others, "{reason}");
        // One that was leaving is asked again once it says that it is ready.
        front.gateway.probe().await;
    }
}

#[tokio::test]
async fn a_short_retry_after_is_waited_for_and_a_long_one_is_passed_on() {
    let backends = backends(1).await;
    let front = front(&backends, |config| {
        config.retries.wait_max = Duration::from_millis(500);
    })
    .await;
    backends[0].next([Act::refuse(503, "queue_full", "120")]);
    let began = Instant::now();
    assert_eq!(front.decide("state", &[]).await.status, 200);
    assert!(began.elapsed() >= Duration::from_millis(120));
    backends[0].next([Act::refuse(429, "wait", "501")]);
    let before = backends[0].count();
    let answer = front.decide("state", &[]).await;
    assert_eq!((answer.status, answer.header("retry-after-ms")), (429, Some("501")));
    assert_eq!(backends[0].count() - before, 1, "it was not asked again");
    let again = Act::refuse(429, "wait", "10");
    backends[0].next([again.clone(), again]);
    assert_eq!(front.decide("state", &[]).await.status, 429, "waited for once");
}

#[tokio::test]
async fn of_several_refusals_the_first_is_told_since_its_backend_keeps_room() {
    let backends = backends(3).await;
    let front = front(&backends, |_| ()).await;
    let home = home(&front, &backends).await;
    for (at, backend) in backends.iter().enumerate() {
        let wait = if at == home { "7000" } else { "9000" };
        backend.next([Act::refuse(429, "queue_full", wait)]);
    }
    let answer = front.decide("state", &[]).await;
    assert_eq!((answer.status, answer.header("retry-after-ms")), (429, Some("7000")));
    assert_eq!(total(&backends), 1 + 3);
}

#[tokio::test]
async fn without_room_for_retries_the_refusal_is_told() {
    let backends = backends(2).await;
    let front = front(&backends, |config| config.retries.at_once = 0).await;
    for backend in &backends {
        backend.next([Act::refuse(429, "queue_full", "10")]);
    }
    assert_eq!(front.decide("state", &[]).await.status, 429);
    assert_eq!(total(&backends), 1);
}

#[tokio::test]
async fn where_no_backend_is_left_it_is_said_when_to_come_back() {
    let mut backends = backends(2).await;
    let front = front(&backends, |_| ()).await;
    for backend in &mut backends {
        backend.kill().await;
    }
    // Tried and not reached; then known to be out.
    for _ in 0..2 {
        let answer = front.decide("state", &[]).await;
        assert_eq!((answer.status, answer.header("x-docket-reason")), (503, Some("no_backend")));
        assert_eq!(answer.header("retry-after"), Some("1"));
        front.gateway.probe().await;
    }
    let vllm = front.ask(&request("POST /vllm/v1/systemone", &[], &of_state("state"))).await;
    assert_eq!((vllm.status, vllm.json()["error"]["code"].as_u64()), (503, Some(503)));
    let health = front.ask(&request("GET /health?ready=1", &[], "")).await;
    assert_eq!((health.status, health.json()["backends"]["all"].as_u64()), (503, Some(2)));
    let alive = front.ask(&request("GET /health", &[], "")).await;
    assert_eq!((alive.status, alive.json()["ready"].as_bool()), (200, Some(false)));
}

#[tokio::test]
async fn failures_in_a_row_have_a_backend_left_alone() {
    let mut backends = backends(3).await;
    let front = front(&backends, |config| config.ejection.after = 2).await;
    let home = home(&front, &backends).await;
    backends[home].kill().await;
    for _ in 0..2 {
        assert_eq!(front.decide("state", &[]).await.status, 200);
    }
    let health = front.ask(&request("GET /health", &[], "")).await;
    assert_eq!(health.json()["backends"], serde_json::json!({"ready": 2, "all": 3}));
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_not_waited_for_for_ever() {
    let backends = backends(2).await;
    let limit = Duration::from_millis(100);
    let front = front(&backends, |config| config.requests.answer_timeout = limit).await;
    for backend in &backends {
        backend.next([Act::Hold]);
    }
    let answer = front.decide("state", &[]).await;
    assert_eq!((answer.status, answer.header("x-docket-reason")), (504, Some("backend_timeout")));
    assert_eq!(total(&backends), 1, "it may still be working on it");
}
