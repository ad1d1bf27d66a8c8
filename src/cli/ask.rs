//! `docket ask`: a decision from the shell, asked of a running server.
//!
//! This is a client like any other: it speaks the wire and shares no types with the server.

mod request;
mod table;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use thiserror::Error;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Timeout};

use super::causes::{count, exchange, json};
use super::named::lane;
use super::switch::switch;
use crate::config::quantity::{duration_as_typed, parse_duration};

/// Heading of the flags that make up the request; these have no environment variables.
pub(crate) const INLINE: &str = "The decision";

/// Most bytes of a response.
const RESPONSE_BYTES_MAX: u64 = 64 << 20;

/// Longest time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What to ask, and whom.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// Address of the server
    #[arg(long, env = "DOCKET_URL", default_value = "http://127.0.0.1:8000")]
    pub url: String,

    /// API key
    #[arg(long, env = "DOCKET_KEY", hide_env_values = true)]
    pub key: Option<String>,

    /// Certificates in PEM, one of which has to vouch for a server of https: in place of those that
    /// vouch in public
    #[arg(long, env = "DOCKET_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Longest time to wait for the answer
    #[arg(long, env = "DOCKET_ASK_TIMEOUT", default_value = "600s", value_parser = parse_duration)]
    pub timeout: Duration,

    /// Print the response as it came
    #[arg(long, env = "DOCKET_JSON", value_parser = switch)]
    pub json: bool,

    /// What to ask.
    #[command(flatten)]
    pub decision: DecisionArgs,
}

/// What to ask: a file, or a state and questions.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = INLINE)]
pub struct DecisionArgs {
    /// A whole request as JSON; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["state", "noul", "choice", "score", "number", "excerpt"])]
    pub file: Option<String>,

    /// What the questions are about: a text, @FILE, or - for standard input
    #[arg(long, value_name = "TEXT|@FILE|-")]
    pub state: Option<String>,

    /// A yes/no question; repeatable
    #[arg(long, value_name = "[ID=]TEXT")]
    pub noul: Vec<String>,

    /// A question with named options; repeatable, each with its own --options
    #[arg(long, value_name = "[ID=]TEXT")]
    pub choice: Vec<String>,

    /// The options of a --choice, in the same order: NAME or NAME=DESCRIPTION
    #[arg(long, value_name = "A,B,..")]
    pub options: Vec<String>,

    /// A question with ordered levels; repeatable, each with its own --levels
    #[arg(long, value_name = "[ID=]TEXT")]
    pub score: Vec<String>,

    /// The levels of a --score, lowest first
    #[arg(long, value_name = "A,B,..")]
    pub levels: Vec<String>,

    /// A question for a number that the state has; repeatable
    #[arg(long, value_name = "[ID=]TEXT")]
    pub number: Vec<String>,

    /// A question for a passage of the state; repeatable
    #[arg(long, value_name = "[ID=]TEXT")]
    pub excerpt: Vec<String>,

    /// Orders of the options that each question is read in
    #[arg(long, value_name = "COUNT", value_parser = count)]
    pub samples: Option<u32>,

    /// Lane: urgent, normal, batch or idle
    #[arg(long, value_name = "LANE", value_parser = lane(), hide_possible_values = true)]
    pub priority: Option<String>,
}

