//! A server in the place of vLLM, `SGLang` or llama.cpp's: it takes exactly the fields that docket is to
//! send, answers from [`truth`](super::truth), and can be told to misbehave.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use docket::engine::remote::Protocol;
use docket::prompt::tokens::model::ModelTokenizer;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::answers::{Asked, answer};

/// What the stub does with the next requests for readings, one each.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Answers this status.
    Status(u16),
    /// Closes the connection when it has read the request.
    Close,
    /// Announces more than it sends, and closes.
    Truncated,
    /// Answers something that is no JSON.
    Garbage,
    /// Answers more than anybody should read.
    Oversized,
    /// Does not answer until the client has gone.
    Hang,
    /// Answers that it read one token less.
    Shorter,
}

/// What the stub is.
#[derive(Debug, Clone)]
pub(crate) struct Nature {
    pub(crate) protocol: Protocol,
    /// Time of each reading.
    pub(crate) pace: Duration,
    /// Whether its log-probabilities are taken after logits are changed.
    pub(crate) is_processed: bool,
    /// Whether it tokenises otherwise.
    pub(crate) is_foreign: bool,
    /// Whether it has a route that tokenises.
    pub(crate) tokenizes: bool,
    /// The key that it wants.
    pub(crate) key: Option<&'static str>,
    pub(crate) context: u32,
    /// Slots of a llama-server.
    pub(crate) slots: usize,
    /// Its tokenizer; without one a text's tokens are its bytes.
    pub(crate) tokenizer: Option<Arc<ModelTokenizer>>,
}

impl Nature {
    pub(crate) fn of(protocol: Protocol) -> Self {
        Self {
            protocol,
            pace: Duration::ZERO,
            is_processed: false,
            is_foreign: false,
            tokenizes: true,
            key: None,
            context: super::truth::CONTEXT,
            slots: 2,
            tokenizer: None,
        }
    }
}

/// A request for a reading, as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) asked: Asked,
    /// Its place in the order of beginnings and ends of all readings.
    pub(crate) began: u64,
    /// `None` while it runs, and when its client went.
    pub(crate) ended: Option<u64>,
}

/// What the stub has seen so far.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) seen: Vec<Seen>,
    /// Fields that are missing, unknown or wrong.
    pub(crate) faults: Vec<String>,
    pub(crate) in_flight: usize,
    pub(crate) in_flight_max: usize,
    /// Requests whose client went before the answer.
    pub(crate) aborted: usize,
    clock: u64,
    acts: VecDeque<Act>,
    /// Prompts that were read, with their salt and slot, newest last.
    pub(crate) cache: Vec<(String, Option<u64>, Vec<u32>)>,
}

/// A stub at its address.
pub(crate) struct Stub {
    pub(crate) address: SocketAddr,
    runtime: Handle,
    shared: Arc<Shared>,
    task: Option<AbortHandle>,
}

pub(crate) struct Shared {
    pub(crate) nature: Mutex<Nature>,
    pub(crate) record: Mutex<Record>,
    /// Rises with each change of the record.
    changed: watch::Sender<u64>,
}

impl Stub {
    pub(crate) fn start(runtime: &Handle, nature: Nature) -> Self {
        let (changed, _) = watch::channel(0);
        let (nature, record) = (Mutex::new(nature), Mutex::default());
        let shared = Arc::new(Shared { nature, record, changed });
        let address = "127.0.0.1:0".parse().unwrap();
        let mut stub = Self { address, runtime: runtime.clone(), shared, task: None };
        stub.listen();
        stub
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends it as a killed process does: nobody listens, and all connections are gone.
    pub(crate) fn kill(&mut self) {
        self.task.take().unwrap().abort();
        let address = self.address;
        self.runtime.block_on(async move {
            while TcpStream::connect(address).await.is_ok() {
                tokio::task::yield_now().await;
            }
        });
        let mut record = self.record();
        record.in_flight = 0;
        record.cache.clear();
    }

    /// Listens at its address, again after [`kill`](Self::kill).
    pub(crate) fn listen(&mut self) {
        let listener = self.runtime.block_on(TcpListener::bind(self.address)).unwrap();
        self.address = listener.local_addr().unwrap();
        let shared = Arc::clone(&self.shared);
        self.task = Some(self.runtime.spawn(serve(listener, shared)).abort_handle());
    }

    pub(crate) fn record(&self) -> std::sync::MutexGuard<'_, Record> {
        self.shared.record.lock().unwrap()
    }

