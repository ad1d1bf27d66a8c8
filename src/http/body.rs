//! Request bodies: received within limits of size, time and total memory, then parsed.
//!
//! Nothing of a request is admitted before its body is whole, so that a stalled upload holds a
//! connection and nothing else (case 48).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use futures_util::FutureExt as _;
use http_body_util::BodyExt;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::dialect::Dialect;
use crate::dialect::problem::{Fault, RequestFault};
use crate::error::DecideError;
use crate::json::{Json, Limits};
use crate::telemetry;

use super::App;
use super::encoding::Encoding;
use super::images::{self, Found, ImageFault, Terms};
use super::respond::excerpt;

/// Default of the longest body in bytes: 32 MiB.
pub const BODY_BYTES_MAX: usize = 32 << 20;

/// Default of the most bytes of all bodies held at one time: 512 MiB.
pub const BODIES_BYTES_MAX: usize = 512 << 20;

/// Default of the longest time that a body may take to arrive.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Bodies longer than this are parsed off the runtime's own turn: 256 KiB take about a millisecond.
const QUICK_BYTES_MAX: usize = 256 << 10;

/// Most memory set aside for a body on the word of its `Content-Length`: what is announced and does
/// not come must not cost more than its connection.
const CAPACITY_BYTES_MAX: usize = 64 << 10;

/// Most bytes of a refused body that are read and thrown away so that the client sees the answer.
const DISCARD_BYTES_MAX: usize = 64 << 20;

/// Longest time for that.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of the bodies that are held at this moment.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl Held {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), bytes_max }
    }

    pub(crate) fn hold(&self) -> Hold<'_> {
        Hold { held: self, bytes: 0 }
    }
}

/// One body's share of [`Held`], given back when dropped.
pub(crate) struct Hold<'a> {
    held: &'a Held,
    bytes: usize,
}

impl Hold<'_> {
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), RequestFault> {
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

/// In which form a body is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Media {
    /// JSON.
    Json,
    /// A form with the JSON in one field and files beside it; its whole content type.
    Form(String),
}

/// Refuses a body that is declared as something else than JSON, or a form where `takes_forms`; one
/// without a type is read as JSON. Of a page that a browser shows only what is declared as JSON is read:
/// anything else any page could send without being asked for leave.
pub(super) fn media(headers: &HeaderMap, takes_forms: bool) -> Result<Media, RequestFault> {
    let is_of_page = headers.contains_key(header::ORIGIN);
    let declared = headers.get(header::CONTENT_TYPE).filter(|value| !value.is_empty());
    let value = match declared {
        None if is_of_page => return Err(RequestFault::MediaType { found: "none".to_owned() }),
        None => return Ok(Media::Json),
        Some(value) => String::from_utf8_lossy(value.as_bytes()),
    };
    let media = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_suffixed = media.split_once('/').is_some_and(|(_, kind)| kind.ends_with("+json"));
    if media == "application/json" || is_suffixed {
        return Ok(Media::Json);
    }
    if takes_forms && !is_of_page && media == "multipart/form-data" {
        return Ok(Media::Form(value.into_owned()));
    }
    Err(RequestFault::MediaType { found: excerpt(&value) })
}

/// Refuses a body that is not declared as `application/json` by that very name.
pub(super) fn declared(headers: &HeaderMap) -> Result<(), RequestFault> {
    let value = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let value = String::from_utf8_lossy(value.unwrap_or(b"none"));
    let media = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media == "application/json" {
        return Ok(());
    }
    Err(RequestFault::MediaType { found: excerpt(&value) })
}

/// The same by the rules of a dialect. Where it takes bodies that are not declared as JSON, nothing else
/// keeps the pages of other sites from sending some, so what says that it has an origin is refused.
pub(super) fn media_in(dialect: Dialect, headers: &HeaderMap) -> Result<Media, RequestFault> {
    if !dialect.takes_undeclared() {
        return media(headers, dialect.takes_forms());
    }
    let value = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let value = value.map(String::from_utf8_lossy).unwrap_or_default().to_ascii_lowercase();
    let form = "application/x-www-form-urlencoded";
    let is_plain = value.is_empty() || value.starts_with("text/") || value.starts_with(form);
    if is_plain && headers.contains_key(header::ORIGIN) {
        let found = if value.is_empty() { "none".to_owned() } else { excerpt(&value) };
        return Err(RequestFault::MediaType { found });
    }
    if is_plain { Ok(Media::Json) } else { media(headers, false) }
}

/// A body as it was sent, images taken out of it.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) json: Json,
    pub(super) images: Vec<Found>,
    /// Names of members of images that nobody knows.
    pub(super) ignored: Vec<String>,
    /// Whether it has the form of a request with images, be there any or not.
    pub(super) with_images: bool,
}

impl App {
    /// Receives and parses the JSON body of a request.
    pub(super) async fn json(&self, headers: &HeaderMap, body: Body) -> Result<Json, Fault> {
        self.received(headers, body, |json, ()| Ok(json), |text| Ok((text, ()))).await
    }

    /// The same of a request about a state, and takes the images out of it; none is fetched.
    pub(super) async fn sent(
        &self,
        headers: &HeaderMap,
        body: Body,
        media: Media,
        terms: Terms,
    ) -> Result<Sent, Fault> {
        let opened = |text: Vec<u8>| match &media {
            Media::Json => Ok((text, None)),
            Media::Form(content_type) => {
                opened(content_type, text, terms).map(|(text, images)| (text, Some(images)))
            }
        };
        let sent = |json, form| sent(json, form, terms);
        self.received(headers, body, sent, opened).await
    }

