//! Whether a request is sent once more, and where: pure.
//!
//! Elsewhere only where nothing was carried out: the backend could not be reached, or has refused the
//! request for now. A connection that broke may have carried the request out; then only what may be carried out
//! twice is sent again, and once, so that a request which breaks its backend does not break all of them.
//! What a backend refuses for the sake of the request's tenant is refused: to ask another one would
//! give the tenant the limits of all backends together.

use std::time::Duration;

use axum::http::HeaderMap;

use super::route::{About, Route};
use crate::config::RetryConfig;
use crate::http::one_value;
use crate::telemetry::RetryFor;

/// Reasons of refusals that are about the tenant, not the backend.
const OF_TENANT: [&str; 3] = ["tenant", "tokens_per_minute", "rate_limited"];

/// Reasons of refusals after which the backend will take nothing more.
const LEAVING: [&str; 2] = ["draining", "engine_dead"];

/// Why a backend has refused a request for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    /// For whose sake.
    pub(super) sake: Sake,
    /// When to come back, where it says so.
    pub(super) retry_after: Option<Duration>,
}

/// For whose sake a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sake {
    /// The backend has too much to do.
    Load,
    /// The backend is going away.
    Leaving,
    /// The tenant asks too much.
    Tenant,
}

impl Refused {
    /// As the headers of an answer with 429 or 503 say.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name| one_value(headers, name).ok().flatten()?.to_str().ok();
        let sake = match text("x-docket-reason") {
            Some(reason) if OF_TENANT.contains(&reason) => Sake::Tenant,
            Some(reason) if LEAVING.contains(&reason) => Sake::Leaving,
            Some(_) | None => Sake::Load,
        };
        let ms = || text("retry-after-ms")?.parse().ok().map(Duration::from_millis);
        // A date is not waited for.
        let seconds = || text("retry-after")?.parse().ok().map(Duration::from_secs);
        Self { sake, retry_after: ms().or_else(seconds) }
    }
}

/// How a try ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// The backend could not be reached.
    Unreached,
    /// The connection broke after the request was sent, as far as is known.
    Broken,
    /// No answer came in time.
    Timeout,
    /// The backend has refused it for now.
    Refused(Refused),
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another backend.
    Elsewhere(RetryFor),
    /// The backend that has refused it, after this time.
    After(Duration),
    /// The client is told.
    Tell,
}

/// The tries of one request.
#[derive(Debug)]
pub(super) struct Tries {
    limits: RetryConfig,
    route: Route,
    retries: u32,
    has_broken: bool,
    has_waited: bool,
    /// Of the first backend that has refused it: that one keeps room for whoever comes back when told.
    retry_after: Option<Duration>,
}

impl Tries {
    pub(super) fn new(route: Route, limits: RetryConfig) -> Self {
        let (retries, has_broken, has_waited, retry_after) = (0, false, false, None);
        Self { limits, route, retries, has_broken, has_waited, retry_after }
    }

    /// * `others`: whether there are backends that were not tried.
    pub(super) fn next(&mut self, failed: Failed, others: bool) -> Next {
        if let Failed::Refused(refused) = failed
            && !self.has_waited
        {
            self.retry_after = self.retry_after.or(refused.retry_after);
        }
        if self.retries >= self.limits.max {
            return Next::Tell;
        }
        let next = self.wanted(failed, others);
        self.retries += u32::from(next != Next::Tell);
        next
    }

    fn wanted(&mut self, failed: Failed, others: bool) -> Next {
        match failed {
            Failed::Timeout => Next::Tell,
            Failed::Unreached if others => Next::Elsewhere(RetryFor::Unreached),
            Failed::Unreached => Next::Tell,
            Failed::Broken => {
                let is_first = !std::mem::replace(&mut self.has_broken, true);
                if is_first && others && self.route.is_repeatable {
                    return Next::Elsewhere(RetryFor::Broken);
                }
                Next::Tell
            }
            // Tasks of a key stay together while the backend that has them is there.
            Failed::Refused(Refused { sake: Sake::Load, .. })
                if others && self.route.about != About::Tasks && self.may_move() =>
            {
                Next::Elsewhere(RetryFor::Refused)
            }
            Failed::Refused(Refused { sake: Sake::Leaving, .. }) if others => {
                Next::Elsewhere(RetryFor::Refused)
            }
            Failed::Refused(_) => self.wait(),
        }
    }

    /// Whether a retry is left for the wait, where there will be one: the backend that has told a time
    /// is worth more than one that has to read the state first.
    fn may_move(&self) -> bool {
        let is_last = self.retries + 1 >= self.limits.max;
        !(is_last && self.can_wait())
    }

    fn can_wait(&self) -> bool {
        let is_short = |time: Duration| time <= self.limits.wait_max;
        !self.has_waited && self.retry_after.is_some_and(is_short)
    }

