//! Which backend is asked: affinity, bounded load, and what moves when one is out.

use std::io::Write as _;

use docket::config::LoadConfig;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::AsyncWriteExt as _;

use super::backend::{Act, Backend};
use super::front::{Front, KEY, answer, asked, backends, counts, of_state, request, settings};
use crate::server::in_time;

/// Asks about states `0..count`, and says which backend was asked about each.
async fn homes(front: &Front, backends: &[Backend], count: usize) -> Vec<usize> {
    let mut homes = Vec::new();
    for state in 0..count {
        let before = counts(backends);
        assert_eq!(front.decide(&format!("state {state}"), &[]).await.status, 200);
        // The last to be asked, where one could not be reached.
        homes.push(*asked(backends, &before).last().unwrap());
    }
    homes
}

#[tokio::test]
async fn requests_on_a_state_go_to_one_backend_and_states_to_all() {
    let backends = backends(3).await;
    let front = Front::before(&backends).await;
    let first = homes(&front, &backends, 30).await;
    assert_eq!(homes(&front, &backends, 30).await, first);
    for backend in 0..3 {
        assert!(first.contains(&backend), "{first:?}");
    }
    // Another gateway with the same secret, and with the backends in another order.
    let mut addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
    addresses.reverse();
    let other = Front::start(settings(&addresses)).await;
    assert_eq!(homes(&other, &backends, 30).await, first);
}

#[tokio::test]
async fn a_client_that_begins_to_send_the_key_back_is_not_moved() {
    let backends = backends(3).await;
    let front = Front::before(&backends).await;
    for state in 0..10 {
        let state = format!("state {state}");
        let before = counts(&backends);
        // What the backend calls the state is not what it was routed by.
        for backend in &backends {
            let own = [(KEY, "00000000000000ab")];
            backend.next([Act::say(200, &own, "{}")]);
        }
        let answer = front.decide(&state, &[]).await;
        let (home, key) = (asked(&backends, &before), answer.header(KEY).unwrap().to_owned());
        assert_ne!(key, "00000000000000ab");
        let before = counts(&backends);
        let again = front.decide("another text", &[(KEY, &key)]).await;
        assert_eq!((asked(&backends, &before), again.header(KEY)), (home, Some(key.as_str())));
        let sent = backends[asked(&backends, &before)[0]].heads().pop().unwrap();
        assert!(sent.contains(&format!("{KEY}: {key}\r\n")), "{sent}");
    }
}

#[tokio::test]
async fn a_compressed_body_has_the_key_of_what_is_in_it() {
    let backends = backends(2).await;
    let front = Front::before(&backends).await;
    let body = of_state("a state");
    let plain = front.ask(&request("POST /v1/systemone", &[], &body)).await;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(body.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    let head = format!(
        "POST /v1/systemone HTTP/1.1\r\nhost: x\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        packed.len()
    );
    let mut stream = front.sent(head.as_bytes()).await;
    stream.write_all(&packed).await.unwrap();
    let answered = answer(&mut stream).await;
    assert_eq!(answered.header(KEY), plain.header(KEY));
    let bodies: Vec<Vec<u8>> = backends.iter().flat_map(Backend::bodies).collect();
    assert!(bodies.contains(&packed), "it is passed on as it came");
}

#[tokio::test]
async fn a_busy_backend_gives_to_the_next_of_the_keys_order() {
    let backends = backends(3).await;
    let mut config = settings(&backends.iter().map(|b| b.address).collect::<Vec<_>>());
    config.load = LoadConfig { factor: 1.25, min: 0 };
    let front = Front::start(config).await;
    for backend in &backends {
        backend.next(vec![Act::Hold; 12]);
    }
    let mut streams = Vec::new();
    for number in 1..=12 {
        let asked = request("POST /v1/systemone", &[], &of_state("one state"));
        streams.push(front.sent(&asked).await);
        // One after the other, so that the counts are those of the sum by hand.
        let held = || backends.iter().map(Backend::held).sum::<usize>();
        while held() < number {
            let grown =
                backends.iter().map(|backend| Box::pin(backend.until(|_| held() >= number)));
            in_time(futures_util::future::select_all(grown)).await;
        }
    }
    let mut held: Vec<usize> = backends.iter().map(Backend::held).collect();
    held.sort_unstable();
    // ceil(1.25 * 12 / 3) = 5 at most each; without bounds one had all.
    assert_eq!(held, [2, 5, 5]);
}

#[tokio::test]
async fn only_the_states_of_a_backend_that_dies_move_and_no_request_is_lost() {
    let mut backends = backends(3).await;
    let front = Front::before(&backends).await;
    let before = homes(&front, &backends, 60).await;
    backends[1].kill().await;
    let after = homes(&front, &backends, 60).await;
    let moved = before.iter().zip(&after).filter(|(before, after)| before != after);
    let moved: Vec<usize> = moved.map(|(before, _)| *before).collect();
    assert!(moved.iter().all(|before| *before == 1), "{moved:?}");
    assert_eq!(moved.len(), before.iter().filter(|home| **home == 1).count());
    assert!(moved.len() <= 60 / 3 + 8, "{}", moved.len());
    // A probe finds it out, and then it is not even tried.
    front.gateway.probe().await;
    assert_eq!(homes(&front, &backends, 60).await, after);
}

#[tokio::test]
async fn a_backend_that_is_not_ready_is_asked_nothing_until_it_is() {
    let backends = backends(2).await;
    let front = Front::before(&backends).await;
    let usual = homes(&front, &backends, 12).await;
    backends[0].say_unready(true);
    front.gateway.probe().await;
    assert_eq!(homes(&front, &backends, 12).await, [1; 12]);
    backends[0].say_unready(false);
    front.gateway.probe().await;
    assert_eq!(homes(&front, &backends, 12).await, usual);
}

#[tokio::test]
async fn tasks_of_a_key_are_at_one_backend_and_reads_are_spread() {
    let backends = backends(3).await;
    let front = Front::before(&backends).await;
    let tasks = ["GET /v1/tasks", "POST /v1/tasks", "GET /v1/tasks/7/status", "DELETE /v1/tasks/7"];
    for start in tasks {
        let key = [("authorization", "Bearer one")];
        assert_eq!(front.ask(&request(start, &key, "{}")).await.status, 200, "{start}");
    }
    let asked = counts(&backends);
    assert!(asked.contains(&4) && asked.iter().sum::<usize>() == 4, "{asked:?}");
    for _ in 0..6 {
        front.ask(&request("GET /v1/models", &[], "")).await;
    }
    let spread: Vec<usize> =
        counts(&backends).iter().zip(&asked).map(|(now, before)| now - before).collect();
    assert_eq!(spread, [2, 2, 2]);
}

#[tokio::test]
async fn a_pin_is_given_up_where_it_is() {
    let backends = backends(3).await;
    let front = Front::before(&backends).await;
    let none = Act::say(404, &[], r#"{"detail":{}}"#);
    backends[0].next([none.clone(), none.clone()]);
    backends[1].next([Act::say(200, &[], r#"{"ok":true}"#), none.clone()]);
    backends[2].next([none]);
    let unpin = request("DELETE /v1/prewarm/beef", &[], "");
    assert_eq!(front.ask(&unpin).await.status, 200);
    assert_eq!(front.ask(&unpin).await.status, 404, "nobody has it");
    assert_eq!(counts(&backends), [2, 2, 1]);
}
