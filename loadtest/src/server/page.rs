//! A server's metrics page, in Prometheus' text format.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1::handshake;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio::time::Instant;

use crate::client::Target;

/// Longest page that is read.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// A page, and when it was read.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    pub(super) read_at: Instant,
}

impl Page {
    /// Reads `/metrics`; none where there is no such page, or the key may not read it.
    pub(super) async fn get(target: &Target, key: Option<&str>) -> Option<Self> {
        let stream = TcpStream::connect(target.address()).await.ok()?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
        let task = spawn_local(async move {
            // The request that was under way gets the error.
            let _ = connection.await;
        });
        let mut request = Request::get("/metrics").header(HOST, &target.host);
        if let Some(key) = key {
            request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        let response = sender.send_request(request.body(Empty::<Bytes>::new()).ok()?).await.ok()?;
        if response.status() != StatusCode::OK {
            return None;
        }
        let body = Limited::new(response.into_body(), PAGE_BYTES_MAX).collect().await.ok()?;
        task.abort();
        Self::of(&body.to_bytes())
    }

    pub(super) fn of(body: &[u8]) -> Option<Self> {
        let text = String::from_utf8(body.to_vec()).ok()?;
        Some(Self { text, read_at: Instant::now() })
    }

    /// The sum of all series of a name, whatever their labels; none where there is none.
    pub(super) fn sum(&self, name: &str) -> Option<f64> {
        let values = self.series(name).filter_map(|(_, value)| value.parse::<f64>().ok());
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    /// The sum of those series of a name that have this label.
    pub(super) fn sum_of(&self, name: &str, (label, value): (&str, &str)) -> Option<f64> {
        let wanted = format!("{label}=\"{value}\"");
        let has_it = |labels: &str| labels.split(',').any(|label| label.trim() == wanted);
        let series = self.series(name).filter(|(labels, _)| has_it(labels));
        let values = series.filter_map(|(_, value)| value.parse::<f64>().ok());
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    /// The labels of the first series of a name. Values with a comma or a quote in them are cut
    /// there.
    pub(super) fn labels(&self, name: &str) -> Option<Vec<(String, String)>> {
        let (labels, _) = self.series(name).next()?;
        let pairs = labels.split(',').filter_map(|label| label.split_once('='));
        let text = |value: &str| value.trim().trim_matches('"').to_owned();
        Some(pairs.map(|(name, value)| (text(name), text(value))).collect())
    }

    /// Labels and value of each series of a name.
    fn series<'p>(&'p self, name: &'p str) -> impl Iterator<Item = (&'p str, &'p str)> {
        self.text.lines().filter_map(move |line| {
            let rest = line.strip_prefix(name)?;
            if let Some(labelled) = rest.strip_prefix('{') {
                let (labels, value) = labelled.rsplit_once('}')?;
                return Some((labels, value.split_whitespace().next()?));
            }
            let value = rest.strip_prefix(' ')?;
            Some(("", value.split_whitespace().next()?))
        })
    }
}
