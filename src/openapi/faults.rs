//! Everything that can go wrong with a request, by how far it has got: one fault of each kind, of which
//! the dialects then say what they answer.

use std::time::Duration;

use actors::{EngineError, Lane, ReadError, RejectReason};

use super::parameters::FAIRNESS_ID;
use super::{Served, codes};
use crate::dialect::problem::{Fault, ImageRefusal, ImageRefusalKind, RequestFault};
use crate::dialect::{Dialect, words};
use crate::error::{DecideError, Fact, Problem, RegistrationsFull, Step};

/// How far a request has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its head was read.
    Head,
    /// Its key is looked at.
    Key,
    /// What stands behind the `?` is.
    Query,
    /// Its body is received and parsed.
    Body,
    /// Its headers are read for what they wish.
    Headers,
    /// It is read by the rules of its dialect.
    Rules,
    /// Its images are.
    Images,
    /// It waits, and is answered.
    Reads,
    /// It names a prewarm.
    Handle,
    /// It names a task.
    Tasks,
    /// It may name as a task what is a route of its own.
    Reserved,
    /// It is about tasks, and the model learns none.
    Teaches,
    /// It registers one.
    Registers,
}

impl Stage {
    /// All of them.
    pub(super) const ALL: [Self; 13] = [
        Self::Head,
        Self::Key,
        Self::Query,
        Self::Body,
        Self::Headers,
        Self::Rules,
        Self::Images,
        Self::Reads,
        Self::Handle,
        Self::Tasks,
        Self::Reserved,
        Self::Teaches,
        Self::Registers,
    ];

    /// What can go wrong there.
    pub(super) fn faults(self, dialect: Dialect, served: &Served) -> Vec<Fault> {
        match self {
            Self::Head => requests(head()),
            Self::Key => requests(key(served)),
            // The one route that has one is at the root.
            Self::Query if dialect != served.dialect => Vec::new(),
            Self::Query => requests(vec![
                RequestFault::Query { message: word() },
                RequestFault::NotAllowed { message: word() },
            ]),
            Self::Body => {
                requests(body()).into_iter().chain(invalid(dialect, codes::JSON)).collect()
            }
            Self::Headers => requests(headers(dialect)),
            Self::Rules => rules(dialect),
            Self::Images => images(served),
            Self::Reads => reads(),
            Self::Handle => {
                let gone = RequestFault::NoPrewarm { handle: word() };
                vec![gone.into(), DecideError::from(ReadError::Unavailable).into(), internal()]
            }
            Self::Tasks => {
                let none = RequestFault::NoTask { id: word() };
                requests(vec![none])
                    .into_iter()
                    .chain(Self::Teaches.faults(dialect, served))
                    .collect()
            }
            Self::Reserved => requests(vec![RequestFault::MethodNotAllowed { method: word() }]),
            Self::Teaches => vec![DecideError::Unsupported(word()).into(), internal()],
            Self::Registers => {
                let full = RegistrationsFull::OfKey { count: 1, count_max: 1 };
                let full = Fault::from(DecideError::from(full));
                invalid(dialect, codes::TASKS).into_iter().chain([full]).collect()
            }
        }
    }
}

fn word() -> String {
    "word".to_owned()
}

fn internal() -> Fault {
    DecideError::Internal { detail: word() }.into()
}

fn requests(faults: Vec<RequestFault>) -> Vec<Fault> {
    faults.into_iter().map(Fault::from).collect()
}

fn head() -> Vec<RequestFault> {
    vec![
        RequestFault::Host { message: word() },
        RequestFault::Header { name: "x-docket-dialect", message: word() },
        RequestFault::UriTooLong { bytes: 1, bytes_max: 1 },
        RequestFault::TooManyHeaders { count: 1, count_max: 1 },
        RequestFault::EngineDead { reason: word() },
        RequestFault::Panicked,
    ]
}

/// A key has rights and limits only where there are keys.
fn key(served: &Served) -> Vec<RequestFault> {
    let of_rights = || {
        [
            RequestFault::NotAllowed { message: word() },
            RequestFault::RateLimited { limit: 1, retry_after: Duration::ZERO },
            RequestFault::Header { name: FAIRNESS_ID, message: word() },
        ]
    };
    let of_rights = served.needs_key.then(of_rights).into_iter().flatten();
    std::iter::once(RequestFault::Unauthorized).chain(of_rights).collect()
}