    /// The same of a request whose images are for its dialect to refuse.
    pub(super) async fn sent_as_text(
        &self,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Sent, Fault> {
        let json = self.json(headers, body).await?;
        Ok(Sent { json, images: Vec::new(), ignored: Vec::new(), with_images: false })
    }

    async fn received<T, F>(
        &self,
        headers: &HeaderMap,
        body: Body,
        made: impl Fn(Json, F) -> Result<T, Fault>,
        opened: impl Fn(Vec<u8>) -> Result<(Vec<u8>, F), Fault>,
    ) -> Result<T, Fault> {
        let mut body = body;
        let parsed = |encoding: Encoding, bytes: Vec<u8>, hold: &mut Hold<'_>| {
            let (text, beside) = opened(self.decoded(encoding, bytes, hold)?)?;
            made(parse(&text)?, beside)
        };
        match self.receive_and_parse(headers, &mut body, parsed).await {
            Err(fault @ Fault::Request(_)) => {
                discard(headers, body).await;
                Err(fault)
            }
            parsed => parsed,
        }
    }

    async fn receive_and_parse<T>(
        &self,
        headers: &HeaderMap,
        body: &mut Body,
        parsed: impl Fn(Encoding, Vec<u8>, &mut Hold<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let encoding = Encoding::of(headers)?;
        let mut hold = self.bodies.hold();
        let limit = self.config.body_timeout;
        let most = self.config.body_bytes_max;
        let bytes = receive_in_time(headers, body, (most, limit), &mut hold).await?;
        let (encoding, bytes) = match encoding.decode_short(&bytes, most.min(QUICK_BYTES_MAX))? {
            Some(text) => {
                hold.grow(text.len().saturating_sub(bytes.len()))?;
                (Encoding::Identity, text)
            }
            None => (encoding, bytes),
        };
        if encoding == Encoding::Identity && bytes.len() <= QUICK_BYTES_MAX {
            return parsed(encoding, bytes, &mut hold);
        }
        // The semaphore is never closed; were it, parsing would go on without its limit.
        let _permit = self.parsers.acquire().await;
        let _busy = telemetry::parser();
        off_the_runtime(|| parsed(encoding, bytes, &mut hold))
    }

    fn decoded(
        &self,
        encoding: Encoding,
        bytes: Vec<u8>,
        hold: &mut Hold<'_>,
    ) -> Result<Vec<u8>, Fault> {
        if encoding == Encoding::Identity {
            return Ok(bytes);
        }
        let text = encoding.decode(&bytes, self.config.body_bytes_max)?;
        hold.grow(text.len().saturating_sub(bytes.len()))?;
        Ok(text)
    }
}

/// Receives a body as it was sent.
///
/// * `bytes_max`, `limit`: most bytes, and longest time to their end.
///
/// # Errors
/// [`RequestFault`] of a body that is too large, too slow or broken, or for which there is no memory.
pub(crate) async fn receive_in_time(
    headers: &HeaderMap,
    body: &mut Body,
    (bytes_max, limit): (usize, Duration),
    hold: &mut Hold<'_>,
) -> Result<Vec<u8>, RequestFault> {
    let received = tokio::time::timeout(limit, receive(headers, body, bytes_max, hold));
    received.await.map_err(|_| RequestFault::BodyTimeout { limit })?
}

async fn receive(
    headers: &HeaderMap,
    body: &mut Body,
    bytes_max: usize,
    hold: &mut Hold<'_>,
) -> Result<Vec<u8>, RequestFault> {
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

fn parse(text: &[u8]) -> Result<Json, Fault> {
    Json::parse(text, Limits::default())
        .map_err(|problem| DecideError::Invalid(vec![problem]).into())
}

/// The JSON of a form, and its files.
fn opened(content_type: &str, text: Vec<u8>, terms: Terms) -> Result<(Vec<u8>, Vec<Found>), Fault> {
    // All of it is there, so nothing is waited for.
    let form = images::multipart(content_type, text.into(), terms).now_or_never();
    let pending = || DecideError::Internal { detail: "a form that waits".to_owned() };
    let form = form.ok_or_else(pending)?.map_err(|fault| of_image(&fault))?;
    Ok((form.request.to_vec(), form.images))
}

/// Takes the images out of a request, after those of its form.
fn sent(mut json: Json, form: Option<Vec<Found>>, terms: Terms) -> Result<Sent, Fault> {
    let mut with_images = form.is_some();
    let (mut images, mut ignored) = (form.unwrap_or_default(), Vec::new());
    if let Json::Object(members) = &mut json {
        let explicit = members.iter().position(|(name, _)| name == "images");
        let explicit = explicit.map(|at| members.remove(at).1);
        with_images |= explicit.is_some();
        if let Some((_, state)) = members.iter_mut().find(|(name, _)| name == "state") {
            let found = images::found_after(images, state, explicit.as_ref(), terms);
            (images, ignored) = found.map_err(|fault| of_image(&fault))?;
        }
    }
    with_images |= !images.is_empty();
    Ok(Sent { json, images, ignored, with_images })
}

fn of_image(fault: &ImageFault) -> Fault {
    fault.refusal().into()
}

fn announced_bytes(headers: &HeaderMap) -> usize {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or_default()
}

/// Runs `work` so that other tasks of this worker go on meanwhile; in place on a runtime that has
/// one thread only.
pub(crate) fn off_the_runtime<T>(work: impl FnOnce() -> T) -> T {
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Reads and drops what is left of a refused body: a client that is still sending when the
/// connection closes gets a reset in place of the answer.
pub(crate) async fn discard(headers: &HeaderMap, mut body: Body) {
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
