//! Images fetched from where a request says they are, without being led anywhere else.
//!
//! Redirects are followed here and not by the client, so that each hop is checked like the first URL;
//! addresses are checked when they are connected to ([`super::resolver`]); environment variables name
//! no proxy; nothing of the request but its URL goes out. The client blocks, so a fetch has a thread
//! of its own, and fetches are few.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use ureq::http::Response;
use ureq::http::header::{CONTENT_TYPE, LOCATION};
use ureq::unversioned::transport::{Connector, DefaultConnector};
use ureq::{Agent, Body};
use url::Url;

use crate::dialect::images::ImageRules;
use crate::service::images::{Format, Image};
use crate::telemetry::{self, FetchEnd};

use super::fault::BadImage;
use super::header;
use super::remote::{Remote, UrlFault, redirected};
use super::resolver::{Guarded, Lookup, NoPublicAddress, SystemLookup};

/// Default of the longest time that an image may take to fetch, from the wait for a place to its last
/// byte.
pub const IMAGE_FETCH_TIMEOUT: Duration = Duration::from_secs(15);

/// Most images that are fetched at one time.
pub const IMAGE_FETCHES_MAX: usize = 8;

/// Longest time for a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Most redirects of one image.
const REDIRECTS_MAX: usize = 3;

/// Longest head of an answer.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// Bytes that are read at a time, and memory that an answer gets on the word of its length.
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes after which it is known whether they are an image.
const START_BYTES: usize = 16;

/// From where images may be fetched, and how long that may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageFetching {
    /// Whether without TLS too. Default no.
    pub allow_http: bool,
    /// Whether from addresses that are not public too. Default no.
    pub allow_private: bool,
    /// Longest time of one image; default [`IMAGE_FETCH_TIMEOUT`].
    pub timeout: Duration,
}

impl Default for ImageFetching {
    fn default() -> Self {
        Self { allow_http: false, allow_private: false, timeout: IMAGE_FETCH_TIMEOUT }
    }
}

/// Why an image was not fetched. No text has anything of the URL or of the answer's body.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum FetchFault {
    /// Too many others are being fetched.
    #[error("waited {waited:?} for one of {count_max} fetches at a time")]
    Busy {
        /// The time limit.
        waited: Duration,
        /// The limit.
        count_max: usize,
    },
    /// It took too long.
    #[error("is not there after {limit:?}")]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// Its host is unknown, or an address that is not let in. Which of the two is not told: it would
    /// tell strangers the names of our network.
    #[error("has a host without a public address")]
    NoPublicAddress,
    /// It leads to a URL that is not fetched.
    #[error("redirects to {0}")]
    Redirect(UrlFault),
    /// A redirect without a target that can be read.
    #[error("redirects to nowhere")]
    NoTarget,
    /// It leads on and on.
    #[error("redirects more than {count_max} times")]
    TooManyRedirects {
        /// The limit.
        count_max: usize,
    },
    /// Another answer than the image.
    #[error("is answered with status {status}")]
    Status {
        /// As answered.
        status: u16,
    },
    /// The connection or its protocol failed.
    #[error("cannot be read: the connection failed or broke off")]
    Broken,
    /// What came is not accepted.
    #[error("{0}")]
    Bad(#[from] BadImage),
}

impl FetchFault {
    fn end(&self) -> FetchEnd {
        match self {
            Self::Busy { .. } => FetchEnd::Busy,
            Self::Timeout { .. } => FetchEnd::Timeout,
            Self::NoPublicAddress | Self::Redirect(_) => FetchEnd::Refused,
            Self::NoTarget | Self::TooManyRedirects { .. } | Self::Status { .. } | Self::Broken => {
                FetchEnd::Failed
            }
            Self::Bad(_) => FetchEnd::Bad,
        }
    }
}

/// Fetches images, a few at a time.
pub(crate) struct Fetcher {
    agent: Agent,
    places: Arc<Semaphore>,
    pub(crate) rules: ImageFetching,
}

impl Fetcher {
    pub(crate) fn new(rules: ImageFetching) -> Self {
        Self::with(rules, SystemLookup, DefaultConnector::new())
    }

    fn with(rules: ImageFetching, lookup: impl Lookup, connector: impl Connector) -> Self {
        let config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .https_only(!rules.allow_http)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .max_response_header_size(HEAD_BYTES_MAX)
            .max_idle_connections(0)
            .user_agent(concat!("docket/", env!("CARGO_PKG_VERSION")))
            .accept("image/png, image/jpeg, image/webp")
            .accept_encoding("identity")
            .build();
        let guarded = Guarded { lookup, allow_private: rules.allow_private };
        let agent = Agent::with_parts(config, connector, guarded);
        telemetry::image_fetches_max(IMAGE_FETCHES_MAX);
        Self { agent, places: Arc::new(Semaphore::new(IMAGE_FETCHES_MAX)), rules }
    }

