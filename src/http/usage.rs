//! `GET /v1/usage`: what a tenant asked for, and the counting of it.

use std::sync::Arc;
use std::time::SystemTime;

use actors::TenantId;
use axum::Extension;
use axum::extract::{RawQuery, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use crate::dialect::problem::{Fault, RequestFault};
use crate::error::DecideError;
use crate::question::answer::Cost;
use crate::usage::{Counts, Wanted};

use super::auth::Grant;
use super::decide::grant;
use super::guard::Sender;
use super::{App, respond};

/// The caller's own tenant; of operators any, or all.
pub(super) async fn usage(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    Extension(sender): Extension<Sender>,
    request: Request,
) -> Response {
    let dialect = app.dialect_of_unknown(&request);
    shown(&app, &sender, query.as_deref()).unwrap_or_else(|fault| app.refuse(dialect, &fault))
}

fn shown(app: &App, sender: &Sender, query: Option<&str>) -> Result<Response, Fault> {
    let (grant, now) = (grant(sender)?, SystemTime::now());
    let wanted = Wanted::parse(query.unwrap_or_default())
        .map_err(|message| RequestFault::Query { message })?;
    let own = || grant.tenant.0.to_string();
    let tenant = wanted.tenant.clone().unwrap_or_else(own);
    if !grant.is_operator() && (wanted.all || !is_own(grant, &tenant)) {
        let message = "usage of other tenants is for keys of operators".to_owned();
        return Err(RequestFault::NotAllowed { message }.into());
    }
    let meter = &app.config.usage;
    if wanted.all {
        text(&meter.usage_of_all(wanted.days, now))
    } else {
        text(&meter.usage(&tenant, wanted.days, now))
    }
}

fn text(usage: &impl Serialize) -> Result<Response, Fault> {
    let text = serde_json::to_string(usage);
    let text = text.map_err(|error| DecideError::Internal { detail: error.to_string() })?;
    Ok(respond::json(StatusCode::OK, text))
}

/// Whether a tenant is the caller or one of its sub-tenants.
fn is_own(grant: &Grant, tenant: &str) -> bool {
    let rest = tenant.strip_prefix(&*grant.tenant.0);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What every request with a valid key adds, also where its client leaves before the answer.
pub(super) fn of_request() -> Counts {
    Counts { requests: 1, ..Counts::default() }
}

/// What a response of this status adds to the counts of its tenant.
pub(super) fn of_response(status: StatusCode) -> Counts {
    let is_refused = matches!(status.as_u16(), 429 | 503);
    let count = u64::from;
    Counts {
        answered: count(status.is_success()),
        refused: count(is_refused),
        failed: count(!status.is_success() && !is_refused),
        ..Counts::default()
    }
}

impl App {
    /// Counts questions that were answered for a tenant. Reads and their tokens are counted where they
    /// are run, whatever becomes of the request.
    pub(super) fn count(&self, tenant: &TenantId, questions: usize) {
        let counts = Counts { questions: questions as u64, ..Counts::default() };
        self.config.usage.add(tenant, counts);
    }

    /// Counts what a prewarm found: no read tells of it.
    pub(super) fn count_found(&self, tenant: &TenantId, cost: &Cost) {
        let counts = Counts { cached_tokens: cost.cached_tokens, ..Counts::default() };
        self.config.usage.add(tenant, counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_response_is_counted_as_one_thing() {
        for (status, counts) in [
            (200, [1, 0, 0]),
            (202, [1, 0, 0]),
            (429, [0, 1, 0]),
            (503, [0, 1, 0]),
            (422, [0, 0, 1]),
            (500, [0, 0, 1]),
        ] {
            let Counts { requests, answered, refused, failed, .. } =
                of_response(StatusCode::from_u16(status).unwrap());
            assert_eq!((requests, [answered, refused, failed]), (0, counts), "{status}");
        }
    }
}
