//! The clients: a closed loop over one keep-alive connection each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::cli::Options;

/// What one run gave.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Requests sent.
    pub(crate) sent: u32,
    /// Requests without a 200 in time.
    pub(crate) failed: u32,
    /// First failure, in words.
    pub(crate) first_failure: Option<String>,
    /// From sending to the last byte, microseconds.
    pub(crate) total_us: Vec<u64>,
    /// As the server says, microseconds.
    pub(crate) queue_us: Vec<u64>,
    /// As the server says, microseconds.
    pub(crate) state_us: Vec<u64>,
    /// As the server says, microseconds.
    pub(crate) engine_us: Vec<u64>,
    /// Tokens computed and found cached, as the server says.
    pub(crate) computed_tokens: u64,
    /// See `computed_tokens`.
    pub(crate) cached_tokens: u64,
    /// Length of the run.
    pub(crate) elapsed: Duration,
}

type Connection = Client<HttpConnector, Full<Bytes>>;

/// Runs all clients to the end.
///
/// # Errors
/// When the server's address cannot be used at all.
pub(crate) async fn run(options: &Options) -> anyhow::Result<Outcome> {
    let url: hyper::Uri = format!("{}/v1/systemone", options.url.trim_end_matches('/'))
        .parse()
        .with_context(|| format!("--url {:?} is not a URL", options.url))?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Connection = Client::builder(TokioExecutor::new()).build(connector);
    let next = Arc::new(AtomicU32::new(0));
    let started = Instant::now();
    let workers: Vec<_> = (0..options.clients)
        .map(|_| {
            tokio::spawn(work(client.clone(), url.clone(), Arc::clone(&next), options.clone()))
        })
        .collect();
    let mut outcome = Outcome::default();
    for worker in workers {
        merge(&mut outcome, worker.await?);
    }
    outcome.elapsed = started.elapsed();
    Ok(outcome)
}

async fn work(client: Connection, url: hyper::Uri, next: Arc<AtomicU32>, o: Options) -> Outcome {
    let mut outcome = Outcome::default();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= o.requests {
            return outcome;
        }
        outcome.sent += 1;
        let sent = Instant::now();
        let limit = Duration::from_secs(o.timeout_s);
        match tokio::time::timeout(limit, one(&client, &url, body(number, &o))).await {
            Ok(Ok(headers)) => record(&mut outcome, &headers, sent.elapsed()),
            Ok(Err(error)) => fail(&mut outcome, format!("{error:#}")),
            Err(_) => fail(&mut outcome, format!("no answer within {limit:?}")),
        }
    }
}

async fn one(client: &Connection, url: &hyper::Uri, body: String) -> anyhow::Result<HeaderMap> {
    let request = Request::post(url.clone())
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let response = client.request(request).await?;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    anyhow::ensure!(parts.status == StatusCode::OK, "{}: {text}", parts.status);
    let answer: serde_json::Value = serde_json::from_slice(&bytes)?;
    anyhow::ensure!(answer["answers"].is_object(), "no answers in {text}");
    Ok(parts.headers)
}

/// Request number `number`: a state shared with every `states`-th request, questions of three kinds.
fn body(number: u32, options: &Options) -> String {
    const WORDS: [&str; 12] = [
        "parcel", "late", "invoice", "charged", "twice", "please", "refund", "order", "account",
        "login", "broken", "today",
    ];
    let state = number % options.states;
    let text: Vec<&str> = (0..options.state_words)
        .map(|i| WORDS[((i * 7 + state * 5 + i * state) % 12) as usize])
        .collect();
    let questions: serde_json::Map<String, serde_json::Value> =
        (0..options.questions).map(|i| (format!("q{i}"), question(number, i))).collect();
    serde_json::json!({ "state": format!("Ticket {state}: {}", text.join(" ")), "questions": questions })
        .to_string()
}

fn question(number: u32, index: u32) -> serde_json::Value {
    match (number + index) % 3 {
        0 => {
            serde_json::json!({ "type": "noul", "instructions": "Does the customer want money back?" })
        }
        1 => serde_json::json!({ "type": "choice", "instructions": "Which team?",
            "criteria": { "billing": "payments", "shipping": "parcels", "access": "login" } }),
        _ => serde_json::json!({ "type": "score", "instructions": "How urgent?",
            "criteria": ["low", "medium", "high"] }),
    }
}

fn record(outcome: &mut Outcome, headers: &HeaderMap, total: Duration) {
    let number = |name: &str| -> f64 {
        headers.get(name).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok()).unwrap_or(0.0)
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small and positive"
    )]
    let whole = |value: f64| value.max(0.0) as u64;
    outcome.total_us.push(u64::try_from(total.as_micros()).unwrap_or(u64::MAX));
    outcome.queue_us.push(whole(number("x-docket-queue-ms") * 1e3));
    outcome.state_us.push(whole(number("x-docket-state-ms") * 1e3));
    outcome.engine_us.push(whole(number("x-docket-engine-ms") * 1e3));
    outcome.computed_tokens += whole(number("x-docket-computed-tokens"));
    outcome.cached_tokens += whole(number("x-docket-cached-tokens"));
}

fn fail(outcome: &mut Outcome, why: String) {
    outcome.failed += 1;
    outcome.first_failure.get_or_insert(why);
}

fn merge(into: &mut Outcome, from: Outcome) {
    into.sent += from.sent;
    into.failed += from.failed;
    into.first_failure = into.first_failure.take().or(from.first_failure);
    into.total_us.extend(from.total_us);
    into.queue_us.extend(from.queue_us);
    into.state_us.extend(from.state_us);
    into.engine_us.extend(from.engine_us);
    into.computed_tokens += from.computed_tokens;
    into.cached_tokens += from.cached_tokens;
}
