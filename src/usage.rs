//! Usage of each tenant: what it asked for and what that cost, kept across restarts.
//!
//! ```text
//! Meter::add ──> Ledger (memory) ──every 500 ms, a thread of its own──> Store (one transaction)
//!                   │                                                        │
//!                   └──> Usage ──> JSON of GET /v1/usage                     └──> Meter::read: `docket usage`
//! ```
//! What is written are absolute values, so that a flush that is repeated, or of which nobody knows
//! whether it came to its end, never counts anything twice. What is read comes from memory, which is
//! filled from the store once, at start. Nothing here knows of HTTP, of keys or of the engine.

mod account;
mod counts;
mod day;
mod error;
mod flush;
mod ledger;
mod meter;
mod store;
mod view;
mod wanted;

pub use counts::Counts;
pub use day::Day;
pub use error::UsageError;
pub use flush::Status;
pub use meter::Meter;
pub use view::{DayUsage, SubUsage, Usage, UsageOfAll};
pub use wanted::Wanted;
pub(crate) use wanted::{parse_days, parse_tenant};

use std::time::Duration;

/// Name of the usual folder, beside the models.
pub const FOLDER: &str = "usage";

/// Time between two flushes: with the time that a flush takes, most that a killed process forgets.
pub const FLUSH_EVERY: Duration = Duration::from_millis(500);

/// Most tenants that are counted each on its own; further ones are counted as [`OTHERS`].
pub const TENANTS_MAX: usize = 10_000;

/// Most sub-tenants of one tenant that are counted each on its own; further ones are counted as its
/// `PARENT/(others)`.
pub const SUB_TENANTS_MAX: usize = 1_000;

/// Most sub-tenants of all tenants together, so that a few tenants with many cannot use up memory.
pub const ALL_SUB_TENANTS_MAX: usize = 20_000;

/// Days that are kept of each tenant: the last ones on which it was counted. The calendar is not
/// asked, so that a clock that once was wrong removes nothing.
pub const DAYS_MAX: usize = 400;

/// Most records of a day, of all tenants together; beyond it the oldest days go.
pub const DAY_RECORDS_MAX: usize = 400_000;

/// Days that are shown where nobody says how many.
pub const DAYS_DEFAULT: u32 = 30;

/// Whom those are counted for that no longer have a place of their own; no tenant can have this name.
pub const OTHERS: &str = "(others)";

#[cfg(test)]
mod tests;
