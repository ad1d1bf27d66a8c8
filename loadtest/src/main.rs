//! The load test: sends decisions to a server over HTTP and reports what they waited for.
//!
//! It shares no code with the server, so that a wrong wire format cannot pass unseen. One thread does
//! everything: the generator often shares its machine with the server, and must not take its cores.
//!
//! ```text
//! workload (TOML, seed) ─▶ requests ─┐
//! arrivals (rate, seed) ─▶ plan ─────┴▶ load: open or closed ─▶ client (driver) ─▶ server
//!                                          └─ exchange (one end each) ─▶ measures ─▶ report
//! reports (JSON) ─▶ compare
//! ```

mod arrivals;
mod cli;
mod client;
mod commands;
mod compare;
mod drivers;
mod exchange;
mod files;
mod html;
mod interrupt;
mod knee;
mod load;
mod machine;
mod measure;
mod null;
mod observe;
mod pacer;
mod printed;
mod progress;
mod prose;
mod random;
mod report;
mod retries;
mod server;
mod workload;

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::Parser as _;

use cli::{Cli, Command, Common};
use interrupt::Interrupt;
use report::Sweep;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not as `main` shows an error: what a user did needs no stack.
            let _ = writeln!(io::stderr(), "loadtest: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    let (report, json, html) = match &cli.command {
        Command::Open(open) => {
            let report = tasks
                .block_on(&runtime, async { commands::open(open, &Interrupt::listen()).await })?;
            (report, open.common.json.as_ref(), open.common.reporting.html.as_ref())
        }
        Command::Closed(closed) => {
            let report = tasks.block_on(&runtime, async {
                commands::closed(closed, &Interrupt::listen()).await
            })?;
            (report, closed.common.json.as_ref(), closed.common.reporting.html.as_ref())
        }
        Command::Knee(knee) => {
            let sweep = tasks
                .block_on(&runtime, async { commands::knee(knee, &Interrupt::listen()).await })?;
            return finish_knee(&sweep, &knee.common);
        }
        Command::Smoke(smoke) => {
            let report = tasks
                .block_on(&runtime, async { commands::smoke(smoke, &Interrupt::listen()).await })?;
            (report, None, None)
        }
        Command::Compare(files) => return compare::run(files),
        Command::Null(null) => {
            printed::line(format_args!(
                "answering every request at once on http://127.0.0.1:{}",
                null.port
            ))?;
            return tasks.block_on(&runtime, null::serve(null.port));
        }
    };
    printed::line(report.table())?;
    if let Some(path) = json {
        report::write(path, &report::json_text(&report.json())?)?;
    }
    if let Some(path) = html {
        report::write(path, &report.html())?;
    }
    if let Some(interrupted) = report.interrupted() {
        bail!("{interrupted}");
    }
    let (answered, sent) = (report.answered(), report.sent());
    let wants_all = matches!(cli.command, Command::Smoke(_));
    ensure!(!wants_all || answered == sent, "{} of {sent} requests failed", sent - answered);
    ensure!(answered > 0, "none of {sent} requests was answered");
    Ok(())
}

/// A search that found no rate which holds has failed.
fn finish_knee(sweep: &Sweep, common: &Common) -> anyhow::Result<()> {
    printed::line(format_args!("\n{}", sweep.table()))?;
    if let Some(path) = &common.json {
        report::write(path, &report::json_text(&sweep.json())?)?;
    }
    if let Some(path) = &common.reporting.html {
        report::write(path, &sweep.html())?;
    }
    ensure!(!sweep.is_interrupted, "interrupted after {} steps", sweep.steps.len());
    ensure!(sweep.knee.is_some(), "{}", sweep.verdict());
    Ok(())
}
