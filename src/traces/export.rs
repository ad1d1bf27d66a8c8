//! Spans on their way to a collector: a bounded queue, and a thread that sends what is in it.
//!
//! The queue is counted here and not left to the SDK's processor, so that a request's spans are taken
//! or dropped as a whole, and that what is dropped is told.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{SpanContext, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_otlp::{
    Protocol, RetryPolicy, SpanExporter as Otlp, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanExporter, SpanLinks,
    SpanProcessor,
};

use super::Traced;
use super::ids::{Ids, SpanId};
use super::post::{Poster, TIMEOUT, Why};
use super::spans::{Attribute, SPANS_MAX, Span};
use crate::telemetry;

/// Most spans that wait to be sent, about 1 KiB each; a request that does not fit is not traced.
pub const QUEUE_SPANS_MAX: usize = 4_096;

/// Most spans of one request to the collector.
pub const BATCH_SPANS_MAX: usize = 512;

/// After what time spans are sent, however few.
const SEND_EVERY: Duration = Duration::from_secs(1);

/// A request to the collector that failed for now is made once more, after this time.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// The log tells of lost spans once in this time.
const TELL_EVERY: Duration = Duration::from_mins(1);

const _: () = assert!(SPANS_MAX <= QUEUE_SPANS_MAX, "the largest request fits an empty queue");

/// What waits to be sent, and who sends it.
#[derive(Debug)]
pub struct Queue {
    processor: BatchSpanProcessor,
    counts: Arc<Counts>,
    scope: InstrumentationScope,
}

/// What became of spans.
#[derive(Debug, Default)]
struct Counts {
    /// Taken and not sent.
    waiting: AtomicUsize,
    /// Dropped, and not told yet.
    untold: AtomicU64,
    told: Mutex<Option<Instant>>,
}

impl Queue {
    /// A queue to the collector at `url`.
    ///
    /// # Errors
    /// What of OpenTelemetry's environment variables cannot be.
    pub fn to_collector(url: &str) -> Result<Self, String> {
        let why = Why::default();
        let exporter = Otlp::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url)
            .with_timeout(TIMEOUT)
            .with_retry_policy(
                RetryPolicy::disabled()
                    .with_max_retries(1)
                    .with_initial_delay(RETRY_AFTER)
                    .with_max_delay(RETRY_AFTER),
            )
            .with_http_client(Poster::new(why.clone()))
            .build();
        Ok(Self::over(exporter.map_err(|error| error.to_string())?, why, SEND_EVERY))
    }

    fn over(exporter: impl SpanExporter + 'static, why: Why, every: Duration) -> Self {
        let counts = Arc::new(Counts::default());
        let exporter = Counted { exporter, counts: Arc::clone(&counts), why };
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE_SPANS_MAX)
            .with_max_export_batch_size(BATCH_SPANS_MAX)
            .with_scheduled_delay(every)
            .build();
        let mut processor = BatchSpanProcessor::new(exporter, config);
        processor.set_resource(&resource());
        let scope = InstrumentationScope::builder("docket");
        let scope = scope.with_version(env!("CARGO_PKG_VERSION")).build();
        Self { processor, counts, scope }
    }

    /// Takes the spans of a request, the first its own, or drops them all.
    pub(super) fn send(&self, traced: &Traced, spans: Vec<Span>, arrived: SystemTime, ids: &Ids) {
        let count = spans.len();
        if !self.counts.take(count) {
            self.counts.lose(count, || "too many wait to be sent".to_owned());
            return;
        }
        let own: Vec<SpanId> =
            (0..count).map(|index| if index == 0 { traced.span } else { ids.span() }).collect();
        let (parent, state) = match &traced.parent {
            Some((span, state)) => (Some(*span), state.parse().unwrap_or_default()),
            None => (None, TraceState::NONE),
        };
        for (span, id) in spans.into_iter().zip(&own) {
            let is_first = span.parent.is_none();
            let parent = span.parent.map_or(parent, |index| own.get(index).copied());
            let context = SpanContext::new(
                opentelemetry::TraceId::from_bytes(traced.trace.0),
                opentelemetry::SpanId::from_bytes(id.0),
                TraceFlags::SAMPLED,
                false,
                state.clone(),
            );
            let parent = parent.map_or(opentelemetry::SpanId::INVALID, |parent| {
                opentelemetry::SpanId::from_bytes(parent.0)
            });
            self.processor.on_end(SpanData {
                span_context: context,
                parent_span_id: parent,
                parent_span_is_remote: is_first && traced.parent.is_some(),
                span_kind: if is_first { SpanKind::Server } else { SpanKind::Internal },
                name: Cow::Borrowed(span.name),
                start_time: arrived + span.from,
                end_time: arrived + span.until,
                attributes: span.attributes.into_iter().map(key_value).collect(),
                dropped_attributes_count: 0,
                events: SpanEvents::default(),
                links: SpanLinks::default(),
                status: if span.failed { Status::error("") } else { Status::Unset },
                instrumentation_scope: self.scope.clone(),
            });
        }
    }

    /// Sends what waits, within this time, and ends the thread.
    pub(super) fn stop(&self, limit: Duration) {
        let stopped = self.processor.shutdown_with_timeout(limit);
        let waiting = self.counts.waiting.load(Ordering::Relaxed);
        if stopped.is_err() || waiting > 0 {
            telemetry::spans_dropped(waiting as u64);
            tracing::warn!(spans = waiting, "stopped before all traces were sent");
        }
    }
}

impl Counts {
    /// Makes room for so many spans, if there is any.
    fn take(&self, count: usize) -> bool {
        let fits = |waiting: usize| Some(waiting + count).filter(|sum| *sum <= QUEUE_SPANS_MAX);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Counts spans as lost; the log has a line of it now and then.
    fn lose(&self, count: usize, why: impl FnOnce() -> String) {
        telemetry::spans_dropped(count as u64);
        self.untold.fetch_add(count as u64, Ordering::Relaxed);
        let Ok(mut told) = self.told.try_lock() else { return };
        if told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return;
        }
        *told = Some(Instant::now());
        let spans = self.untold.swap(0, Ordering::Relaxed);
        tracing::warn!(spans, why = why(), "traces are lost, requests are not affected");
    }
}

/// An exporter whose batches are counted.
#[derive(Debug)]
struct Counted<E> {
    exporter: E,
    counts: Arc<Counts>,
    why: Why,
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        let exported = self.exporter.export(batch).await;
        self.counts.waiting.fetch_sub(count, Ordering::Relaxed);
        match &exported {
            Ok(()) => telemetry::spans_sent(count as u64),
            Err(error) => {
                let why = || format!("{error}: {}", self.why.text());
                self.counts.lose(count, why);
            }
        }
        exported
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Who sends: docket, unless `OTEL_RESOURCE_ATTRIBUTES` says otherwise, and what that says besides.
fn resource() -> Resource {
    Resource::builder_empty()
        .with_service_name("docket")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_detector(Box::new(EnvResourceDetector::new()))
        .build()
}

fn key_value((name, value): (&'static str, Attribute)) -> KeyValue {
    let value = match value {
        Attribute::Text(text) => Value::from(text),
        Attribute::Count(count) => Value::I64(i64::try_from(count).unwrap_or(i64::MAX)),
        Attribute::Millis(ms) => Value::F64(ms),
        Attribute::Flag(flag) => Value::Bool(flag),
    };
    KeyValue::new(name, value)
}

#[cfg(test)]
mod tests;
