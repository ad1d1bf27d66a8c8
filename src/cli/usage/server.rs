//! A running server, asked for the usage of its tenants.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use ureq::Agent;

use crate::cli::ask::{AskError, tls};
use crate::cli::causes::{exchange, json};
use crate::usage::Wanted;

/// Most bytes of an answer: all tenants and sub-tenants there can be, and some room.
const RESPONSE_BYTES_MAX: u64 = 64 << 20;

/// Longest time for the answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Longest text of a refusal that is repeated, in characters.
const MESSAGE_CHARS_MAX: usize = 300;

/// Why a server said nothing of use.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address does not say how it is spoken to.
    #[error("--url {0}: http:// or https:// is missing")]
    Url(String),
    /// The certificates cannot be read.
    #[error(transparent)]
    Certificates(AskError),
    /// The exchange failed.
    #[error("{url}: {why}")]
    Exchange {
        /// The server's address.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// It wants a key.
    #[error("{0} wants the API key of an operator: --key, or DOCKET_KEY")]
    Key(String),
    /// It refused otherwise.
    #[error("{url} refused ({status}): {message}")]
    Refused {
        /// The server's address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says.
        message: String,
    },
}

/// Who asks, and whom it trusts.
#[derive(Clone, Copy, Default)]
pub(super) struct Caller<'a> {
    /// Its key.
    pub(super) key: Option<&'a str>,
    /// A file of certificates, one of which has to vouch for a server of https.
    pub(super) ca: Option<&'a Path>,
}

/// Asks `GET /v1/usage`.
///
/// # Errors
/// See [`ServerError`].
pub(super) fn ask(url: &str, caller: Caller<'_>, wanted: &Wanted) -> Result<Value, ServerError> {
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(ServerError::Url(url.to_owned()));
    }
    let failed = |why: String| ServerError::Exchange { url: url.to_owned(), why };
    let agent: Agent = Agent::config_builder()
        .tls_config(tls(caller.ca).map_err(ServerError::Certificates)?)
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .build()
        .into();
    let mut request =
        agent.get(format!("{}/v1/usage?{}", url.trim_end_matches('/'), wanted.query()));
    if let Some(key) = caller.key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let mut response = request.call().map_err(|error| failed(exchange(&error)))?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(RESPONSE_BYTES_MAX).read_to_string();
    let body = body.map_err(|error| failed(exchange(&error)))?;
    match status {
        200 => serde_json::from_str(&body).map_err(|error| failed(json(&error))),
        401 | 403 => Err(ServerError::Key(url.to_owned())),
        _ => Err(ServerError::Refused { url: url.to_owned(), status, message: message(&body) }),
    }
}

/// What a refusal says, on one line and without what a terminal would act upon.
fn message(body: &str) -> String {
    let parsed: Value = serde_json::from_str(body).unwrap_or_default();
    let message = parsed["detail"]["message"].as_str().unwrap_or(body.trim());
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    message.chars().take(MESSAGE_CHARS_MAX).map(shown).collect()
}
