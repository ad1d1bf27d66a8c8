//! Tokenizers: text to ids, with control tokens only where a template says so.

pub mod bytes;
pub mod model;

use std::fmt;

use tokio::sync::Semaphore;

/// A text tokenizer. Implementations: `tokens/bytes.rs` (the fake engine's), `tokens/model.rs`.
pub trait TextTokenizer: Send + Sync + fmt::Debug {
    /// Tokenises text as plain text: no BOS, and never a control token whatever the text says.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// All control tokens (`<|im_start|>`, ...) with their ids, longest text first.
    fn controls(&self) -> &[(String, u32)];

    /// The bytes that these tokens stand for; control tokens give their text.
    fn decode(&self, ids: &[u32]) -> Vec<u8>;

    /// Number of ids.
    fn vocab_size(&self) -> usize;
}

/// Texts that are tokenised at one time outside the runtime's workers.
const TOKENISERS_MAX: usize = 2;

/// Bounds the blocking threads that tokenise; waiting texts wait here, in the order they came.
static TOKENISERS: Semaphore = Semaphore::const_new(TOKENISERS_MAX);

/// Runs `work` on a text of `bytes`: here where that is short, else on a blocking thread, so that a
/// long text does not hold up a worker of the runtime.
pub async fn off_thread<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if bytes <= super::OFF_THREAD_BYTES {
        return work();
    }
    // The semaphore is never closed; without a permit the work is still right, only unbounded.
    let _permit = TOKENISERS.acquire().await.ok();
    #[expect(clippy::disallowed_methods, reason = "the one place, behind the semaphore above")]
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
