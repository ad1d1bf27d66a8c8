//! Panics as log lines.
//!
//! A server that catches panics and goes on must tell of them where it tells of everything else, and
//! in the same form; the default is text on standard error.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};
use std::thread;

use tracing::Level;

/// Longest message that is logged, in characters.
const MESSAGE_CHARS_MAX: usize = 500;

/// Beginnings of the names of threads that see tokens at most. What another one says when it panics
/// may quote a request.
const TEXTLESS_THREADS: [&str; 4] = ["engine-", "kernel-", "load", "main"];

/// From now on a panic of any thread is one line of the log, with its place, and with a backtrace
/// where `RUST_BACKTRACE` asks for one. What is said by threads that handle requests is written at
/// the level `debug` only.
pub fn log() {
    panic::set_hook(Box::new(tell));
}

fn tell(panic: &PanicHookInfo<'_>) {
    let thread = thread::current();
    let thread = thread.name().unwrap_or("without a name");
    let place = panic.location().map(ToString::to_string);
    let place = place.as_deref();
    let backtrace = Backtrace::capture();
    let is_captured = backtrace.status() == BacktraceStatus::Captured;
    let backtrace = is_captured.then(|| backtrace.to_string());
    let backtrace = backtrace.as_deref();
    let may_be_said = is_textless(thread) || tracing::enabled!(Level::DEBUG);
    let why = panic.payload_as_str().filter(|_| may_be_said);
    let why = why.map(|why| why.chars().take(MESSAGE_CHARS_MAX).collect::<String>());
    let why = why.as_deref();
    tracing::error!(thread, place, why, backtrace, "a thread panicked");
}

fn is_textless(thread: &str) -> bool {
    TEXTLESS_THREADS.iter().any(|name| thread.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_threads_without_texts_are_quoted() {
        for (thread, is_quoted) in
            [("engine-0", true), ("kernel-3", true), ("tokio-rt-worker", false), ("", false)]
        {
            assert_eq!(is_textless(thread), is_quoted, "{thread}");
        }
    }
}