    /// Fetches and checks an image. Dropped, it leaves a thread behind that ends within the time limit,
    /// or with its lookup of a name, and keeps its place until then.
    ///
    /// # Errors
    /// Why there is no image.
    pub(crate) async fn fetch(
        &self,
        remote: Remote,
        rules: ImageRules,
    ) -> Result<Image, FetchFault> {
        let fetched = self.fetch_within(remote, rules).await;
        telemetry::image_fetched(fetched.as_ref().map_or_else(FetchFault::end, |_| FetchEnd::Done));
        fetched
    }

    async fn fetch_within(&self, remote: Remote, rules: ImageRules) -> Result<Image, FetchFault> {
        let limit = self.rules.timeout;
        let until = Instant::now() + limit;
        let end = tokio::time::Instant::now() + limit;
        let place = tokio::time::timeout_at(end, Arc::clone(&self.places).acquire_owned()).await;
        let busy = FetchFault::Busy { waited: limit, count_max: IMAGE_FETCHES_MAX };
        // The semaphore is never closed.
        let place = place.map_err(|_| busy)?.map_err(|_| FetchFault::Broken)?;
        let job = Job { agent: self.agent.clone(), rules: self.rules, until, _place: place };
        #[expect(clippy::disallowed_methods, reason = "behind the semaphore above")]
        let work = tokio::task::spawn_blocking(move || job.image(remote, rules));
        let timeout = FetchFault::Timeout { limit };
        let done = tokio::time::timeout_at(end, work).await.map_err(|_| timeout)?;
        done.unwrap_or(Err(FetchFault::Broken))
    }
}

/// One fetch, in its own thread.
struct Job {
    agent: Agent,
    rules: ImageFetching,
    until: Instant,
    _place: OwnedSemaphorePermit,
}

impl Job {
    fn image(&self, remote: Remote, rules: ImageRules) -> Result<Image, FetchFault> {
        let _under_way = telemetry::image_fetch();
        let Remote { url, name, description } = remote;
        let response = self.answer(url)?;
        let declared = response.headers().get(CONTENT_TYPE);
        let declared = declared.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let file = self.file(response)?;
        let header = header::read(&file, rules)?;
        if let Some(declared) = declared {
            header::check_declared(&declared, header.format)?;
        }
        Ok(Image { header, file, name, description })
    }

    /// The answer at the end of the redirects.
    fn answer(&self, first: Url) -> Result<Response<Body>, FetchFault> {
        let mut url = first;
        for _ in 0..=REDIRECTS_MAX {
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.timeout());
            }
            let request = self.agent.get(url.as_str()).config().timeout_global(Some(left)).build();
            let response = request.call().map_err(|error| self.fault(&error))?;
            match response.status().as_u16() {
                200 => return Ok(response),
                301 | 302 | 303 | 307 | 308 => {}
                status => return Err(FetchFault::Status { status }),
            }
            let location = response.headers().get(LOCATION);
            let location = location.and_then(|value| value.to_str().ok());
            let location = location.ok_or(FetchFault::NoTarget)?;
            url = redirected(&url, location, self.rules).map_err(FetchFault::Redirect)?;
        }
        Err(FetchFault::TooManyRedirects { count_max: REDIRECTS_MAX })
    }

    /// The body, read no further than it can be an image.
    fn file(&self, mut response: Response<Body>) -> Result<Bytes, FetchFault> {
        let announced = response.body().content_length().unwrap_or_default();
        header::check_bytes_max(usize::try_from(announced).unwrap_or(usize::MAX))?;
        let mut reader = response.body_mut().as_reader();
        let mut file = Vec::new();
        loop {
            let before = file.len();
            file.resize(before + CHUNK_BYTES, 0);
            let read = reader.read(&mut file[before..]);
            let read = read.map_err(|error| self.fault(&ureq::Error::from(error)))?;
            file.truncate(before + read);
            header::check_bytes_max(file.len())?;
            if before < START_BYTES && (file.len() >= START_BYTES || read == 0) {
                Format::found(&file)?;
            }
            if read == 0 {
                return Ok(file.into());
            }
            if Instant::now() >= self.until {
                return Err(self.timeout());
            }
        }
    }

    fn timeout(&self) -> FetchFault {
        FetchFault::Timeout { limit: self.rules.timeout }
    }

    fn fault(&self, error: &ureq::Error) -> FetchFault {
        let is_kept_out = matches!(error, ureq::Error::Other(why) if why.is::<NoPublicAddress>());
        if matches!(error, ureq::Error::Timeout(_)) {
            self.timeout()
        } else if is_kept_out || matches!(error, ureq::Error::HostNotFound) {
            FetchFault::NoPublicAddress
        } else {
            FetchFault::Broken
        }
    }
}

#[cfg(test)]
mod tests;
