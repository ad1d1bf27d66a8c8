//! Drivers that ask a language model for a letter: a prompt a question, whose answer is read from
//! the log-probabilities of the likeliest next tokens.

use std::rc::Rc;

use anyhow::Context as _;
use bytes::Bytes;
use hyper::{HeaderMap, Uri};

use super::prompt::{LETTERS, Template, option_of};
use super::settings::{Driver, FanOut, Settings, TemplateName};
use super::whole::sibling;
use super::{Calls, End, completions, excerpt, llama_server};
use crate::client::http::{Http, Response};
use crate::exchange::{Reply, Stages, ms_as_us};
use crate::workload::decision::{Kind, Question};
use crate::workload::{PRIORITY, Request, Route, TIMEOUT};

/// The form of one such server.
#[derive(Debug)]
pub(crate) struct Letters {
    driver: Driver,
    uri: Uri,
    template: Template,
    fan_out: FanOut,
    /// Members of a body beside the prompt: of a question, and of a prewarm.
    ask: String,
    warm: String,
}

/// What one response says.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The likeliest tokens and the logarithms of their probabilities.
    pub(super) tokens: Vec<(String, f64)>,
    pub(super) computed_tokens: u64,
    pub(super) cached_tokens: u64,
    /// How long the model worked on it, where that is told.
    pub(super) engine_ms: Option<f64>,
}

/// The options' probabilities among each other.
#[derive(Debug, PartialEq)]
struct Read {
    shares: Vec<f64>,
    /// Probability of all options together.
    mass: f64,
    /// Options that were not among the likeliest tokens.
    unseen: u64,
}

impl Letters {
    /// The form that the command line asks for; the server is asked for its template or its model.
    ///
    /// # Errors
    /// When its path is none, or it needs a model's name and the server lists none.
    pub(super) async fn new(
        settings: &Settings,
        http: &Http,
        headers: &HeaderMap,
    ) -> anyhow::Result<Self> {
        let path = settings.path.as_deref().unwrap_or(settings.driver.path());
        let mut template = Template::named(settings.template);
        let (ask, warm) = if settings.driver == Driver::LlamaServer {
            if settings.template == TemplateName::Auto {
                let own = sibling(path, "apply-template")?;
                let own = llama_server::template(http, &own, headers).await?;
                template = own.unwrap_or(template);
            }
            llama_server::members(settings)
        } else {
            let model = match &settings.model {
                Some(model) => model.clone(),
                None => completions::model(http, &sibling(path, "models")?, headers).await?,
            };
            (completions::members(settings, &model), String::new())
        };
        let uri = path.parse().with_context(|| format!("--path {path}"))?;
        let (driver, fan_out) = (settings.driver, settings.fan_out);
        Ok(Self { driver, uri, template, fan_out, ask, warm })
    }

    pub(super) fn calls(&self, request: &Request) -> Calls {
        let decision = &request.decision;
        let state = self.template.state(decision);
        let body = |question: &str, members: &str| {
            Bytes::from(format!("{{\"prompt\":\"{state}{question}\"{members}}}"))
        };
        let asked = decision.questions.iter();
        let bodies = match request.route {
            Route::Prewarm if !self.driver.prewarms() => Vec::new(),
            Route::Prewarm => vec![body("", &self.warm)],
            Route::Decide => {
                asked.map(|asked| body(&self.template.question(asked), &self.ask)).collect()
            }
        };
        // Lanes and deadlines are docket's.
        let mut headers = HeaderMap::clone(&request.headers);
        headers.remove(PRIORITY);
        headers.remove(TIMEOUT);
        let (uri, headers, fan_out) = (self.uri.clone(), Rc::new(headers), self.fan_out);
        Calls { uri, headers, bodies, fan_out }
    }

    pub(super) fn read(&self, request: &Request, responses: &[Response]) -> End {
        let is_prewarm = request.route == Route::Prewarm;
        let part = |response: &Response| {
            if self.driver == Driver::LlamaServer {
                llama_server::read(&response.body, !is_prewarm)
            } else {
                completions::read(&response.body)
            }
        };
        let parts = match responses.iter().map(part).collect::<Result<Vec<Part>, String>>() {
            Ok(parts) => parts,
            Err(fault) => return End { fault: Some(fault), ..End::default() },
        };
        let mut reply = Reply {
            status: 200,
            computed_tokens: parts.iter().map(|part| part.computed_tokens).sum(),
            cached_tokens: parts.iter().map(|part| part.cached_tokens).sum(),
            stages: self.stages(&parts),
            ..Reply::default()
        };
        if is_prewarm {
            return End { complete: true, reply, ..End::default() };
        }
        let asked = &request.decision.questions;
        let reads = asked.iter().zip(&parts);
        let reads: Vec<Read> =
            reads.map(|(asked, part)| read(&part.tokens, asked.options.len())).collect();
        reply.options_unseen = reads.iter().map(|read| read.unseen).sum();
        let mass: f64 = reads.iter().map(|read| read.mass).sum();
        reply.label_mass = (!reads.is_empty()).then(|| mass / reads.len() as f64);
        let complete = reads.len() == asked.len();
        let shares = asked.iter().zip(reads).map(|(asked, Read { mut shares, .. })| {
            // A noul is its yes, which is the first option.
            shares.truncate(if asked.kind == Kind::Noul { 1 } else { shares.len() });
            shares
        });
        End { complete, reply, answers: Some(shares.collect()), fault: None }
    }