fn body() -> Vec<RequestFault> {
    vec![
        RequestFault::MediaType { found: word() },
        RequestFault::Encoding { found: word() },
        RequestFault::Damaged { encoding: "gzip" },
        RequestFault::Window { bytes: 1, bytes_max: 1 },
        RequestFault::BodyTooLarge { bytes_max: 1 },
        RequestFault::BodyTimeout { limit: Duration::ZERO },
        RequestFault::BodyBroken,
        RequestFault::BodiesFull { bytes_max: 1 },
    ]
}

fn headers(dialect: Dialect) -> Vec<RequestFault> {
    let own = RequestFault::DialectHeader { name: "x-decisio-route", message: word() };
    let own = Some(own).filter(|_| dialect == Dialect::Decisio);
    let usual = RequestFault::Header { name: "x-docket-salt", message: word() };
    std::iter::once(usual).chain(own).collect()
}

fn rules(dialect: Dialect) -> Vec<Fault> {
    let mut faults = vec![
        DecideError::Unsupported(word()),
        DecideError::Capability(word()),
        DecideError::NoReadStrategy(word()),
        DecideError::UnknownProfile { name: word(), available: vec![word()] },
    ];
    if dialect == Dialect::Vllm {
        faults.push(DecideError::UnknownModel { name: word(), available: vec![word()] });
        faults.push(DecideError::Template(word()));
    }
    let faults = faults.into_iter().map(Fault::from);
    faults.chain(invalid(dialect, codes::of(dialect))).collect()
}

/// A body with a fault of each of these codes, at places of both kinds and at none.
fn invalid(dialect: Dialect, codes: &[&'static str]) -> Vec<Fault> {
    let paths: [Vec<Step>; 2] = [vec!["questions".into(), 0.into()], Vec::new()];
    let facts = [("max_length", Fact::Count(1)), ("actual_length", Fact::Unknown)];
    // What vLLM says of a body's form has what was sent beside it.
    let input = (words::VLLM_INPUT, Fact::Text(word()));
    let told: &[_] = match dialect {
        Dialect::Vllm => &[input],
        Dialect::Decisio => &facts,
        Dialect::Systemone | Dialect::SelfServe | Dialect::Gmlx | Dialect::Openai => &[],
    };
    let problem = |code: &'static str, path: &Vec<Step>, facts: &[(&'static str, Fact)]| Problem {
        facts: facts.to_vec(),
        ..Problem::new(path.clone(), code, word())
    };
    let fault = |problem| Fault::from(DecideError::Invalid(vec![problem]));
    let each = codes.iter().flat_map(|code| {
        paths.iter().flat_map(move |path| [problem(code, path, told), problem(code, path, &[])])
    });
    each.map(fault).collect()
}

fn images(served: &Served) -> Vec<Fault> {
    let fetch = Some(ImageRefusalKind::Fetch).filter(|_| served.images_max > 0);
    let kinds = [
        ImageRefusalKind::Form,
        ImageRefusalKind::Unsupported,
        ImageRefusalKind::TooLarge,
        ImageRefusalKind::Count,
        ImageRefusalKind::Capability,
    ];
    let refusal = |kind| {
        let path = vec!["images".into(), 0.into()];
        Fault::Image(ImageRefusal { kind, path, message: word() })
    };
    kinds.into_iter().chain(fetch).map(refusal).collect()
}

fn reads() -> Vec<Fault> {
    let rejected = rejections().into_iter().map(ReadError::Rejected);
    let engine = [
        EngineError::NonFinite,
        EngineError::Forward(word()),
        EngineError::Panic(word()),
        EngineError::OutOfMemory(word()),
        EngineError::Dead(word()),
    ];
    let others = [
        ReadError::Expired { waited: Duration::ZERO, spent: None },
        ReadError::Cancelled,
        ReadError::Draining,
        ReadError::Unavailable,
    ];
    let errors = rejected.chain(engine.map(ReadError::Engine)).chain(others);
    errors.map(|error| DecideError::from(error).into()).chain([internal()]).collect()
}

