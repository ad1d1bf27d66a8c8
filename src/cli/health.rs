//! `docket health`: whether a running server takes decisions, as an exit code.
//!
//! For health checks of containers and scripts on images that have no HTTP client.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use thiserror::Error;
use ureq::Agent;

use super::ask::{AskError, check_url, tls};
use super::causes::exchange;
use crate::config::quantity::{duration_as_typed, parse_duration};

/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Which server, and how long to wait.
#[derive(Debug, Args)]
pub struct HealthArgs {
    /// Address of the server
    #[arg(long, env = "DOCKET_URL", default_value = "http://127.0.0.1:8000")]
    pub url: String,

    /// Certificates in PEM, one of which has to vouch for a server of https: in place of those that
    /// vouch in public
    #[arg(long, env = "DOCKET_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Longest time to wait for the answer
    #[arg(long, env = "DOCKET_HEALTH_TIMEOUT", default_value = "5s", value_parser = parse_duration)]
    pub timeout: Duration,
}

/// Why the server should not be asked.
#[derive(Debug, Error)]
pub enum HealthError {
    /// The address does not say how it is spoken to, or the certificates cannot be read.
    #[error(transparent)]
    Url(#[from] AskError),
    /// It says so itself.
    #[error("not ready: {0}")]
    Unready(String),
    /// There is no answer.
    #[error("{url}: {why}")]
    Exchange {
        /// The server's address.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// The answer could not be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

/// Says `ready` if the server takes decisions now.
///
/// # Errors
/// [`HealthError`] with the reason if it does not, cannot be reached or does not answer in time.
pub fn run(arguments: &HealthArgs, out: &mut impl Write) -> Result<(), HealthError> {
    check_url(&arguments.url)?;
    let address = format!("{}/health?ready=1", arguments.url.trim_end_matches('/'));
    let agent: Agent = Agent::config_builder()
        .tls_config(tls(arguments.ca.as_deref())?)
        .timeout_global(Some(arguments.timeout))
        .http_status_as_error(false)
        // What a proxy can reach says nothing about who asks here.
        .proxy(None)
        .build()
        .into();
    let failed = |error: ureq::Error| HealthError::Exchange {
        url: arguments.url.clone(),
        why: if matches!(error, ureq::Error::Timeout(_)) {
            format!("no answer within {} (--timeout)", duration_as_typed(arguments.timeout))
        } else {
            exchange(&error)
        },
    };
    let mut response = agent.get(&address).call().map_err(failed)?;
    let status = response.status().as_u16();
    if status == 200 {
        return Ok(writeln!(out, "ready")?);
    }
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
    Err(HealthError::Unready(reason(status, &body.map_err(failed)?)))
}

/// What the body says of the reason; the status where it says nothing.
fn reason(status: u16, body: &str) -> String {
    let body: Option<Value> = serde_json::from_str(body).ok();
    let reason = body.as_ref().and_then(|body| body["reason"].as_str());
    reason.map_or_else(|| format!("the server answers {status}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::cli::vouched::{http, serve_tls};

    /// Asks a server that gives one answer.
    fn asked(answer: &'static str) -> (Result<(), HealthError>, String, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0_u8; 4096];
            let read = stream.read(&mut head).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&head[..read]).into_owned()
        });
        let mut out = Vec::new();
        let arguments = HealthArgs { url, ca: None, timeout: Duration::from_secs(10) };
        let outcome = run(&arguments, &mut out);
        (outcome, String::from_utf8(out).unwrap(), server.join().unwrap())
    }

    #[test]
    fn a_ready_server_is_a_success() {
        let (outcome, out, head) = asked("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(out, "ready\n");
        assert!(head.starts_with("GET /health?ready=1 HTTP/1.1"), "{head}");
    }

    #[test]
    fn a_server_that_is_not_ready_says_why() {
        let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 37\r\n\r\n\
            {\"ok\":true, \"reason\":\"draining\"}     ";
        let (outcome, out, _) = asked(answer);
        assert_eq!(outcome.unwrap_err().to_string(), "not ready: draining");
        assert_eq!(out, "");
    }

    #[test]
    fn an_answer_of_somebody_else_is_no_success() {
        let (outcome, ..) = asked("HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\n404");
        assert_eq!(outcome.unwrap_err().to_string(), "not ready: the server answers 404");
    }

    #[test]
    fn a_private_certificate_vouches_where_it_is_named() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("ca.pem");
        let ask = |url: String, ca: Option<PathBuf>| {
            let arguments = HealthArgs { url, ca, timeout: Duration::from_secs(30) };
            let mut out = Vec::new();
            run(&arguments, &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        let asked = |ca: Option<PathBuf>| {
            let (url, authority, server) = serve_tls(http("200 OK", "", "{}"));
            std::fs::write(&path, authority).unwrap();
            (ask(url, ca), server.join().unwrap())
        };
        let (outcome, head) = asked(Some(path.clone()));
        assert_eq!(outcome.unwrap(), "ready\n");
        assert!(head.starts_with("GET /health?ready=1 HTTP/1.1"), "{head}");
        let (outcome, head) = asked(None);
        let told = outcome.unwrap_err().to_string();
        assert!(told.contains("its certificate; --ca names who does"), "{told}");
        assert_eq!(head, "", "and nothing was asked of it");
        let absent = ask("https://localhost:1".to_owned(), Some(PathBuf::from("no/such.pem")));
        assert!(absent.unwrap_err().to_string().starts_with("no/such.pem: "));
    }

    #[test]
    fn a_server_that_is_not_there_and_an_address_without_a_scheme_are_told() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let told = |url: &str| {
            let arguments =
                HealthArgs { url: url.to_owned(), ca: None, timeout: Duration::from_secs(10) };
            run(&arguments, &mut Vec::new()).unwrap_err().to_string()
        };
        let url = format!("http://{free}");
        assert!(told(&url).starts_with(&format!("{url}: ")), "{}", told(&url));
        assert!(told("localhost:8000").contains("write http://"), "{}", told("localhost:8000"));
    }
}
