//! Meters of responses, by route: handles for what is common, labels only for what is not.

use std::sync::OnceLock;
use std::time::Duration;

use actors::Lane;
use metrics::{Counter, Histogram, counter, histogram};

use super::{REQUEST_SECONDS, REQUESTS};

/// Value of the labels `reason` and `lane` where there is none.
const NONE: &str = "none";

/// A response as it goes out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// The HTTP status.
    pub(crate) status: u16,
    /// Why it is a refusal, if it is one.
    pub(crate) reason: Option<&'static str>,
    /// The lane in which it was served, if it was in one.
    pub(crate) lane: Option<Lane>,
    /// From the request's first byte to now.
    pub(crate) took: Duration,
}

/// Responses of one route.
pub(crate) struct RouteMeters {
    route: &'static str,
    /// Those with 200.
    answered: OnceLock<Counter>,
    /// By lane, and without one.
    seconds: [OnceLock<Histogram>; 5],
}

impl RouteMeters {
    /// * `route`: a route's pattern or `other`, never a path as sent.
    pub(crate) fn new(route: &'static str) -> Self {
        Self { route, answered: OnceLock::new(), seconds: Default::default() }
    }

    /// Counts a response.
    pub(crate) fn ended(&self, ended: Ended) {
        let Ended { status, reason, lane, took } = ended;
        if (status, reason) == (200, None) {
            self.answered.get_or_init(|| self.counter(status, reason)).increment(1);
        } else {
            self.counter(status, reason).increment(1);
        }
        let lane_name = lane.map_or(NONE, Lane::as_str);
        let seconds = &self.seconds[lane.map_or(Lane::ALL.len(), |lane| lane as usize)];
        seconds
            .get_or_init(|| histogram!(REQUEST_SECONDS, "route" => self.route, "lane" => lane_name))
            .record(took);
    }

    fn counter(&self, status: u16, reason: Option<&'static str>) -> Counter {
        let (status, reason) = (status.to_string(), reason.unwrap_or(NONE));
        counter!(REQUESTS, "route" => self.route, "status" => status, "reason" => reason)
    }
}
