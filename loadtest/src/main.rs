//! The load test: sends decisions to a server over HTTP and reports what they waited for.
//!
//! It shares no code with the server, so that a wrong wire format cannot pass unseen. One thread does
//! everything: the generator often shares its machine with the server, and must not take its cores.
//!
//! ```text
//! workload (TOML, seed) ─▶ requests ─┐
//! arrivals (rate, seed) ─▶ plan ─────┴▶ load: open or closed ─▶ client (driver) ─▶ server
//!                                          └─ exchange (one end each) ─▶ measures ─▶ report
//! ```
#![expect(clippy::print_stdout, reason = "a report is its output")]

mod arrivals;
mod cli;
mod client;
mod commands;
mod drivers;
mod exchange;
mod knee;
mod load;
mod measure;
mod null;
mod pacer;
mod prose;
mod random;
mod report;
mod retries;
mod workload;

use std::path::Path;

use anyhow::{Context as _, ensure};
use clap::Parser as _;

use cli::{Cli, Command};
use report::Sweep;

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    let (report, json) = match &cli.command {
        Command::Open(open) => {
            (tasks.block_on(&runtime, commands::open(open))?, open.common.json.as_ref())
        }
        Command::Closed(closed) => {
            (tasks.block_on(&runtime, commands::closed(closed))?, closed.common.json.as_ref())
        }
        Command::Knee(knee) => {
            let sweep = tasks.block_on(&runtime, commands::knee(knee))?;
            return finish_knee(&sweep, knee.common.json.as_deref());
        }
        Command::Smoke(smoke) => (tasks.block_on(&runtime, commands::smoke(smoke))?, None),
        Command::Null(null) => {
            println!("answering every request at once on http://127.0.0.1:{}", null.port);
            return tasks.block_on(&runtime, null::serve(null.port));
        }
    };
    println!("{}", report.table());
    if let Some(path) = json {
        write_json(path, &report.json())?;
    }
    let (answered, sent) = (report.answered(), report.sent());
    let wants_all = matches!(cli.command, Command::Smoke(_));
    ensure!(!wants_all || answered == sent, "{} of {sent} requests failed", sent - answered);
    ensure!(answered > 0, "none of {sent} requests was answered");
    Ok(())
}

/// A search that found no rate which holds has failed.
fn finish_knee(sweep: &Sweep, json: Option<&Path>) -> anyhow::Result<()> {
    println!("\n{}", sweep.table());
    if let Some(path) = json {
        write_json(path, &sweep.json())?;
    }
    ensure!(sweep.knee.is_some(), "{}", sweep.verdict());
    Ok(())
}

fn write_json(path: &Path, json: &serde_json::Value) -> anyhow::Result<()> {
    std::fs::write(path, format!("{json:#}\n"))
        .with_context(|| format!("--json {}", path.display()))
}
