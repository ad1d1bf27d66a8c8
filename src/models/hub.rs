//! The way over the model hub: one file by HTTP, resumed at the byte where an earlier pull ended.
//!
//! `hf-hub` knows the hub's address (`HF_ENDPOINT` included), its paths and the user's token; the
//! transfer itself is ours, because it must give up on a silent network within seconds and write
//! into the same file as every other way.

use std::io::Read;
use std::time::Duration;

use hf_hub::api::sync::{Api, ApiBuilder, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};
use serde::Deserialize;
use ureq::http::{Response, header};
use ureq::{Agent, Body};

use super::assembly::{Assembly, BUFFER_BYTES};
use super::download::Source;
use super::error::Failure;

/// Longest time to look up the hub's name, and again to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time until the hub answers a request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest silence within a transfer.
const SILENCE_TIMEOUT: Duration = Duration::from_mins(1);

/// Transfers in a row that bring nothing, after which the hub is given up.
const FRUITLESS_TRIES_MAX: u32 = 3;

/// Most bytes of a repository's listing.
const LISTING_BYTES_MAX: u64 = 16 << 20;

/// A file of a repository on the hub.
#[derive(Debug)]
pub struct HubFile {
    /// `OWNER/REPO`.
    pub repo: String,
    /// Commit or branch; `main` for the newest.
    pub revision: String,
    /// Path in the repository.
    pub file: String,
}

/// A repository's files at one commit.
#[derive(Debug, Deserialize)]
pub(crate) struct Listing {
    /// The commit.
    #[serde(rename = "sha")]
    pub(crate) commit: String,
    /// The files.
    #[serde(rename = "siblings")]
    pub(crate) files: Vec<ListedFile>,
}

/// A file as the hub lists it.
#[derive(Debug, Deserialize)]
pub(crate) struct ListedFile {
    /// Path in the repository.
    #[serde(rename = "rfilename")]
    pub(crate) path: String,
    /// Size in bytes.
    pub(crate) size: Option<u64>,
    /// What is known of a large file.
    lfs: Option<LargeFile>,
}

#[derive(Debug, Deserialize)]
struct LargeFile {
    sha256: Option<String>,
}

impl ListedFile {
    /// SHA-256, where the hub says it.
    pub(crate) fn sha256(&self) -> Option<String> {
        self.lfs.as_ref()?.sha256.clone()
    }
}

/// Asks the hub what a repository holds.
///
/// # Errors
/// Why the hub could not be asked.
pub(crate) fn list(repo: &str) -> Result<Listing, String> {
    let repository = api()?.model(repo.to_owned());
    let mut response = repository
        .info_request()
        .query("blobs", "true")
        .config()
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .build()
        .call()
        .map_err(|error| describe(&error, repo))?;
    let body = response.body_mut().with_config().limit(LISTING_BYTES_MAX).read_to_vec();
    let body = body.map_err(|error| describe(&error, repo))?;
    serde_json::from_slice(&body).map_err(|error| format!("the listing of {repo}: {error}"))
}

impl HubFile {
    fn repository(&self) -> Result<ApiRepo, String> {
        let repo = Repo::with_revision(self.repo.clone(), RepoType::Model, self.revision.clone());
        Ok(api()?.repo(repo))
    }
}

impl Source for HubFile {
    fn describe(&self) -> String {
        format!("the hub ({})", self.repo)
    }

    fn fetch(&self, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
        let url = self.repository().map_err(Failure::Way)?.url(&self.file);
        fetch_url(&url, assembly)
    }
}

/// Transfers until the file is whole, going on after transfers that break off on their way.
fn fetch_url(url: &str, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
    let agent = agent();
    let mut fruitless = 0;
    while assembly.wanted().bytes.is_none_or(|size| assembly.bytes() < size) {
        let before = assembly.bytes();
        match transfer(&agent, url, assembly) {
            Ok(()) if assembly.wanted().bytes.is_none() => return Ok(()),
            Err(Failure::Damaged(_)) if assembly.bytes() > before => {}
            other => other?,
        }
        fruitless = if assembly.bytes() > before { 0 } else { fruitless + 1 };
        if fruitless == FRUITLESS_TRIES_MAX {
            return Err(Failure::Damaged("the transfer ends early each time".to_owned()));
        }
    }
    Ok(())
}

/// One transfer, from the byte that is missing first.
fn transfer(agent: &Agent, url: &str, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
    let start = assembly.bytes();
    let mut request = agent.get(url).header(header::RANGE, format!("bytes={start}-"));
    if let Some(token) = Cache::from_env().token() {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let mut response = match request.call() {
        // Nothing lies beyond what is here: whether it is the file, its hash says.
        Err(ureq::Error::StatusCode(416)) if start > 0 => return Ok(()),
        other => other.map_err(|error| Failure::Way(describe(&error, url)))?,
    };
    if response.status() != 206 || range_start(&response) != Some(start) {
        assembly.restart()?;
    }
    copy(response.body_mut().as_reader(), assembly)
}

fn api() -> Result<Api, String> {
    ApiBuilder::from_env().with_progress(false).build().map_err(|error| error.to_string())
}

fn agent() -> Agent {
    Agent::config_builder()
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_per_read(Some(SILENCE_TIMEOUT))
        .build()
        .into()
}

/// Adds a transfer to the end of the file.
fn copy(mut from: impl Read, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = from
            .read(&mut buffer)
            .map_err(|error| Failure::Damaged(format!("the transfer broke off: {error}")))?;
        if read == 0 {
            return Ok(());
        }
        if assembly.would_overflow(read as u64) {
            assembly.restart()?;
            return Err(Failure::Way("the hub's file is longer than the one pinned".to_owned()));
        }
        assembly.append(&buffer[..read])?;
    }
}

/// Where a partial response says that it begins.
fn range_start(response: &Response<Body>) -> Option<u64> {
    let range = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

fn describe(error: &ureq::Error, what: &str) -> String {
    if let ureq::Error::StatusCode(404) = error {
        return format!("{what} is not there (404)");
    }
    if let ureq::Error::StatusCode(status @ (401 | 403)) = error {
        return format!("{what} is not there, or not for everybody ({status})");
    }
    format!("{what}: {error}")
}

#[cfg(test)]
mod tests;
