//! The null server: answers each request at once, with an answer to every question and no thought.
//!
//! Against it a load test measures itself: whatever latency it reports is its own and the kernel's.

mod forms;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

/// Most bytes of one request.
const REQUEST_BYTES_MAX: usize = 32 << 20;

/// Serves until it is stopped.
///
/// # Errors
/// When the port cannot be had.
pub(crate) async fn serve(port: u16) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(("127.0.0.1", port)).await.with_context(|| format!("--port {port}"))?;
    loop {
        let (stream, _) = listener.accept().await?;
        spawn_local(async move {
            // A client that went away needs no answer.
            let _ = answer(stream).await;
        });
    }
}

/// Answers the requests of one connection until it ends.
///
/// # Errors
/// When it breaks.
pub(crate) async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    loop {
        while let Some((head, whole)) = extent(&received) {
            if received.len() < whole {
                break;
            }
            let response = response(&received[..head], &received[head..whole]);
            received.drain(..whole);
            stream.write_all(response.as_bytes()).await?;
        }
        if stream.read_buf(&mut received).await? == 0 || received.len() > REQUEST_BYTES_MAX {
            return Ok(());
        }
    }
}

/// Length of the head and of the whole of the first request, once its head is there.
fn extent(received: &[u8]) -> Option<(usize, usize)> {
    let head = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    Some((head, head.saturating_add(length)))
}

fn response(head: &[u8], body: &[u8]) -> String {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let body = forms::answer(line.split(' ').nth(1).unwrap_or_default(), body);
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nserver-timing: total;dur=0.0\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_and_answered_by_their_path() {
        let body = r#"{"state":"s","questions":{"q0":{"type":"noul"},"q1":{"type":"noul"}}}"#;
        let head = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
        let two = format!("{head}{body}POST");
        assert_eq!(extent(two.as_bytes()), Some((head.len(), two.len() - 4)));
        assert_eq!(extent(b"POST / HTTP/1.1\r\n"), None);
        let answer = response(head.as_bytes(), body.as_bytes());
        assert!(answer.ends_with(r#"{"answers":{"q0":{"noul":0.5},"q1":{"noul":0.5}}}"#));
        let answer = response(b"GET /v1/models HTTP/1.1\r\n\r\n", b"");
        assert!(answer.contains(r#""id":"null""#), "{answer}");
    }
}
