//! What was typed.

use clap::Parser;

/// Sends decisions in a closed loop and reports latency, queue wait and engine time.
#[derive(Debug, Clone, Parser)]
#[command(version)]
pub(crate) struct Options {
    /// The server.
    #[arg(long, default_value = "http://127.0.0.1:8000")]
    pub(crate) url: String,
    /// Clients that each keep one request in flight.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) clients: u32,
    /// Requests in all.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) requests: u32,
    /// Different states; requests take them in turn.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) states: u32,
    /// Words in a state.
    #[arg(long, default_value_t = 60)]
    pub(crate) state_words: u32,
    /// Questions in a request.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) questions: u32,
    /// Seconds after which a request counts as failed.
    #[arg(long, default_value_t = 120)]
    pub(crate) timeout_s: u64,
}
