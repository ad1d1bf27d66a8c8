//! The client: sends one request over keep-alive connections and says how it ended.

pub(crate) mod http;
mod pool;

use std::cell::Cell;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::{Instant, timeout};

use crate::drivers::{Calls, FanOut, Form, Settings};
use crate::exchange::{ANSWERS_MAX, Exchange, Outcome};
use crate::workload::{Request, Requests, Route, headers};
use http::{Http, Response};
use pool::Pool;
pub(crate) use pool::{CONNECTIONS_DEFAULT, CONNECTIONS_MAX, Target};

/// Most HTTP requests of one request that are under way at once, each on a connection of its own.
pub(crate) const PARTS_AT_ONCE: usize = 64;

/// Longest wait for what a form asks its server before a run.
const SETUP_WAIT: Duration = Duration::from_secs(30);

/// Whatever answers requests: a server, or a test's model of one.
pub(crate) trait Driver {
    /// Sends a request and waits for its end.
    async fn send(&self, request: Request) -> Exchange;
}

/// A driver of a server over HTTP, in the form that the command line asks for.
#[derive(Debug)]
pub(crate) struct Client {
    http: Http,
    form: Form,
    /// Questions whose answers are still to be read.
    answers_left: Cell<u64>,
}

impl Client {
    /// A client of the server at `target`. Some forms ask it what they need, with one of the run's
    /// keys.
    ///
    /// # Errors
    /// When the key cannot be sent, or the server does not tell what the form needs, or not within
    /// [`SETUP_WAIT`].
    pub(crate) async fn connect(
        target: Target,
        settings: &Settings,
        key: Option<&str>,
    ) -> anyhow::Result<Self> {
        let headers = headers(&target.host, key)?;
        let http = Http::new(Pool::new(target));
        let form = timeout(SETUP_WAIT, Form::of(settings, &http, &headers)).await;
        let form = form.with_context(|| {
            format!("--url: the server does not tell its template or model within {SETUP_WAIT:?}")
        })??;
        Ok(Self { http, form, answers_left: Cell::new(ANSWERS_MAX as u64) })
    }

    /// Checks that all questions of a run can be asked.
    ///
    /// # Errors
    /// The first question that cannot.
    pub(crate) fn check(&self, requests: &Requests) -> anyhow::Result<()> {
        self.form.check(requests)
    }

    /// The responses in the order of the calls. Where one fails that others wait for, these are not
    /// sent; others that are under way are waited for.
    async fn run(&self, calls: Calls, parts: &Cell<u32>) -> anyhow::Result<Vec<Response>> {
        let Calls { uri, headers, bodies, fan_out } = calls;
        let send = |body: Bytes| {
            parts.set(parts.get() + 1);
            self.http.post(&uri, &headers, body)
        };
        let mut responses = Vec::with_capacity(bodies.len());
        let mut bodies = bodies.into_iter();
        if fan_out == FanOut::FirstAlone
            && let Some(body) = bodies.next()
        {
            responses.push(send(body).await?);
            if is_failed(&responses) || bodies.len() == 0 {
                return Ok(responses);
            }
        }
        let at_once = if fan_out == FanOut::Serial { 1 } else { PARTS_AT_ONCE };
        let mut ends = stream::iter(bodies.map(send)).buffered(at_once);
        let mut fault = None;
        while let Some(end) = ends.next().await {
            match end {
                Ok(response) => responses.push(response),
                Err(error) => fault = fault.or(Some(error)),
            }
            if fan_out == FanOut::Serial && (fault.is_some() || is_failed(&responses)) {
                break;
            }
        }
        fault.map_or(Ok(responses), Err)
    }

    /// Whether a request's answers are among those that are read; counted where it is sent, so that
    /// they are those of a run's first questions.
    fn wants_answers(&self, request: &Request) -> bool {
        let left = self.answers_left.get();
        let is_wanted = request.route == Route::Decide && left > 0;
        if is_wanted {
            self.answers_left.set(left.saturating_sub(request.questions as u64));
        }
        is_wanted
    }
}

/// A fault with the request that had it: of the user's own requests it tells the line.
fn told(request: &Request, fault: &str) -> String {
    match request.route {
        Route::Decide => format!("decision {}: {fault}", request.number),
        Route::Prewarm => fault.to_owned(),
    }
}

fn is_failed(responses: &[Response]) -> bool {
    responses.last().is_some_and(|last| last.status != 200)
}

impl Driver for Client {
    /// A connection whose request is given up is closed: dropping the wait drops it.
    async fn send(&self, request: Request) -> Exchange {
        // Written before the clock starts: what that takes is the generator's time, not the
        // server's.
        let calls = self.form.calls(&request);
        let wants_answers = self.wants_answers(&request);
        let (patience, impatient) = match request.leaves_after {
            Some(after) if after < request.patience => (after, Outcome::Disconnected),
            _ => (request.patience, Outcome::TimedOut),
        };
        let parts = Cell::new(0);
        let sent = Instant::now();
        let end = timeout(patience, self.run(calls, &parts)).await;
        let ended = Instant::now();
        let parts = parts.get();
        let bare = |outcome| Exchange { parts, ..Exchange::bare(outcome, sent, ended) };
        match end {
            Ok(Ok(responses)) => {
                let (outcome, end) = self.form.read(&request, &responses, wants_answers);
                let (reply, answers, fault) = end.into_parts();
                let fault = fault.map(|fault| told(&request, &fault));
                Exchange { reply: Some(reply), answers, fault, ..bare(outcome) }
            }
            Ok(Err(error)) => {
                let (fault, denied) = (Some(format!("{error:#}")), self.http.denied(&error));
                Exchange { fault, denied, ..bare(Outcome::ConnectionError) }
            }
            Err(_) => bare(impatient),
        }
    }
}

#[cfg(test)]
mod tests;
