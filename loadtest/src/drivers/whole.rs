//! Drivers whose decision is one HTTP request: System One, its dialects, and `OpenAI`'s decisions.

use std::io::Write as _;
use std::rc::Rc;

use anyhow::Context as _;
use bytes::Bytes;
use hyper::Uri;

use super::answers::{self, Named};
use super::settings::{Driver, FanOut, Settings};
use super::{Calls, End, escaped, excerpt};
use crate::client::http::Response;
use crate::exchange::Reply;
use crate::workload::decision::{Decision, Kind, Question};
use crate::workload::{Request, Route};

/// `OpenAI`'s form must name a model; docket takes any name.
const MODEL_DEFAULT: &str = "default";

/// The form of one such server.
#[derive(Debug)]
pub(crate) struct Whole {
    driver: Driver,
    decide: Uri,
    prewarm: Uri,
    /// The model as the last member of a body; empty where none is named.
    model: String,
}

impl Whole {
    /// The form that the command line asks for.
    ///
    /// # Errors
    /// When its path is none.
    pub(super) fn new(settings: &Settings) -> anyhow::Result<Self> {
        let path = settings.path.as_deref().unwrap_or(settings.driver.path());
        let needs_model = settings.driver == Driver::Openai;
        let model = settings.model.as_deref().or(needs_model.then_some(MODEL_DEFAULT));
        Ok(Self {
            driver: settings.driver,
            decide: path.parse().with_context(|| format!("--path {path}"))?,
            prewarm: sibling(path, "prewarm")?,
            model: model
                .map_or(String::new(), |model| format!(",\"model\":\"{}\"", escaped(model))),
        })
    }

    pub(super) fn calls(&self, request: &Request) -> Calls {
        let (uri, body) = match (request.route, self.driver) {
            (Route::Prewarm, _) => (&self.prewarm, prewarm(&request.decision)),
            (Route::Decide, Driver::Openai) => {
                (&self.decide, openai(&request.decision, &self.model))
            }
            (Route::Decide, _) => {
                let body = decide(&request.decision, self.takes_samples(), &self.model);
                (&self.decide, body)
            }
        };
        let headers = Rc::clone(&request.headers);
        Calls { uri: uri.clone(), headers, bodies: vec![body], fan_out: FanOut::FirstAlone }
    }

    /// Others refuse the field, or have none of the kind.
    fn takes_samples(&self) -> bool {
        matches!(self.driver, Driver::Systemone | Driver::Decisio | Driver::Gmlx)
    }

    pub(super) fn read(&self, request: &Request, responses: &[Response], wants: bool) -> End {
        let Some(response) = responses.first() else { return End::default() };
        let reply = Reply::of(response.status, &response.headers);
        if request.route == Route::Prewarm {
            return End { complete: true, reply, ..End::default() };
        }
        let Some(read) = answers::read(&response.body, &request.decision.questions, wants) else {
            let fault = Some(format!("200 OK: {}", excerpt(&response.body)));
            return End { reply, fault, ..End::default() };
        };
        // Elsewhere the state is counted with every question.
        let counts_once =
            matches!(self.driver, Driver::Systemone | Driver::Decisio | Driver::SelfServe);
        let input_tokens = read.input_tokens.filter(|_| counts_once);
        let reply = Reply { input_tokens, ..reply };
        End { complete: true, reply, answers: read.distributions, fault: None }
    }

    /// Why a question cannot be asked.
    pub(super) fn fault(&self, question: &Question) -> Option<String> {
        let is_foreign = self.driver == Driver::Openai && question.kind == Kind::Other;
        is_foreign.then(|| {
            format!(
                "--driver {} asks nouls, choices and scores, not {}",
                self.driver.as_str(),
                excerpt(question.json.as_bytes())
            )
        })
    }
}

/// The path beside `path` whose last part is `name`.
pub(super) fn sibling(path: &str, name: &str) -> anyhow::Result<Uri> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{folder}/{name}").parse().with_context(|| format!("--path {path}"))
}

/// A decision as System One and its dialects have it. Its pieces are JSON already and only joined.
fn decide(decision: &Decision, takes_samples: bool, model: &str) -> Bytes {
    let asked = &decision.questions;
    let text = decision.state.text().len();
    let mut body = Vec::with_capacity(text + 64 + model.len() + asked.len() * 160);
    body.extend_from_slice(b"{\"state\":");
    decision.state.push_json(&mut body);
    if let Some(given) = &decision.given {
        body.extend_from_slice(b",\"questions\":");
        body.extend_from_slice(given.questions.as_bytes());
        body.extend_from_slice(given.rest.as_bytes());
        if !given.has_model {
            body.extend_from_slice(model.as_bytes());
        }
        body.push(b'}');
        return body.into();
    }
    body.extend_from_slice(b",\"questions\":{");
    for (index, question) in asked.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // A vector takes whatever is written to it.
        let _ = write!(body, "{comma}\"{}\":", Named(question, index));
        body.extend_from_slice(question.json.as_bytes());
    }
    body.push(b'}');
    if let Some(samples) = decision.samples.as_ref().filter(|_| takes_samples) {
        body.extend_from_slice(b",\"samples\":");
        body.extend_from_slice(samples.as_bytes());
    }
    body.extend_from_slice(model.as_bytes());
    body.push(b'}');
    body.into()
}

/// A prewarm as docket has it in every dialect: the state alone.
fn prewarm(decision: &Decision) -> Bytes {
    let mut body = b"{\"state\":".to_vec();
    decision.state.push_json(&mut body);
    body.push(b'}');
    body.into()
}

/// A decision in `OpenAI`'s form.
fn openai(decision: &Decision, model: &str) -> Bytes {
    let asked = decision.questions.iter().map(|question| openai_question(question));
    let asked: Vec<String> = asked.collect();
    let input = escaped(decision.state.text());
    format!("{{\"input\":\"{input}\",\"questions\":[{}]{model}}}", asked.join(",")).into()
}

fn openai_question(question: &Question) -> String {
    let instructions = escaped(&question.instructions);
    let list = |name: &str| {
        let options = question.options.iter().map(|option| {
            let described = option.description.as_deref().map(escaped);
            let described = described.map(|text| format!(",\"description\":\"{text}\""));
            format!("{{\"{name}\":\"{}\"{}}}", escaped(&option.name), described.unwrap_or_default())
        });
        options.collect::<Vec<_>>().join(",")
    };
    match question.kind {
        Kind::Choice => format!(
            "{{\"type\":\"choice\",\"instructions\":\"{instructions}\",\"choices\":[{}]}}",
            list("value")
        ),
        Kind::Score => format!(
            "{{\"type\":\"score\",\"instructions\":\"{instructions}\",\"levels\":[{}]}}",
            list("label")
        ),
        // The others are refused before a run.
        Kind::Noul | Kind::Other => {
            format!("{{\"type\":\"predicate\",\"instructions\":\"{instructions}\"}}")
        }
    }
}

#[cfg(test)]
impl Request {
    /// The body that System One gets.
    pub(crate) fn body(&self) -> Bytes {
        match self.route {
            Route::Decide => decide(&self.decision, true, ""),
            Route::Prewarm => prewarm(&self.decision),
        }
    }
}