    pub(crate) fn protocol(&self) -> Protocol {
        self.shared.nature.lock().unwrap().protocol
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Nature)) {
        change(&mut self.shared.nature.lock().unwrap());
    }

    pub(crate) fn will(&self, acts: &[Act]) {
        self.record().acts.extend(acts.iter().cloned());
    }

    /// Does the same with all that come.
    pub(crate) fn will_always(&self, act: &Act) {
        self.record().acts.extend(std::iter::repeat_n(act.clone(), 1_000));
    }

    /// Waits until the record is so.
    pub(crate) fn until(&self, is_so: impl Fn(&Record) -> bool) {
        let mut changes = self.shared.changed.subscribe();
        let wait = async {
            while !is_so(&self.record()) {
                changes.changed().await.unwrap();
            }
        };
        let waited =
            self.runtime.block_on(async { tokio::time::timeout(super::PATIENCE, wait).await });
        assert!(waited.is_ok(), "it never came so: {:?}", self.record());
    }

    /// Forgets what it has seen, not what it has cached.
    pub(crate) fn forget(&self) {
        let mut record = self.record();
        record.seen.clear();
        record.in_flight_max = 0;
    }

    pub(crate) fn assert_sound(&self) {
        assert!(self.record().faults.is_empty(), "{:?}", self.record().faults);
    }
}

impl Shared {
    fn note<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        let changed = change(&mut self.record.lock().unwrap());
        self.changed.send_modify(|count| *count += 1);
        changed
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, and the connections with it.
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let _ = converse(stream, &shared).await;
        });
    }
}

/// A request off the wire.
pub(crate) struct Incoming {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Vec<u8>,
}

async fn converse(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut held = Vec::new();
    while let Some(incoming) = receive(&mut stream, &mut held).await? {
        if !react(&mut stream, &incoming, shared).await? {
            break;
        }
    }
    Ok(())
}

async fn receive(stream: &mut TcpStream, held: &mut Vec<u8>) -> std::io::Result<Option<Incoming>> {
    let end = loop {
        if let Some(end) = held.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(held).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8(held[..end].to_vec()).unwrap();
    let header = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name))?;
        Some(line.split_once(": ")?.1.to_owned())
    };
    let length: usize = header("content-length:").map_or(0, |length| length.parse().unwrap());
    while held.len() < end + 4 + length {
        if stream.read_buf(held).await? == 0 {
            return Ok(None);
        }
    }
    let mut words = head.lines().next().unwrap().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let authorization = header("authorization:");
    let body = held[end + 4..end + 4 + length].to_vec();
    held.drain(..end + 4 + length);
    Ok(Some(Incoming { method, path, authorization, body }))
}

/// Says whether the connection goes on.
async fn react(
    stream: &mut TcpStream,
    incoming: &Incoming,
    shared: &Shared,
) -> std::io::Result<bool> {
    let nature = shared.nature.lock().unwrap().clone();
    let replied = shared.note(|record| answer(incoming, &nature, record));
    let Some(asked) = replied.asked else {
        return send(stream, replied.status, &replied.body).await.map(|()| true);
    };
    let (number, act) = shared.note(|record| {
        record.clock += 1;
        let began = record.clock;
        record.seen.push(Seen { asked, began, ended: None });
        record.in_flight += 1;
        record.in_flight_max = record.in_flight_max.max(record.in_flight);
        (record.seen.len() - 1, record.acts.pop_front())
    });
    let is_hanging = matches!(act, Some(Act::Hang));
    let is_gone = wait(stream, nature.pace, is_hanging).await;
    shared.note(|record| {
        record.clock += 1;
        let ended = (!is_gone).then_some(record.clock);
        if let Some(seen) = record.seen.get_mut(number) {
            seen.ended = ended;
        }
        record.in_flight = record.in_flight.saturating_sub(1);
        record.aborted += usize::from(is_gone);
    });
    if is_gone {
        return Ok(false);
    }
    misbehave(stream, act, (replied.status, &replied.body)).await
}

/// Waits as long as a reading takes; says whether the client went meanwhile.
async fn wait(stream: &TcpStream, pace: Duration, is_hanging: bool) -> bool {
    let gone = async {
        loop {
            // A client sends nothing more before it has its answer.
            if stream.readable().await.is_err() {
                return;
            }
            let mut byte = [0];
            match stream.try_read(&mut byte) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return,
            }
        }
    };
    tokio::select! {
        biased;
        () = gone => true,
        () = tokio::time::sleep(pace), if !is_hanging => false,
    }
}

async fn misbehave(
    stream: &mut TcpStream,
    act: Option<Act>,
    (status, body): (u16, &Value),
) -> std::io::Result<bool> {
    match act {
        None | Some(Act::Hang) => send(stream, status, body).await.map(|()| true),
        Some(Act::Status(status)) => send(stream, status, &Value::Null).await.map(|()| true),
        Some(Act::Close) => Ok(false),
        Some(Act::Truncated) => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choi").await?;
            Ok(false)
        }
        Some(Act::Garbage) => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>").await?;
            Ok(true)
        }
        Some(Act::Oversized) => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n").await?;
            let piece = vec![b' '; 1 << 20];
            for _ in 0..95 {
                stream.write_all(&piece).await?;
            }
            Ok(false)
        }
        Some(Act::Shorter) => {
            let text = super::answers::one_less(body);
            send(stream, status, &text).await.map(|()| true)
        }
    }
}

async fn send(stream: &mut TcpStream, status: u16, body: &Value) -> std::io::Result<()> {
    let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    let length = text.len();
    let whole = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{text}"
    );
    stream.write_all(whole.as_bytes()).await
}
