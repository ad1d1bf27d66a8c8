//! Request bodies: received within limits of size, time and total memory, then parsed.
//!
//! Nothing of a request is admitted before its body is whole, so that a stalled upload holds a
//! connection and nothing else (case 48).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::dialect::problem::{Fault, RequestFault};
use crate::error::DecideError;
use crate::json::{Json, Limits};
use crate::telemetry;

use super::App;
use super::encoding::Encoding;
use super::respond::excerpt;

/// Default of the longest body in bytes: 32 MiB.
pub const BODY_BYTES_MAX: usize = 32 << 20;

/// Default of the most bytes of all bodies held at one time: 512 MiB.
pub const BODIES_BYTES_MAX: usize = 512 << 20;

/// Default of the longest time that a body may take to arrive.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Bodies longer than this are parsed off the runtime's own turn: 256 KiB take about a millisecond.
const QUICK_BYTES_MAX: usize = 256 << 10;

/// The same for compressed bodies, which can grow a thousandfold.
const QUICK_COMPRESSED_BYTES_MAX: usize = 4 << 10;

/// Most memory set aside for a body on the word of its `Content-Length`.
const CAPACITY_BYTES_MAX: usize = 1 << 20;

/// Most bytes of a refused body that are read and thrown away so that the client sees the answer.
const DISCARD_BYTES_MAX: usize = 64 << 20;

/// Longest time for that.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of the bodies that are held at this moment.
#[derive(Debug)]
pub(super) struct Held {
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl Held {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), bytes_max }
    }

    fn hold(&self) -> Hold<'_> {
        Hold { held: self, bytes: 0 }
    }
}

/// One body's share of [`Held`], given back when dropped.
struct Hold<'a> {
    held: &'a Held,
    bytes: usize,
}

impl Hold<'_> {
    fn grow(&mut self, bytes: usize) -> Result<(), RequestFault> {
        let bytes_max = self.held.bytes_max;
        let before = self.held.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        telemetry::body_bytes(before + bytes);
        if before + bytes > bytes_max {
            return Err(RequestFault::BodiesFull { bytes_max });
        }
        Ok(())
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let before = self.held.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        telemetry::body_bytes(before.saturating_sub(self.bytes));
    }
}

/// Refuses a body that is declared as something else than JSON; one without a type is read as JSON.
pub(super) fn check_media_type(headers: &HeaderMap) -> Result<(), RequestFault> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let value = String::from_utf8_lossy(value.as_bytes());
    let media = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_suffixed = media.split_once('/').is_some_and(|(_, kind)| kind.ends_with("+json"));
    if media == "application/json" || is_suffixed {
        return Ok(());
    }
    Err(RequestFault::MediaType { found: excerpt(&value) })
}

impl App {
    /// Receives and parses the JSON body of a request.
    pub(super) async fn json(&self, headers: &HeaderMap, body: Body) -> Result<Json, Fault> {
        let mut body = body;
        match self.receive_and_parse(headers, &mut body).await {
            Err(fault @ Fault::Request(_)) => {
                discard(headers, body).await;
                Err(fault)
            }
            parsed => parsed,
        }
    }

    async fn receive_and_parse(&self, headers: &HeaderMap, body: &mut Body) -> Result<Json, Fault> {
        let encoding = Encoding::of(headers)?;
        let mut hold = self.bodies.hold();
        let limit = self.config.body_timeout;
        let bytes = tokio::time::timeout(limit, self.receive(headers, body, &mut hold))
            .await
            .map_err(|_| RequestFault::BodyTimeout { limit })??;
        let quick_bytes_max = match encoding {
            Encoding::Identity => QUICK_BYTES_MAX,
            Encoding::Gzip | Encoding::Zstd => QUICK_COMPRESSED_BYTES_MAX,
        };
        if bytes.len() <= quick_bytes_max {
            return self.parse(encoding, bytes, &mut hold);
        }
        // The semaphore is never closed; were it, parsing would go on without its limit.
        let _permit = self.parsers.acquire().await;
        let _busy = telemetry::parser();
        off_the_runtime(|| self.parse(encoding, bytes, &mut hold))
    }

    async fn receive(
        &self,
        headers: &HeaderMap,
        body: &mut Body,
        hold: &mut Hold<'_>,
    ) -> Result<Vec<u8>, RequestFault> {
        let bytes_max = self.config.body_bytes_max;
        let announced = announced_bytes(headers);
        if announced > bytes_max {
            return Err(RequestFault::BodyTooLarge { bytes_max });
        }
        let mut bytes = Vec::with_capacity(announced.min(CAPACITY_BYTES_MAX));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| RequestFault::BodyBroken)?;
            let Some(chunk) = frame.data_ref() else { continue };
            if bytes.len() + chunk.len() > bytes_max {
                return Err(RequestFault::BodyTooLarge { bytes_max });
            }
            hold.grow(chunk.len())?;
            bytes.extend_from_slice(chunk);
        }
        Ok(bytes)
    }

    fn parse(
        &self,
        encoding: Encoding,
        bytes: Vec<u8>,
        hold: &mut Hold<'_>,
    ) -> Result<Json, Fault> {
        let received = bytes.len();
        let text = encoding.decode(bytes, self.config.body_bytes_max)?;
        hold.grow(text.len().saturating_sub(received))?;
        Json::parse(&text, Limits::default())
            .map_err(|problem| DecideError::Invalid(vec![problem]).into())
    }
}

fn announced_bytes(headers: &HeaderMap) -> usize {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or_default()
}

/// Runs `work` so that other tasks of this worker go on meanwhile; in place on a runtime that has
/// one thread only.
fn off_the_runtime<T>(work: impl FnOnce() -> T) -> T {
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Reads and drops what is left of a refused body: a client that is still sending when the
/// connection closes gets a reset in place of the answer.
pub(super) async fn discard(headers: &HeaderMap, mut body: Body) {
    // This client sends its body only when asked to, so nothing is on its way.
    if headers.contains_key(header::EXPECT) {
        return;
    }
    let drain = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DISCARD_BYTES_MAX {
                break;
            }
        }
    };
    // Past the time the connection is closed with the rest unread, which is all that is left.
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, drain).await;
}