    fn wait(&mut self) -> Next {
        if !self.can_wait() {
            return Next::Tell;
        }
        self.has_waited = true;
        self.retry_after.map_or(Next::Tell, Next::After)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;

    fn tries(method: &Method, path: &str) -> Tries {
        let limits = RetryConfig { max: 2, wait_max: Duration::from_secs(1), at_once: 1 };
        Tries::new(Route::of(method, path), limits)
    }

    fn of_decision() -> Tries {
        tries(&Method::POST, "/v1/systemone")
    }

    fn refused(sake: Sake, wait_ms: u64) -> Failed {
        let retry_after = Some(Duration::from_millis(wait_ms));
        Failed::Refused(Refused { sake, retry_after })
    }

    const SOON: Next = Next::After(Duration::from_millis(300));

    #[test]
    fn what_could_not_be_sent_goes_elsewhere_whatever_it_is() {
        for path in ["/v1/systemone", "/v1/tasks"] {
            let mut tries = tries(&Method::POST, path);
            let elsewhere = Next::Elsewhere(RetryFor::Unreached);
            assert_eq!(tries.next(Failed::Unreached, true), elsewhere);
            assert_eq!(tries.next(Failed::Unreached, true), elsewhere);
            assert_eq!(tries.next(Failed::Unreached, true), Next::Tell, "two retries");
        }
        assert_eq!(of_decision().next(Failed::Unreached, false), Next::Tell, "nobody is left");
    }

    #[test]
    fn what_may_have_been_carried_out_is_sent_again_once_and_only_where_it_may_be_twice() {
        let mut decision = of_decision();
        assert_eq!(decision.next(Failed::Broken, true), Next::Elsewhere(RetryFor::Broken));
        assert_eq!(decision.next(Failed::Broken, true), Next::Tell);
        for path in ["/v1/tasks", "/v1/unknown"] {
            assert_eq!(tries(&Method::POST, path).next(Failed::Broken, true), Next::Tell, "{path}");
        }
        assert_eq!(of_decision().next(Failed::Timeout, true), Next::Tell);
    }

    #[test]
    fn a_full_backend_is_left_for_another_one_and_then_waited_for() {
        let mut tries = of_decision();
        let elsewhere = Next::Elsewhere(RetryFor::Refused);
        assert_eq!(tries.next(refused(Sake::Load, 300), true), elsewhere);
        // The first one's time counts: it keeps room.
        assert_eq!(tries.next(refused(Sake::Load, 9_000), true), SOON);
        assert_eq!(tries.next(refused(Sake::Load, 300), true), Next::Tell);
    }

    #[test]
    fn a_long_wait_is_the_clients() {
        let mut tries = of_decision();
        let elsewhere = Next::Elsewhere(RetryFor::Refused);
        assert_eq!(tries.next(refused(Sake::Load, 1_001), true), elsewhere);
        assert_eq!(tries.next(refused(Sake::Load, 1_001), true), elsewhere);
        assert_eq!(tries.next(refused(Sake::Load, 1_001), true), Next::Tell);
        assert_eq!(of_decision().next(refused(Sake::Load, 1_001), false), Next::Tell);
        let untold = Failed::Refused(Refused { sake: Sake::Load, retry_after: None });
        assert_eq!(of_decision().next(untold, false), Next::Tell);
    }

    #[test]
    fn a_tenant_that_asks_too_much_is_not_sent_elsewhere() {
        assert_eq!(of_decision().next(refused(Sake::Tenant, 300), true), SOON);
        assert_eq!(of_decision().next(refused(Sake::Tenant, 5_000), true), Next::Tell);
    }

    #[test]
    fn tasks_stay_where_they_are_unless_that_is_going_away() {
        let of_tasks = || tries(&Method::POST, "/v1/tasks");
        assert_eq!(of_tasks().next(refused(Sake::Load, 300), true), SOON);
        let elsewhere = Next::Elsewhere(RetryFor::Refused);
        assert_eq!(of_tasks().next(refused(Sake::Leaving, 300), true), elsewhere);
    }

    #[test]
    fn without_retries_everything_is_told() {
        let limits = RetryConfig { max: 0, ..RetryConfig::default() };
        let route = Route::of(&Method::POST, "/v1/systemone");
        for failed in [Failed::Unreached, Failed::Broken, refused(Sake::Load, 1)] {
            assert_eq!(Tries::new(route, limits).next(failed, true), Next::Tell);
        }
    }

    #[test]
    fn a_refusal_is_read_from_its_headers() {
        let of = |pairs: &[(&'static str, &str)]| {
            let pairs =
                pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            Refused::of(&pairs.collect())
        };
        let ms = |wait_ms| Some(Duration::from_millis(wait_ms));
        let full = of(&[
            ("x-docket-reason", "queue_full"),
            ("retry-after-ms", "250"),
            ("retry-after", "1"),
        ]);
        assert_eq!(full, Refused { sake: Sake::Load, retry_after: ms(250) });
        let rate = of(&[("x-docket-reason", "tokens_per_minute"), ("retry-after", "7")]);
        assert_eq!(rate, Refused { sake: Sake::Tenant, retry_after: ms(7_000) });
        let leaving = of(&[("x-docket-reason", "draining")]);
        assert_eq!(leaving, Refused { sake: Sake::Leaving, retry_after: None });
        let dated = of(&[("retry-after", "Tue, 01 Dec 2026 14:00:00 GMT")]);
        assert_eq!(dated, Refused { sake: Sake::Load, retry_after: None });
    }
}
