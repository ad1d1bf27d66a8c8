//! Traces of requests: spans made of times that are measured anyway, once a request has ended, and sent
//! to a collector by OTLP.
//!
//! Nothing is begun, entered or passed on while a request runs: a server without a collector pays
//! nothing, and the actors know nothing of it. `parent` and `ids` say what a request is part of and
//! whether it is traced, `spans` lays out its times, `export` and `post` hand them over; only these two
//! know the OpenTelemetry SDK.

pub mod export;
pub mod ids;
pub mod parent;
mod post;
pub mod spans;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use export::Queue;
use ids::{Ids, Sampler, SpanId, TraceId};
use parent::Parent;
use spans::Span;

/// Longest time in which what waits is still sent when the server stops.
pub const FLUSH_MAX: Duration = Duration::from_secs(2);

/// Makes traces of requests and sends them to a collector.
#[derive(Debug, Clone)]
pub struct Traces(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ids: Ids,
    sampler: Sampler,
    queue: Queue,
}

/// A request that is traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// Its trace: its caller's where it has one.
    pub trace: TraceId,
    /// Its own span.
    pub span: SpanId,
    /// The caller's span, with what `tracestate` said.
    pub parent: Option<(SpanId, String)>,
}

impl Traces {
    /// Begins to send traces to the collector at `url`, which has its whole path.
    ///
    /// * `sample`: share of the requests without a caller's decision that are traced, 0 to 1.
    ///
    /// # Errors
    /// What of OpenTelemetry's environment variables cannot be.
    pub fn start(url: &str, sample: f64) -> Result<Self, String> {
        let queue = Queue::to_collector(url)?;
        Ok(Self(Arc::new(Inner { ids: Ids::default(), sampler: Sampler::new(sample), queue })))
    }

    /// Whether a request is traced, and as part of what: its caller decides where it says so.
    ///
    /// * `parent`: the caller's span, where the request names one.
    /// * `state`: what `tracestate` said.
    /// * `is_begun_here`: whether a request without a caller's span may be traced at all.
    pub fn begin(
        &self,
        parent: Option<Parent>,
        state: impl FnOnce() -> String,
        is_begun_here: bool,
    ) -> Option<Traced> {
        let Inner { ids, sampler, .. } = &*self.0;
        match parent {
            Some(parent) => parent.sampled.then(|| Traced {
                trace: parent.trace,
                span: ids.span(),
                parent: Some((parent.span, state())),
            }),
            None if is_begun_here => {
                let trace = ids.trace();
                sampler.takes(trace).then(|| Traced { trace, span: ids.span(), parent: None })
            }
            None => None,
        }
    }

    /// Sends the spans of a request, of which the first is its own; drops all of them where too many
    /// wait.
    ///
    /// * `arrived`: when the request's first byte was read.
    pub fn end(&self, traced: &Traced, spans: Vec<Span>, arrived: SystemTime) {
        self.0.queue.send(traced, spans, arrived, &self.0.ids);
    }

    /// Sends what waits, for at most [`FLUSH_MAX`]; blocks the thread meanwhile.
    pub fn stop(&self) {
        self.0.queue.stop(FLUSH_MAX);
    }
}
