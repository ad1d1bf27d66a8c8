//! How spans get to a collector: an HTTP request at a time, by the client that docket has anyway.
//!
//! OpenTelemetry's exporter brings clients of its own, each with a runtime or a second HTTP stack.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ureq::Agent;

/// Longest time of one request to the collector, all of it.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// Most bytes of a collector's answer that are read; it has a few.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Why the last request failed, for the log.
#[derive(Debug, Clone, Default)]
pub(super) struct Why(Arc<Mutex<String>>);

impl Why {
    pub(super) fn set(&self, why: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub(super) fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The client. Its futures block, for at most [`TIMEOUT`]: the exporter has a thread of its own.
#[derive(Debug)]
pub(super) struct Poster {
    agent: Agent,
    why: Why,
}

impl Poster {
    pub(super) fn new(why: Why) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(1)
            .build();
        Self { agent: config.into(), why }
    }

    fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (parts, body) = request.into_parts();
        let response = self.agent.run(Request::from_parts(parts, &body[..]))?;
        let (parts, mut body) = response.into_parts();
        let answer = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok(Response::from_parts(parts, answer.into()))
    }
}

impl HttpClient for Poster {
    fn send_bytes<'client, 'sent>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sent>>
    where
        'client: 'sent,
        Self: 'sent,
    {
        Box::pin(async move {
            let answered = self.post(request);
            match &answered {
                Err(error) => self.why.set(error.to_string()),
                Ok(answer) if !answer.status().is_success() => {
                    self.why.set(format!("it answers {}", answer.status().as_u16()));
                }
                Ok(_) => {}
            }
            Ok(answered?)
        })
    }
}
