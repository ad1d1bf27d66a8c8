//! The four actors of docket and their pure planner, generic over an [`Engine`].
//!
//! ```text
//! Handle::open ─▶ RequestActor ─reads─▶ SchedulerActor ─step─▶ engine, one step at a time
//!                  ▲        │            │  ▲        ▲
//!                  │        │ responded  │  │ lease  │ wanted states
//!                  outcomes ▼            ▼  │        │
//!            RegistrationActor ─promote─▶ CacheActor (residency of keys and values, pins)
//! ```
//!
//! What decides lives in [`plan`], without clock or channel; the actors perform it. Nothing here
//! knows a tensor, a question or HTTP.

mod cache;
pub mod config;
pub mod engine;
pub mod error;
mod expected;
mod forecast;
mod handle;
mod limits;
mod links;
mod log;
pub mod observe;
pub mod plan;
mod prefix;
mod prewarm;
pub mod read;
mod registration;
mod request;
mod restarts;
mod scheduler;
pub mod snapshot;
mod supervise;
mod tenants;
mod work;

pub use config::{
    CacheConfig, Config, ConfigProblem, OrderConfig, Ranking, Register, RegistrationConfig,
    SchedulerConfig,
};
pub use engine::{
    Caps, Chunk, Completion, Engine, EngineError, Epoch, Origin, PAGE_TOKENS, PathPart, Row,
    RowOutcome, Segment, Step, StepOutcome,
};
pub use error::{ReadError, RejectReason, Spent};
pub use forecast::Forecast;
pub use handle::{DecisionHandle, DecisionMeta, Handle};
pub use limits::TenantLimits;
pub use plan::{DecisionId, ReadId};
pub use prefix::{Prefix, SegmentSpec};
pub use prewarm::{PinHandle, PrewarmOutcome, PrewarmSpec, Tier};
pub use read::{Lane, ReadOutcome, ReadSpec, ReadTiming, SegmentKey, TENANT_BUCKETS, TenantId};
pub use restarts::{ActorKind, Restarts};
pub use snapshot::{
    ChunkLogEntry, DrainReport, EngineState, LoadView, RegistrationCounters, ResidencyView,
    Snapshot, StateCounts, StepFailure, StepKind, StepLogEntry, TOP_TENANTS, Then, Totals,
};
pub use supervise::{StartError, start};
pub use tenants::Bucket;
pub use work::{Account, Work};
