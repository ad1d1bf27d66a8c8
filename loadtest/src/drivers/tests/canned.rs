//! A server of a few lines: it answers by a rule and remembers what came.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

use crate::client::Target;

/// A request that came.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Its head in lower case.
    pub(super) head: String,
    pub(super) path: String,
    pub(super) body: Value,
    /// Requests that were under way, with it, when it came.
    pub(super) under_way: u32,
}

/// What came, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    seen: Rc<RefCell<Vec<Seen>>>,
    under_way: Rc<Cell<u32>>,
}

impl Log {
    pub(super) fn all(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }
}

/// Status and body of an answer; a status of 0 closes the connection instead.
pub(super) type Rule = fn(&Seen) -> (u16, String);

/// Starts a server on a port of its own.
pub(super) async fn serve(rule: Rule) -> (Target, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let log = Log::default();
    let kept = log.clone();
    spawn_local(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            spawn_local(answer(stream, rule, kept.clone()));
        }
    });
    (Target::resolve(&url).await.unwrap(), log)
}

async fn answer(mut stream: TcpStream, rule: Rule, log: Log) {
    let mut received = Vec::new();
    loop {
        let Some((head, body, length)) = request(&received) else {
            if stream.read_buf(&mut received).await.unwrap_or(0) == 0 {
                return;
            }
            continue;
        };
        received.drain(..length);
        log.under_way.set(log.under_way.get() + 1);
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let under_way = log.under_way.get();
        let seen = Seen { head: head.to_lowercase(), path, body, under_way };
        log.seen.borrow_mut().push(seen.clone());
        // So that others which are sent meanwhile are seen to be.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let (status, text) = rule(&seen);
        log.under_way.set(log.under_way.get() - 1);
        if status == 0 {
            return;
        }
        let length = text.len();
        let response = format!(
            "HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\nretry-after: 3\r\n\r\n{text}"
        );
        stream.write_all(response.as_bytes()).await.unwrap();
    }
}

/// Head, body and length of the first request, once it is whole.
fn request(received: &[u8]) -> Option<(String, Value, usize)> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(received[..end].to_vec()).unwrap();
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let whole = end + length.map_or(0, |length| length.parse::<usize>().unwrap());
    let body = received.get(end..whole)?;
    let body = serde_json::from_slice(body).unwrap_or_default();
    Some((head, body, whole))
}