/// Why there is no decision.
#[derive(Debug, Error)]
pub enum AskError {
    /// The flags do not make up a request.
    #[error("{0}")]
    Request(String),
    /// The address does not say how it is spoken to.
    #[error("--url {url}: http:// or https:// is missing; write http://{host}")]
    Url {
        /// As typed.
        url: String,
        /// What of it may be a host.
        host: String,
    },
    /// A file could not be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Nobody answers.
    #[error("no server listens on {url} ({why}); start one with `docket serve`")]
    NoServer {
        /// The server's address.
        url: String,
        /// What the network says.
        why: String,
    },
    /// The exchange failed.
    #[error("{url}: {why}")]
    Exchange {
        /// The server's address.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// The server refused.
    #[error("the server refused ({status}):\n{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it says, one fault a line.
        message: String,
    },
    /// The answer could not be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

/// What came back.
#[derive(Debug)]
struct Reply {
    status: u16,
    body: String,
    /// The server's own times and counts, as `name=value`.
    facts: Vec<String>,
    /// Names of fields that the server ignored, as a JSON list.
    ignored: Option<String>,
}

/// Asks and prints.
///
/// # Errors
/// See [`AskError`].
pub fn run(arguments: &AskArgs, out: &mut impl Write) -> Result<(), AskError> {
    let body = request::body(&arguments.decision, io::stdin().lock())?;
    let reply = post(arguments, &body)?;
    if reply.status >= 400 {
        let message = table::refusal(&reply.body);
        return Err(AskError::Refused { status: reply.status, message });
    }
    if arguments.json {
        writeln!(out, "{}", reply.body.trim_end())?;
        return Ok(());
    }
    let response: Value = serde_json::from_str(&reply.body)
        .map_err(|error| AskError::Exchange { url: arguments.url.clone(), why: json(&error) })?;
    table::write(&response, &reply.facts, out)?;
    if let Some(ignored) = reply.ignored {
        // Beside the table, not in it: a misspelt field changes what was asked.
        let _ = writeln!(io::stderr(), "ignored, unknown to the server: {ignored}");
    }
    Ok(())
}

fn post(arguments: &AskArgs, body: &[u8]) -> Result<Reply, AskError> {
    check_url(&arguments.url)?;
    let url = format!("{}/v1/systemone", arguments.url.trim_end_matches('/'));
    let agent: Agent = Agent::config_builder()
        .tls_config(tls(arguments.ca.as_deref())?)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(arguments.timeout))
        .http_status_as_error(false)
        .build()
        .into();
    let mut request = agent.post(&url).header("content-type", "application/json");
    if let Some(key) = &arguments.key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let mut response = request.send(body).map_err(|error| failure(arguments, &error))?;
    let text = response.body_mut().with_config().limit(RESPONSE_BYTES_MAX).read_to_string();
    let fact = |name: &str| {
        let value = response.headers().get(format!("x-docket-{name}"))?.to_str().ok()?;
        Some(format!("{name}={value}"))
    };
    let facts =
        ["total-ms", "queue-ms", "state-ms", "engine-ms", "computed-tokens", "cached-tokens"];
    let facts = facts.iter().filter_map(|name| fact(name)).collect();
    let ignored = response.headers().get("x-docket-ignored");
    let ignored = ignored.and_then(|names| names.to_str().ok()).map(str::to_owned);
    let status = response.status().as_u16();
    let body = text.map_err(|error| failure(arguments, &error))?;
    Ok(Reply { status, body, facts, ignored })
}

/// TLS with servers for which one of the certificates in a file vouches; without one, with those for
/// which the public authorities do.
pub(super) fn tls(ca: Option<&Path>) -> Result<TlsConfig, AskError> {
    Ok(ca.map(vouched_by).transpose()?.unwrap_or_default())
}

fn vouched_by(path: &Path) -> Result<TlsConfig, AskError> {
    let fault = |source| AskError::File { path: path.display().to_string(), source };
    let bytes = std::fs::read(path).map_err(fault)?;
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&bytes) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(_) => return Err(fault(io::Error::other("it is no PEM that can be read"))),
        }
    }
    if found.is_empty() {
        return Err(fault(io::Error::other("it has no certificate in PEM")));
    }
    Ok(TlsConfig::builder().root_certs(RootCerts::from(found)).build())
}

/// The client would only say that the address has an invalid format.
pub(super) fn check_url(url: &str) -> Result<(), AskError> {
    if ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Ok(());
    }
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    Err(AskError::Url { url: url.to_owned(), host: host.to_owned() })
}

fn failure(arguments: &AskArgs, error: &ureq::Error) -> AskError {
    let why = if let ureq::Error::Timeout(timeout) = error {
        too_late(*timeout, arguments.timeout)
    } else {
        exchange(error)
    };
    let url = arguments.url.clone();
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    let is_refused = matches!(error, ureq::Error::Io(error) if is_refused(error))
        || matches!(error, ureq::Error::ConnectionFailed | ureq::Error::HostNotFound);
    if is_refused { AskError::NoServer { url, why } } else { AskError::Exchange { url, why } }
}

/// What did not come in time; the client would only name its own setting.
fn too_late(timeout: Timeout, limit: Duration) -> String {
    if timeout == Timeout::Connect {
        return format!("no connection within {}", duration_as_typed(CONNECT_TIMEOUT));
    }
    format!("no answer within {} (--timeout)", duration_as_typed(limit))
}

/// Reads `path`, or `input` for `-`.
fn read(path: &str, mut input: impl Read) -> Result<Vec<u8>, AskError> {
    let mut content = Vec::new();
    let outcome = if path == "-" {
        input.read_to_end(&mut content).map(|_| ())
    } else {
        std::fs::read(path).map(|found| content = found)
    };
    outcome.map_err(|source| AskError::File { path: path.to_owned(), source })?;
    Ok(content)
}

#[cfg(test)]
mod tests;
