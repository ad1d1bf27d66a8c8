//! What a request is about, by its method and path: that says where it may go, and whether it may be sent
//! twice.

use axum::http::Method;

use crate::dialect::Dialect;

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// One state: it goes where that is.
    State,
    /// Many states: all of them go where the same ones went before.
    States,
    /// The tasks of its key, which are at one backend unless backends share them.
    Tasks,
    /// A pin, which one of the backends has.
    Pin,
    /// Nothing that one backend has and others have not.
    Nothing,
}

/// A request as it is routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) about: About,
    /// Whether it may be carried out twice: it reads, or says what is to be so and not what is to change.
    pub(super) is_repeatable: bool,
}

impl Route {
    /// Of a request.
    pub(super) fn of(method: &Method, path: &str) -> Self {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let is_dialect = segments.first().is_some_and(|name| name.parse::<Dialect>().is_ok());
        let rest = &segments[usize::from(is_dialect)..];
        let rest = rest.strip_prefix(&["v1"]).unwrap_or(rest);
        let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let (about, is_repeatable) = match rest {
            // Decisions, estimates and prewarms compute what is the same wherever and however often.
            ["systemone" | "decide" | "decisions" | "answer" | "estimate" | "prewarm"]
                if *method == Method::POST =>
            {
                (About::State, true)
            }
            ["systemone", "batch"] if *method == Method::POST => (About::States, true),
            ["prewarm", _] if *method == Method::DELETE => (About::Pin, true),
            ["tasks", ..] | ["abstention", "tasks", ..] => (About::Tasks, is_read),
            _ => (About::Nothing, is_read),
        };
        Self { about, is_repeatable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_of_docket_goes_where_it_belongs() {
        for (method, path, about, is_repeatable) in [
            (Method::POST, "/v1/systemone", About::State, true),
            (Method::POST, "/v1/decide", About::State, true),
            (Method::POST, "/vllm/v1/systemone", About::State, true),
            (Method::POST, "/v1/decisions", About::State, true),
            (Method::POST, "/openai/v1/decisions", About::State, true),
            (Method::POST, "/decisio/v1/answer", About::State, true),
            (Method::POST, "/v1/estimate", About::State, true),
            (Method::POST, "/v1/prewarm", About::State, true),
            (Method::POST, "/gmlx/prewarm", About::State, true),
            (Method::POST, "/v1/systemone/batch", About::States, true),
            (Method::POST, "/self/v1/systemone/batch", About::States, true),
            (Method::DELETE, "/v1/prewarm/beef", About::Pin, true),
            (Method::DELETE, "/prewarm/beef", About::Pin, true),
            (Method::GET, "/v1/tasks", About::Tasks, true),
            (Method::POST, "/v1/tasks", About::Tasks, false),
            (Method::POST, "/decisio/v1/tasks/import", About::Tasks, false),
            (Method::DELETE, "/v1/abstention/tasks/7", About::Tasks, false),
            (Method::GET, "/v1/tasks/7/status", About::Tasks, true),
            (Method::GET, "/v1/models", About::Nothing, true),
            (Method::GET, "/v1/usage", About::Nothing, true),
            (Method::GET, "/", About::Nothing, true),
            (Method::GET, "/vllm/health", About::Nothing, true),
            (Method::GET, "/v1/systemone", About::Nothing, true),
            (Method::POST, "/nobody/v1/systemone", About::Nothing, false),
            (Method::PUT, "/v1/unknown", About::Nothing, false),
        ] {
            assert_eq!(Route::of(&method, path), Route { about, is_repeatable }, "{method} {path}");
        }
    }
}
