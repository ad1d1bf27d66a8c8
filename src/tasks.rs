//! Tasks: what labelled examples of one recurring question teach, kept and applied.
//!
//! A *task* corrects the answers to a question (`fit::calibration`, `fit::head`) and may certify them;
//! an *abstention task* says when an option for not knowing is believed. Both are registered by a
//! tenant, apply to that tenant's requests alone, and only to questions that are shown and read as the
//! examples were: a fingerprint of model and layout says so.

pub mod apply;
pub mod desk;
pub mod fit;
mod fitted;
pub mod identity;
pub mod order;
pub mod record;
pub mod register;

/// Longest id of a task in bytes.
pub const ID_BYTES_MAX: usize = 200;

/// Most examples of one task, those of its certificate included.
pub const EXAMPLES_MAX: usize = 5_000;

/// Most tasks, and most abstention tasks, of one tenant.
pub const TASKS_MAX: usize = 256;

/// Most registrations of one tenant that are under way or whose end can still be asked for.
pub const REGISTRATIONS_MAX: usize = 32;

/// Most bytes of memory of the examples of all registrations under way, of all tenants: 128 MiB.
pub const REGISTRATIONS_BYTES_MAX: usize = 128 << 20;

/// Most bytes of the heads of one tenant's tasks.
pub const HEADS_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests;