fn rejections() -> Vec<RejectReason> {
    let (retry_after, wait) = (Duration::from_secs(1), Duration::ZERO);
    let downgrade = Some(Lane::Batch);
    vec![
        RejectReason::QueueFull { reads_waiting: 1, reads_max: 1, retry_after },
        RejectReason::TokensFull { tokens_waiting: 1, tokens_max: 1, retry_after },
        RejectReason::WaitTooLong { lane: Lane::Normal, wait, limit: wait, downgrade, retry_after },
        RejectReason::PastDeadline { wait, left: wait, downgrade, retry_after },
        RejectReason::TenantFull { reads_waiting: 1, reads_max: 1, retry_after },
        RejectReason::TenantRate { tokens: 1, rate: 1, burst: 1, retry_after },
        RejectReason::PrewarmsFull { waiting: 1, waiting_max: 1, of_tenant: false, retry_after },
        RejectReason::Displaced { retry_after },
        RejectReason::TooLong { tokens: 1, tokens_max: 1 },
        RejectReason::Oversize { bytes: 1, bytes_max: 1 },
        RejectReason::Draining,
        RejectReason::EngineDead(word()),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A new kind of fault does not compile here before it has a name, and then has to be among those
    /// that the document describes.
    fn name(fault: &RequestFault) -> &'static str {
        match fault {
            RequestFault::Unauthorized => "unauthorized",
            RequestFault::NotAllowed { .. } => "not_allowed",
            RequestFault::RateLimited { .. } => "rate_limited",
            RequestFault::Query { .. } => "query",
            RequestFault::NotFound { .. } => "-not_found",
            RequestFault::NoPrewarm { .. } => "no_prewarm",
            RequestFault::NoTask { .. } => "no_task",
            RequestFault::MethodNotAllowed { .. } => "method_not_allowed",
            RequestFault::UnknownDialect { .. } => "-unknown_dialect",
            RequestFault::Header { .. } => "header",
            RequestFault::Host { .. } => "host",
            RequestFault::DialectHeader { .. } => "dialect_header",
            RequestFault::MediaType { .. } => "media_type",
            RequestFault::Encoding { .. } => "encoding",
            RequestFault::Damaged { .. } => "damaged",
            RequestFault::Window { .. } => "window",
            RequestFault::UriTooLong { .. } => "uri_too_long",
            RequestFault::TooManyHeaders { .. } => "too_many_headers",
            RequestFault::BodyTooLarge { .. } => "body_too_large",
            RequestFault::BodyTimeout { .. } => "body_timeout",
            RequestFault::BodyBroken => "body_broken",
            RequestFault::BodiesFull { .. } => "bodies_full",
            RequestFault::EngineDead { .. } => "engine_dead",
            RequestFault::Panicked => "panicked",
            RequestFault::Gateway(_) => "-gateway",
        }
    }

    /// Those that can happen on a route of the document: all but the three that begin with a line.
    const NAMES: [&str; 22] = [
        "bodies_full",
        "body_broken",
        "body_timeout",
        "body_too_large",
        "damaged",
        "dialect_header",
        "encoding",
        "engine_dead",
        "header",
        "host",
        "media_type",
        "method_not_allowed",
        "no_prewarm",
        "no_task",
        "not_allowed",
        "panicked",
        "query",
        "rate_limited",
        "too_many_headers",
        "unauthorized",
        "uri_too_long",
        "window",
    ];

    #[test]
    fn every_fault_of_a_request_is_described() {
        let served = Served { needs_key: true, dialect: Dialect::Decisio, ..Served::default() };
        let all = Stage::ALL.into_iter().flat_map(|stage| stage.faults(Dialect::Decisio, &served));
        let found: BTreeSet<&str> = all
            .filter_map(|fault| match fault {
                Fault::Request(fault) => Some(name(&fault)),
                Fault::Decide(_) | Fault::Image(_) => None,
            })
            .collect();
        assert_eq!(found, NAMES.into_iter().collect());
    }
}
