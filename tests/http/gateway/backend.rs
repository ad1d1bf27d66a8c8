//! A backend that does with each request what the test says, down to the bytes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What a backend does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Writes these bytes.
    Say(String),
    /// Closes the connection.
    Break,
    /// Writes nothing until the test releases it, then 200.
    Hold,
    /// Writes the first of two chunks, and the second once the test releases it.
    Drip,
}

impl Act {
    /// A response with these headers and body.
    pub(crate) fn say(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        Self::Say(format!(
            "HTTP/1.1 {status} Told\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        ))
    }

    /// A refusal for now.
    pub(crate) fn refuse(status: u16, reason: &str, wait_ms: &str) -> Self {
        Self::say(status, &[("x-docket-reason", reason), ("retry-after-ms", wait_ms)], "{}")
    }
}

/// What the backends of a test share with it.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// What is done with the next requests; then 200.
    acts: Mutex<VecDeque<Act>>,
    /// Requests but probes, as they came: head, then body.
    seen: Mutex<Vec<(String, Vec<u8>)>>,
    is_unready: AtomicBool,
    /// Requests that are held, and connections that their client closed meanwhile.
    held: AtomicUsize,
    gone: AtomicUsize,
    /// Rises with all of these.
    changed: Notify,
    release: Notify,
}

/// A backend on a port of its own.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    pub(crate) shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Backend {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Self { address, shared, task }
    }

    /// Does this with the next requests, one after the other.
    pub(crate) fn next(&self, acts: impl IntoIterator<Item = Act>) {
        self.shared.acts.lock().unwrap().extend(acts);
    }

    /// From now on its port is closed, and what was open is cut.
    pub(crate) async fn kill(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    pub(crate) fn say_unready(&self, is_unready: bool) {
        self.shared.is_unready.store(is_unready, Ordering::SeqCst);
    }

    /// Heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.shared.seen.lock().unwrap().iter().map(|(head, _)| head.clone()).collect()
    }

    /// Bodies of the requests so far.
    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        self.shared.seen.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.shared.seen.lock().unwrap().len()
    }

    pub(crate) fn held(&self) -> usize {
        self.shared.held.load(Ordering::SeqCst)
    }

    pub(crate) fn gone(&self) -> usize {
        self.shared.gone.load(Ordering::SeqCst)
    }

    /// Lets go of one request that is held or drips, now or the next one.
    pub(crate) fn release(&self) {
        self.shared.release.notify_one();
    }

    /// Waits until `is_so`.
    pub(crate) async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_so(self) {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connections end with the task: they are in its set.
async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        connections.spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut bytes = Vec::new();
    while let Some((head, body)) = request(&mut stream, &mut bytes).await {
        if head.starts_with("GET /health?ready=1 ") {
            let is_unready = shared.is_unready.load(Ordering::SeqCst);
            let status = if is_unready { 503 } else { 200 };
            let Act::Say(text) = Act::say(status, &[], "{}") else { continue };
            if stream.write_all(text.as_bytes()).await.is_err() {
                return;
            }
            continue;
        }
        shared.seen.lock().unwrap().push((head, body));
        shared.changed.notify_waiters();
        let act = shared.acts.lock().unwrap().pop_front();
        if !done(&mut stream, &shared, act).await {
            return;
        }
    }
}

/// Does it; says whether the connection goes on.
async fn done(stream: &mut TcpStream, shared: &Shared, act: Option<Act>) -> bool {
    let usual = Act::say(200, &[("content-type", "application/json")], r#"{"model":"stub"}"#);
    let text = match act.unwrap_or(usual) {
        Act::Say(text) => text,
        Act::Break => return false,
        Act::Hold => {
            if !held(stream, shared).await {
                return false;
            }
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned()
        }
        Act::Drip => {
            let first = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\none\n\r\n";
            stream.write_all(first.as_bytes()).await.unwrap();
            if !held(stream, shared).await {
                return false;
            }
            "4\r\ntwo\n\r\n0\r\n\r\n".to_owned()
        }
    };
    stream.write_all(text.as_bytes()).await.is_ok()
}

/// Waits to be released; says whether the client is still there.
async fn held(stream: &mut TcpStream, shared: &Shared) -> bool {
    shared.held.fetch_add(1, Ordering::SeqCst);
    shared.changed.notify_waiters();
    let is_released = tokio::select! {
        () = shared.release.notified() => true,
        _ = stream.read(&mut [0; 1]) => false,
    };
    shared.held.fetch_sub(1, Ordering::SeqCst);
    shared.gone.fetch_add(usize::from(!is_released), Ordering::SeqCst);
    shared.changed.notify_waiters();
    is_released
}

/// One request off the stream, head and body; `None` at its end.
async fn request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        more(stream, bytes).await?;
    };
    let head = String::from_utf8(bytes.drain(..head_end + 4).collect()).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(0, |length| length.parse().unwrap());
    while bytes.len() < length {
        more(stream, bytes).await?;
    }
    Some((head, bytes.drain(..length).collect()))
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 16 << 10];
    match stream.read(&mut buffer).await {
        Ok(read) if read > 0 => {
            bytes.extend_from_slice(&buffer[..read]);
            Some(())
        }
        Ok(_) | Err(_) => None,
    }
}
