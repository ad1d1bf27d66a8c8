//! The drivers: how one decision is put to a server, and what its answers mean.
//!
//! Each writes a decision out in its server's form and reads the answers back as distributions, so
//! that the same work goes to every server and what they say can be compared.
//!
//! ```text
//! Request ─▶ Form: Whole (one HTTP request, System One's dialects) ─┐
//!                  Letters (one prompt a question, log-probabilities) ┴▶ Calls ─▶ client ─▶ End
//! ```

mod answers;
mod completions;
mod letters;
mod llama_server;
mod prompt;
mod settings;
mod whole;

use std::rc::Rc;

use anyhow::bail;
use bytes::Bytes;
use hyper::{HeaderMap, Uri};

use crate::client::http::{Http, Response};
use crate::exchange::{Outcome, Reply};
use crate::workload::decision::Question;
use crate::workload::{Request, Requests};
use letters::Letters;
#[cfg(test)]
pub(crate) use settings::Driver;
pub(crate) use settings::{FanOut, Settings};
use whole::Whole;

/// Most characters of a fault that are kept.
const FAULT_CHARS_MAX: usize = 300;

/// The HTTP requests that put a request to a server: all bodies go to one place.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) uri: Uri,
    pub(crate) headers: Rc<HeaderMap>,
    pub(crate) bodies: Vec<Bytes>,
    pub(crate) fan_out: FanOut,
}

/// What came of a request that was responded to.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// Whether every question has its answer; looked at where all responses are 200.
    complete: bool,
    reply: Reply,
    answers: Option<Vec<Vec<f64>>>,
    fault: Option<String>,
}

/// How requests are written and responses read.
#[derive(Debug)]
pub(crate) enum Form {
    /// A decision is one HTTP request.
    Whole(Whole),
    /// A question is one HTTP request, whose answer is read from the likeliest next tokens.
    Letters(Letters),
}

impl Form {
    /// The form that the command line asks for. Some ask the server for its template or its model,
    /// with `headers`.
    ///
    /// # Errors
    /// When the server does not tell what the form needs.
    pub(crate) async fn of(
        settings: &Settings,
        http: &Http,
        headers: &HeaderMap,
    ) -> anyhow::Result<Self> {
        Ok(if settings.driver.asks_for_letters() {
            Self::Letters(Letters::new(settings, http, headers).await?)
        } else {
            Self::Whole(Whole::new(settings)?)
        })
    }

    /// The HTTP requests of a request.
    pub(crate) fn calls(&self, request: &Request) -> Calls {
        match self {
            Self::Whole(whole) => whole.calls(request),
            Self::Letters(letters) => letters.calls(request),
        }
    }

    /// Reads responses that came in the order of the calls; fewer where one failed. Answers are
    /// read where they are wanted.
    pub(crate) fn read(
        &self,
        request: &Request,
        responses: &[Response],
        wants_answers: bool,
    ) -> (Outcome, End) {
        if let Some(failed) = responses.iter().find(|response| response.status != 200) {
            let outcome = Outcome::of(failed.status, false);
            let fault = (outcome == Outcome::Failed)
                .then(|| format!("{}: {}", failed.status, excerpt(&failed.body)));
            let reply = Reply::of(failed.status, &failed.headers);
            return (outcome, End { reply, fault, ..End::default() });
        }
        let end = match self {
            Self::Whole(whole) => whole.read(request, responses, wants_answers),
            Self::Letters(letters) => letters.read(request, responses),
        };
        let outcome = if end.complete { Outcome::Answered } else { Outcome::Failed };
        (outcome, end)
    }

    /// Checks that all questions of a run can be asked.
    ///
    /// # Errors
    /// The first question that cannot.
    pub(crate) fn check(&self, requests: &Requests) -> anyhow::Result<()> {
        let fault = |question: &Question| match self {
            Self::Whole(whole) => whole.fault(question),
            Self::Letters(letters) => letters.fault(question),
        };
        match requests.questions().find_map(fault) {
            Some(fault) => bail!("{fault}"),
            None => Ok(()),
        }
    }
}

impl End {
    /// Its parts, for whoever counts the request's end.
    pub(crate) fn into_parts(self) -> (Reply, Option<Vec<Vec<f64>>>, Option<String>) {
        (self.reply, self.answers, self.fault)
    }
}

/// The beginning of a body, for a fault.
fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(FAULT_CHARS_MAX).collect()
}

/// A text as JSON, between the quotes: two of them side by side are that of both texts.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
