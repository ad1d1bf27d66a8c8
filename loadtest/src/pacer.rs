//! The pacer: waits for the start of a request to within microseconds.
//!
//! Tokio's timers have a resolution of one millisecond, which at 5,000 requests a second would bundle
//! five starts and charge the server for it. On Linux a timer file descriptor wakes the runtime instead.

#[cfg_attr(target_os = "linux", path = "pacer/timerfd.rs")]
#[cfg_attr(not(target_os = "linux"), path = "pacer/absent.rs")]
mod precise;

use tokio::time::Instant;

/// Waits for moments in time.
#[derive(Debug)]
pub(crate) struct Pacer {
    timer: Option<precise::Timer>,
}

impl Pacer {
    /// A pacer with the best timer that the machine has.
    pub(crate) fn precise() -> std::io::Result<Self> {
        Ok(Self { timer: precise::Timer::open()? })
    }

    /// A pacer by Tokio's clock: one millisecond, and virtual where a test has paused it.
    #[cfg(test)]
    pub(crate) fn by_tokio() -> Self {
        Self { timer: None }
    }

    /// Waits until `at`; returns at once where that has passed.
    pub(crate) async fn until(&mut self, at: Instant) -> std::io::Result<()> {
        if let Some(timer) = &mut self.timer {
            return timer.until(at).await;
        }
        tokio::time::sleep_until(at).await;
        Ok(())
    }
}
