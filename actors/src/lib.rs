//! The four actors of docket and their pure planner, generic over an [`Engine`].

pub mod engine;
pub mod error;
pub mod read;

pub use engine::{
    Caps, Chunk, Completion, Engine, EngineError, Epoch, PAGE_TOKENS, PathPart, Row, RowOutcome,
    Segment, Step, StepOutcome,
};
pub use error::{ReadError, RejectReason};
pub use read::{
    Lane, Prefix, ReadOutcome, ReadSpec, ReadTiming, SegmentKey, SegmentSpec, TenantId,
};
