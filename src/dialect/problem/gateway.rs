//! What a gateway itself refuses or fails at, before or instead of an answer of one of its backends.

use std::time::Duration;

use thiserror::Error;

use super::{Refusal, again, detail, internal};

/// Why a gateway has no answer of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GatewayFault {
    /// None takes requests, or none of those that were tried could be reached.
    #[error("no server behind the gateway takes requests now")]
    NoBackend,
    /// As many requests are under way as may be.
    #[error("{count_max} requests are under way, and no more are taken")]
    Full {
        /// The limit.
        count_max: usize,
    },
    /// It was asked, and the connection broke before it answered.
    #[error("the connection to the server behind the gateway broke before its answer")]
    Lost,
    /// It did not answer in time.
    #[error("the server behind the gateway did not answer within {limit:?}")]
    Timeout {
        /// The limit.
        limit: Duration,
    },
}

/// The `systemone` shape.
pub(super) fn of_gateway(fault: GatewayFault) -> Refusal {
    let message = fault.to_string();
    match fault {
        GatewayFault::NoBackend => again(internal(503, "no_backend", &message)),
        GatewayFault::Full { .. } => again(internal(503, "gateway_full", &message)),
        GatewayFault::Lost => internal(502, "backend_lost", &message),
        GatewayFault::Timeout { .. } => detail(504, "timeout", "backend_timeout", &message),
    }
}
