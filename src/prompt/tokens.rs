//! Tokenizers: text to ids, with control tokens only where a template says so.

pub mod bytes;
pub mod fit;
pub mod model;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;

use crate::telemetry;

/// A text tokenizer. Implementations: `tokens/bytes.rs` (the fake engine's), `tokens/model.rs`.
pub trait TextTokenizer: Send + Sync + fmt::Debug {
    /// Tokenises text as plain text: no BOS, and never a control token whatever the text says.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// A number of tokens that `text` has for certain, told from its bytes in one pass; 0 where
    /// nothing is certain.
    fn tokens_min(&self, _text: &str) -> usize {
        0
    }

    /// All control tokens (`<|im_start|>`, ...) with their ids, longest text first.
    fn controls(&self) -> &[(String, u32)];

    /// Whether white space behind this control token in a template is part of it.
    fn strips_after(&self, control: u32) -> bool {
        let _ = control;
        false
    }

    /// The bytes that these tokens stand for; control tokens give their text.
    fn decode(&self, ids: &[u32]) -> Vec<u8>;

    /// Number of ids.
    fn vocab_size(&self) -> usize;
}

/// Texts that are tokenised at one time outside the runtime's workers.
pub(crate) const TOKENISERS_MAX: usize = 2;

/// Bounds the blocking threads that tokenise; waiting texts wait here, in the order they came.
static TOKENISERS: Semaphore = Semaphore::const_new(TOKENISERS_MAX);

/// Whether the one who asked for work has gone; then what it gives is never seen.
#[derive(Debug, Clone, Default)]
pub struct Gone(Arc<AtomicBool>);

impl Gone {
    /// Whether the work should stop, and give whatever it has.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Says so when the future that waits for the work is dropped.
struct Waiting(Gone);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Runs `work` on texts of `bytes`: here where that is short, else on a blocking thread, so that a
/// long text does not hold up a worker of the runtime.
///
/// Work on a thread goes on when this future is dropped, and holds its place among the tokenisers
/// until it ends; it is told by [`Gone`], which it is to look at between texts.
pub async fn off_thread<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce(&Gone) -> T + Send + 'static,
) -> T {
    if bytes <= super::OFF_THREAD_BYTES {
        return work(&Gone::default());
    }
    on_thread(&TOKENISERS, work).await
}

async fn on_thread<T: Send + 'static>(
    places: &'static Semaphore,
    work: impl FnOnce(&Gone) -> T + Send + 'static,
) -> T {
    // The semaphore is never closed; without a permit the work is still right, only unbounded.
    let queued = telemetry::text_waiting();
    let place = places.acquire().await.ok();
    drop(queued);
    let waiting = Waiting(Gone::default());
    let gone = waiting.0.clone();
    let work = move || {
        // Moved in: the place is taken until the work ends, not until nobody waits for it.
        let (_place, _busy) = (place, telemetry::tokeniser());
        work(&gone)
    };
    #[expect(clippy::disallowed_methods, reason = "the one place, behind the semaphore above")]
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_place_is_held_until_the_work_ends_and_the_work_hears_that_nobody_waits() {
        static PLACES: Semaphore = Semaphore::const_new(1);
        let (began, begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let (ended, end) = mpsc::channel();
        let work = move |gone: &Gone| {
            began.send(()).unwrap();
            may_go_on.recv().unwrap();
            ended.send(gone.is_set()).unwrap();
        };
        let mut waiting = Box::pin(on_thread(&PLACES, work));
        let at_once = tokio::time::timeout(Duration::ZERO, waiting.as_mut()).await;
        assert!(at_once.is_err(), "it is still at work");
        begun.recv().unwrap();
        drop(waiting);
        assert_eq!(PLACES.available_permits(), 0, "the thread still runs");
        go_on.send(()).unwrap();
        assert!(end.recv().unwrap(), "it was told");
        let _place = PLACES.acquire().await.unwrap();
    }

    #[tokio::test]
    async fn work_whose_asker_waits_is_not_told_to_stop() {
        assert!(!off_thread(usize::MAX, Gone::is_set).await);
        assert!(!off_thread(0, Gone::is_set).await);
    }
}
