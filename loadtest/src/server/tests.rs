//! Looking at servers that are a few lines each, over this machine's loopback.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

use super::*;

/// Answers one request after the other: a page each, or, without the right key, a refusal.
async fn serve(listener: TcpListener, key: &'static str, pages: Vec<&'static str>) {
    let mut pages = pages.into_iter();
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut head).await.unwrap();
        }
        let head = String::from_utf8(head).unwrap();
        let is_known =
            head.to_ascii_lowercase().contains(&format!("authorization: bearer {key}\r\n"));
        let (status, body) =
            if is_known { ("200 OK", pages.next().unwrap_or("")) } else { ("403 No", "") };
        let length = body.len();
        let text = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).await.unwrap();
    }
}

async fn seen(keys: Vec<&str>, pages: Vec<&'static str>) -> Seen {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let target = Target::resolve(&url).await.unwrap();
    spawn_local(serve(listener, "sk-op", pages));
    let look = Look { target: &target, keys, pid: None, warm_up: Duration::ZERO };
    let watch = Watch::begin(look).await.unwrap();
    // As if the server were on another machine.
    Watch { sampler: None, ..watch }.end().await
}

const BEFORE: &str = "# HELP docket_build_info Always 1\n\
    docket_build_info{version=\"0.1.0\",target=\"x\",commit=\"abc123\"} 1\n\
    docket_state_duplicate_prefill_tokens_total 4\n\
    process_cpu_seconds_total 10.5\nprocess_resident_memory_bytes 1e6\n";
const AFTER: &str = "docket_build_info{version=\"0.1.0\",target=\"x\",commit=\"abc123\"} 1\n\
    docket_state_duplicate_prefill_tokens_total 54\n\
    process_cpu_seconds_total 12\nprocess_resident_memory_bytes 3e6\n";

#[tokio::test]
async fn the_metrics_of_a_server_elsewhere_tell_what_it_used_and_computed_twice() {
    let keys = vec!["sk-tenant", "sk-op"];
    let seen = LocalSet::new().run_until(seen(keys, vec![BEFORE, AFTER])).await;
    assert_eq!((seen.duplicate_tokens, seen.build.as_deref()), (Some(50), Some("0.1.0 abc123")));
    let usage = seen.usage.unwrap();
    assert_eq!((usage.cpu, usage.rss_bytes_max), (Duration::from_millis(1_500), 3_000_000));
    assert_eq!(usage.pid, None);
}

#[tokio::test]
async fn a_page_that_no_key_may_read_tells_nothing() {
    let seen = LocalSet::new().run_until(seen(vec!["sk-tenant"], vec![BEFORE, AFTER])).await;
    assert_eq!(seen, Seen::default());
}

#[tokio::test]
async fn counters_that_fell_are_of_another_process_and_tell_nothing() {
    let seen = LocalSet::new().run_until(seen(vec!["sk-op"], vec![AFTER, BEFORE])).await;
    assert_eq!((seen.duplicate_tokens, seen.usage), (None, None));
}

#[test]
fn connections_that_were_too_many_are_told_by_the_servers_count() {
    let page = |text: &str| Page::of(text.as_bytes()).unwrap();
    let before = page("docket_http_connections_ended_total{reason=\"idle\"} 7\n");
    let after = page(
        "docket_http_connections_ended_total{reason=\"idle\"} 9\n\
         docket_http_connections_ended_total{reason=\"address\"} 4\n",
    );
    assert_eq!(turned_away(&before, &after), Some(4));
    assert_eq!([turned_away(&after, &after), turned_away(&after, &before)], [Some(0), None]);
}

#[test]
fn series_are_summed_over_their_labels_and_names_are_whole() {
    let page =
        Page::of(b"a_total{x=\"1\"} 2\na_total{x=\"2\"} 3 1700000000\na_total_more 9\nb 1\n");
    let page = page.unwrap();
    assert_eq!([page.sum("a_total"), page.sum("b"), page.sum("a")], [Some(5.0), Some(1.0), None]);
}
