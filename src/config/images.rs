//! From where images in requests may be fetched.

use std::time::Duration;

use super::Faults;
use crate::http::IMAGE_FETCH_TIMEOUT;

/// From where images may be fetched, and how long that may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagesConfig {
    /// Whether without TLS too. Default no.
    pub allow_http: bool,
    /// Whether from addresses that are not public too, which lets whoever may ask reach what this
    /// machine reaches. Default no.
    pub allow_private: bool,
    /// Longest time of one image. Default 15 s; 1 ms to 10 min.
    pub fetch_timeout: Duration,
}

impl Default for ImagesConfig {
    fn default() -> Self {
        Self { allow_http: false, allow_private: false, fetch_timeout: IMAGE_FETCH_TIMEOUT }
    }
}

impl ImagesConfig {
    pub(super) fn check(&self, faults: &mut Faults) {
        let range = Duration::from_millis(1)..=Duration::from_mins(10);
        faults.check_duration("--image-fetch-timeout", self.fetch_timeout, range);
    }
}
