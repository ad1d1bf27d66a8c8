//! The server loop on a loopback socket, and clients of it that send what no library would.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use docket::http::serve::{ServeConfig, Tls, serve};
use docket::http::{HttpConfig, router};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::Stub;

/// Longest time that anything here may take.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) done: JoinHandle<usize>,
}

impl Server {
    pub(crate) async fn start(stub: &Arc<Stub>, http: HttpConfig, config: ServeConfig) -> Self {
        Self::start_with(stub, http, config, None).await
    }

    pub(crate) async fn start_with(
        stub: &Arc<Stub>,
        http: HttpConfig,
        config: ServeConfig,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let router = router(Arc::clone(stub) as _, http);
        let shutdown = async move {
            let _ = stopped.await;
        };
        let done = tokio::spawn(serve(listener, router, config, tls, shutdown));
        Self { address, stop: Some(stop), done }
    }

    pub(crate) async fn plain(stub: &Arc<Stub>) -> Self {
        Self::start(stub, HttpConfig::default(), ServeConfig::default()).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub(crate) fn begin_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }
}

pub(crate) fn message(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST /v1/systemone HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Reads one response: its head, and a body of the announced length.
pub(crate) async fn read_response(stream: &mut (impl AsyncRead + Unpin)) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4_096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "closed early: {}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let body = bytes[end + 4..].to_vec();
        if body.len() == length.parse::<usize>().unwrap() {
            return (head, body);
        }
    }
}

pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("not done in time")
}
