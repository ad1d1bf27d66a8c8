//! What is wrong with a request as HTTP, before any dialect reads its body.

use std::time::Duration;

use thiserror::Error;

use super::GatewayFault;

/// What is wrong with a request as HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestFault {
    /// No key, or none that is known.
    #[error("a valid API key is required, as `Authorization: Bearer KEY` or `x-api-key: KEY`")]
    Unauthorized,
    /// The key has no right to it.
    #[error("{message}")]
    NotAllowed {
        /// To what.
        message: String,
    },
    /// What stands behind the `?` of a path cannot be.
    #[error("{message}")]
    Query {
        /// What, and what may be.
        message: String,
    },
    /// The tenant's requests of this minute are used up.
    #[error("{limit} requests a minute are allowed to this tenant, and all of them are used up")]
    RateLimited {
        /// Requests a minute.
        limit: u64,
        /// When the next one is allowed.
        retry_after: Duration,
    },
    /// No such route.
    #[error("no route {path}")]
    NotFound {
        /// As sent, cut.
        method: String,
        /// As sent, cut.
        path: String,
    },
    /// The caller has no prewarm of this name.
    #[error("no prewarm {handle}")]
    NoPrewarm {
        /// As sent, cut.
        handle: String,
    },
    /// The caller has no task of this name.
    #[error("no task {id}")]
    NoTask {
        /// As sent, cut.
        id: String,
    },
    /// The route is there, but not for this method.
    #[error("{method} is not allowed on this route, see the Allow header")]
    MethodNotAllowed {
        /// As sent, cut.
        method: String,
    },
    /// The path or header names a dialect that is not served.
    #[error("unknown dialect {name}; available: systemone, decisio, self, vllm, gmlx, openai")]
    UnknownDialect {
        /// As sent, cut.
        name: String,
        /// Whether the path named it: then there is no such route.
        in_path: bool,
    },
    /// A request header has a value that it cannot have.
    #[error("header {name}: {message}")]
    Header {
        /// The header.
        name: &'static str,
        /// What it must be, and what it was.
        message: String,
    },
    /// The request does not say whom it is for, or it is for somebody else.
    #[error("{message}")]
    Host {
        /// What the header must say, and what it said.
        message: String,
    },
    /// A header of the dialect has a value that it cannot have.
    #[error("header {name}: {message}")]
    DialectHeader {
        /// The header.
        name: &'static str,
        /// What it must be, and what it was.
        message: String,
    },
    /// The body is of another type.
    #[error("content type {found} is not supported, send application/json")]
    MediaType {
        /// As sent, cut.
        found: String,
    },
    /// The body is compressed in an unknown way.
    #[error("content encoding {found} is not supported, send zstd, gzip or identity")]
    Encoding {
        /// As sent, cut.
        found: String,
    },
    /// The compressed body is damaged.
    #[error("the body is not valid {encoding}")]
    Damaged {
        /// `zstd` or `gzip`.
        encoding: &'static str,
    },
    /// A zstd frame wants more memory than is lent.
    #[error("a zstd window of {bytes} bytes, at most {bytes_max} are decoded")]
    Window {
        /// As the frame says.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The path and query are longer than the limit.
    #[error("the URI is {bytes} bytes, at most {bytes_max} are read")]
    UriTooLong {
        /// As sent.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// There are more headers than the limit.
    #[error("the request has {count} headers, at most {count_max} are read")]
    TooManyHeaders {
        /// As sent.
        count: usize,
        /// The limit.
        count_max: usize,
    },
    /// The body is longer than the limit, compressed or decompressed.
    #[error("the body is larger than {bytes_max} bytes")]
    BodyTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// The body did not come in time.
    #[error("the body did not arrive within {limit:?}")]
    BodyTimeout {
        /// The limit.
        limit: Duration,
    },
    /// The body ended before its announced length.
    #[error("the body ended early")]
    BodyBroken,
    /// All bodies being received together are more than the server holds.
    #[error("the bodies being received exceed {bytes_max} bytes")]
    BodiesFull {
        /// The limit.
        bytes_max: usize,
    },
    /// Nothing will be answered any more.
    #[error("the engine is dead: {reason}")]
    EngineDead {
        /// As `/health` says.
        reason: String,
    },
    /// The handler panicked; the log says where.
    #[error("internal error")]
    Panicked,
    /// A gateway has no answer of a server behind it.
    #[error(transparent)]
    Gateway(#[from] GatewayFault),
}
