//! Details for those who look: made only while somebody does, and never for much of an actor's time.
//!
//! A look says that details are wanted for [`WANTED_FOR`]. An actor makes them on its ticks, at most once
//! in [`EVERY`], and so rarely that all of them together take at most one part in [`PART`] of its time,
//! however much there is to walk over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use metrics::Histogram;
use tokio::time::Instant;

use crate::snapshot::{QueueDetails, ResidencyDetails};

/// For how long details are made after somebody looked.
const WANTED_FOR: Duration = Duration::from_secs(2);

/// Not more often than this.
const EVERY: Duration = Duration::from_millis(400);

/// Which part of an actor's time details may take: one in so many.
const PART: u32 = 200;

/// What is wanted and what there is.
pub(crate) struct Watch {
    began: Instant,
    /// Until when details are wanted, in milliseconds after `began`.
    until_ms: AtomicU64,
    queue: ArcSwapOption<Made<QueueDetails>>,
    residency: ArcSwapOption<Made<ResidencyDetails>>,
}

/// Details of a moment.
#[derive(Debug)]
struct Made<T> {
    at: Instant,
    /// How long they stay true enough to be shown.
    good_for: Duration,
    details: Arc<T>,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            until_ms: AtomicU64::new(0),
            queue: ArcSwapOption::empty(),
            residency: ArcSwapOption::empty(),
        }
    }

    /// Wants details for a while; what was made of late.
    pub(crate) fn look(&self) -> (Option<Arc<QueueDetails>>, Option<Arc<ResidencyDetails>>) {
        let until = self.began.elapsed() + WANTED_FOR;
        self.until_ms.store(until.as_millis().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
        (fresh(&self.queue), fresh(&self.residency))
    }

    fn is_wanted(&self) -> bool {
        self.began.elapsed() < Duration::from_millis(self.until_ms.load(Ordering::Relaxed))
    }

    /// Makes details of what waits and runs where it is time for that.
    pub(crate) fn show_queue(&self, turn: &mut Turn, make: impl FnOnce() -> QueueDetails) {
        if let Some(made) = self.make(turn, make) {
            self.queue.store(Some(Arc::new(made)));
        }
    }

    /// Likewise of what is held.
    pub(crate) fn show_residency(&self, turn: &mut Turn, make: impl FnOnce() -> ResidencyDetails) {
        if let Some(made) = self.make(turn, make) {
            self.residency.store(Some(Arc::new(made)));
        }
    }

    fn make<T>(&self, turn: &mut Turn, make: impl FnOnce() -> T) -> Option<Made<T>> {
        if !self.is_wanted() || !turn.has_come() {
            return None;
        }
        let details = Arc::new(turn.time(make));
        Some(Made { at: Instant::now(), good_for: turn.pause + WANTED_FOR, details })
    }
}

fn fresh<T>(shown: &ArcSwapOption<Made<T>>) -> Option<Arc<T>> {
    let made = shown.load();
    let made = made.as_ref().filter(|made| made.at.elapsed() <= made.good_for)?;
    Some(Arc::clone(&made.details))
}

/// When an actor next makes details.
#[derive(Debug)]
pub(crate) struct Turn {
    next: Option<Instant>,
    /// From the last time to the next.
    pause: Duration,
    /// What that took is told to this.
    meter: Histogram,
}

impl Turn {
    pub(crate) fn new(meter: &Histogram) -> Self {
        Self { next: None, pause: Duration::ZERO, meter: meter.clone() }
    }

    fn has_come(&self) -> bool {
        self.next.is_none_or(|next| Instant::now() >= next)
    }

    /// Runs `make` and sets the next turn by how long that really took.
    #[expect(clippy::disallowed_methods, reason = "what it costs is real also in paused time")]
    fn time<T>(&mut self, make: impl FnOnce() -> T) -> T {
        let began = std::time::Instant::now();
        let made = make();
        let took = began.elapsed();
        self.meter.record(took);
        self.pause = EVERY.max(took * PART);
        self.next = Some(Instant::now() + self.pause);
        made
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn details_are_made_only_while_somebody_looks() {
        let (watch, made) = (Watch::new(), Cell::new(0));
        let mut turn = Turn::new(&Histogram::noop());
        let mut show = || {
            let count = || made.set(made.get() + 1);
            watch.show_queue(&mut turn, || (count(), QueueDetails::default()).1);
        };
        show();
        assert_eq!(made.get(), 0, "nobody has looked");
        assert_eq!(watch.look(), (None, None));
        show();
        show();
        assert_eq!(made.get(), 1, "the second came too early");
        assert!(watch.look().0.is_some());
        advance(Duration::from_secs(1)).await;
        show();
        assert_eq!(made.get(), 2);
        advance(Duration::from_secs(2)).await;
        show();
        assert_eq!(made.get(), 2, "nobody looks any more");
        advance(Duration::from_secs(5)).await;
        assert_eq!(watch.look().0, None, "what is old is not shown");
    }

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "something that takes a while")]
    async fn what_takes_long_is_made_rarely() {
        let (mut turn, takes, step) =
            (Turn::new(&Histogram::noop()), Duration::from_millis(5), Duration::from_millis(1));
        turn.time(|| std::thread::sleep(takes));
        assert!(turn.pause >= takes * PART, "{:?}", turn.pause);
        advance(turn.pause.saturating_sub(step)).await;
        assert!(!turn.has_come());
        advance(step).await;
        assert!(turn.has_come());
    }
}