    /// The model's work on the parts that had to wait for each other. All else is unknown here, and
    /// so the rest of the client's time is unexplained.
    fn stages(&self, parts: &[Part]) -> Option<Stages> {
        let times: Option<Vec<f64>> = parts.iter().map(|part| part.engine_ms).collect();
        let times = times.filter(|times| !times.is_empty())?;
        let longest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        let ms = match self.fan_out {
            FanOut::Serial => times.iter().sum(),
            FanOut::Parallel => longest(&times),
            FanOut::FirstAlone => times[0] + longest(&times[1..]),
        };
        let engine_us = ms_as_us(ms);
        Some(Stages { engine_us: Some(engine_us), total_us: engine_us, ..Stages::default() })
    }

    /// Why a question cannot be asked.
    pub(super) fn fault(&self, question: &Question) -> Option<String> {
        let (driver, count) = (self.driver.as_str(), question.options.len());
        if question.kind == Kind::Other {
            let json = excerpt(question.json.as_bytes());
            return Some(format!("--driver {driver} asks nouls, choices and scores, not {json}"));
        }
        let most = LETTERS.len();
        (count > most).then(|| {
            format!("--driver {driver} asks for a letter, at most {most} options, not {count}")
        })
    }
}

/// Reads the options' probabilities from the likeliest tokens. What is not among them is at most as
/// probable as the last of these, and counts as that.
fn read(tokens: &[(String, f64)], options: usize) -> Read {
    let mut masses = vec![0.0; options];
    let mut seen = vec![false; options];
    // No probability is over 1, whatever a server says.
    let probability = |logarithm: f64| logarithm.min(0.0).exp();
    for (token, logarithm) in tokens {
        if let Some(option) = option_of(token).filter(|option| *option < options) {
            masses[option] += probability(*logarithm);
            seen[option] = true;
        }
    }
    let mass = masses.iter().sum();
    let last =
        tokens.iter().map(|(_, logarithm)| probability(*logarithm)).fold(f64::INFINITY, f64::min);
    let bound = if last.is_finite() { last } else { 0.0 };
    let bounded = masses.iter().zip(&seen).map(|(mass, seen)| if *seen { *mass } else { bound });
    let bounded: Vec<f64> = bounded.collect();
    let sum: f64 = bounded.iter().sum();
    let share = |mass: &f64| if sum > 0.0 { mass / sum } else { 1.0 / options as f64 };
    let unseen = seen.iter().filter(|seen| !**seen).count() as u64;
    Read { shares: bounded.iter().map(share).collect(), mass, unseen }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(tokens: &[(&str, f64)]) -> Vec<(String, f64)> {
        tokens.iter().map(|(token, p)| ((*token).to_owned(), p.ln())).collect()
    }

    fn assert_near(read: &Read, shares: &[f64], mass: f64, unseen: u64) {
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(read.shares.iter().zip(shares).all(is_near), "{read:?}");
        assert_eq!((read.shares.len(), read.unseen), (shares.len(), unseen));
        assert!((read.mass - mass).abs() < 1e-12, "{read:?}");
    }

    #[test]
    fn the_forms_of_a_letter_add_up_and_are_shared_among_the_options() {
        let tokens = tokens(&[("A", 0.4), ("The", 0.2), (" B", 0.1), (" A", 0.2), ("C", 0.05)]);
        // C is no option of two.
        assert_near(&read(&tokens, 2), &[6.0 / 7.0, 1.0 / 7.0], 0.7, 0);
        assert_near(&read(&tokens, 3), &[0.8, 2.0 / 15.0, 1.0 / 15.0], 0.75, 0);
    }

    #[test]
    fn an_unseen_option_counts_as_the_last_that_was_seen() {
        let tokens = tokens(&[("B", 0.6), ("x", 0.3), ("y", 0.1)]);
        assert_near(&read(&tokens, 3), &[0.125, 0.75, 0.125], 0.6, 2);
        assert_near(&read(&[], 2), &[0.5, 0.5], 0.0, 2);
        // As servers write a probability of nothing.
        let nothing = vec![("A".to_owned(), -3.4e38), ("B".to_owned(), -3.4e38)];
        assert_near(&read(&nothing, 2), &[0.5, 0.5], 0.0, 0);
        let absurd = vec![("A".to_owned(), 1e9), ("B".to_owned(), 0.0)];
        assert_near(&read(&absurd, 2), &[0.5, 0.5], 2.0, 0);
    }
}
