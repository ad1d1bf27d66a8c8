//! A gateway on a loopback socket, and a client of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use docket::config::{BackendConfig, GatewayConfig, ProbeConfig};
use docket::dialect::Dialect;
use docket::gateway::{Gateway, router};
use docket::http::serve::{ServeConfig, serve};
use docket::state_key::Secret;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::backend::Backend;
use crate::server::{in_time, read_response};

pub(crate) const KEY: &str = "x-docket-state-key";

pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: Arc<Gateway>,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) done: JoinHandle<usize>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Settings of which nothing happens by the clock but what a test is about.
pub(crate) fn settings(addresses: &[SocketAddr]) -> GatewayConfig {
    let hour = Duration::from_hours(1);
    let named = |address: &SocketAddr| BackendConfig { name: address.to_string(), weight: 1 };
    GatewayConfig {
        backends: addresses.iter().map(named).collect(),
        probes: ProbeConfig { interval: hour, failures: 1, ..ProbeConfig::default() },
        ..GatewayConfig::default()
    }
}

impl Front {
    pub(crate) async fn start(config: GatewayConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let gateway = Gateway::new(config, Dialect::Systemone, Secret::of(b"the secret of a test"));
        gateway.probe().await;
        let (stop, stopped) = oneshot::channel();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let router = router(Arc::clone(&gateway), None);
        let done = tokio::spawn(serve(listener, router, ServeConfig::default(), None, shutdown));
        Self { address, gateway, stop: Some(stop), done }
    }

    pub(crate) async fn before(backends: &[Backend]) -> Self {
        let addresses: Vec<SocketAddr> = backends.iter().map(|backend| backend.address).collect();
        Self::start(settings(&addresses)).await
    }

    pub(crate) fn begin_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// A connection on which a request was sent.
    pub(crate) async fn sent(&self, text: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text).await.unwrap();
        stream
    }

    pub(crate) async fn ask(&self, text: &[u8]) -> Answer {
        answer(&mut self.sent(text).await).await
    }

    /// The answer to a decision on this state.
    pub(crate) async fn decide(&self, state: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(&request("POST /v1/systemone", headers, &of_state(state))).await
    }
}

pub(crate) async fn answer(stream: &mut TcpStream) -> Answer {
    let (head, body) = in_time(read_response(stream)).await;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body }
}

pub(crate) async fn backends(count: usize) -> Vec<Backend> {
    let mut backends = Vec::new();
    for _ in 0..count {
        backends.push(Backend::start().await);
    }
    backends
}

/// A request, `start` being its method and path.
pub(crate) fn request(start: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!("{start} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
        .into_bytes()
}

pub(crate) fn of_state(state: &str) -> String {
    format!(r#"{{"state":"{state}","questions":{{"q":{{"type":"noul"}}}}}}"#)
}

/// Which backend was asked since the counts were these.
pub(crate) fn asked(backends: &[Backend], before: &[usize]) -> Vec<usize> {
    let grown = backends.iter().zip(before).enumerate();
    grown.filter(|(_, (backend, before))| backend.count() > **before).map(|(at, _)| at).collect()
}

pub(crate) fn counts(backends: &[Backend]) -> Vec<usize> {
    backends.iter().map(Backend::count).collect()
}
