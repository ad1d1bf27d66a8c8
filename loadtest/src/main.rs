//! The load test: sends decisions to a server over HTTP and reports what they waited for.
//!
//! It shares no code with the server, so that a wrong wire format cannot pass unseen. This is the
//! smoke form: a closed loop of N clients. The open loop and the drivers of other servers come with
//! the load test's own issue.
#![expect(clippy::print_stdout, reason = "a report is its output")]

mod cli;
mod client;
mod report;

use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    let options = cli::Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(client::run(&options))?;
    println!("{}", report::render(&outcome));
    anyhow::ensure!(outcome.failed == 0, "{} of {} requests failed", outcome.failed, outcome.sent);
    Ok(())
}
