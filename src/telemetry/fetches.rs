//! Metrics of images that are fetched: how many at a time, and how they end.

use std::sync::LazyLock;

use metrics::{Counter, Gauge, counter, gauge};

use super::{FETCHED, FETCHES, Held, limit};

/// How the fetch of an image ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FetchEnd {
    /// With an image.
    Done,
    /// Its host, or where it led to, is not let in or not known.
    Refused,
    /// There was no answer, or another one than an image.
    Failed,
    /// What came is not accepted as an image.
    Bad,
    /// It took too long.
    Timeout,
    /// It waited too long for others.
    Busy,
}

/// Their labels, in the order of [`FetchEnd`].
const ENDS: [&str; 6] = ["done", "refused", "failed", "bad", "timeout", "busy"];

static FETCHING: LazyLock<Gauge> = LazyLock::new(|| gauge!(FETCHES));
static ENDED: LazyLock<[Counter; 6]> =
    LazyLock::new(|| ENDS.map(|end| counter!(FETCHED, "end" => end)));

/// Registers them, so that they are shown before the first.
pub(super) fn start() {
    LazyLock::force(&FETCHING);
    LazyLock::force(&ENDED);
}

/// Shows the limit of images being fetched.
pub(crate) fn image_fetches_max(fetches: usize) {
    limit(FETCHES, fetches);
}

/// An image is being fetched.
pub(crate) fn image_fetch() -> Held {
    Held::by(&FETCHING)
}

/// The fetch of an image ended.
pub(crate) fn image_fetched(end: FetchEnd) {
    ENDED[end as usize].increment(1);
}
