//! The `docket` command: parses what was typed, runs it, and turns failures into exit codes.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use clap::Parser;
use tracing_subscriber::EnvFilter;

use docket::cli::serve::ServeArgs;
use docket::cli::{
    Cli, Command, LogFormat, ask, completions, health, keys, man, models, pull, usage,
};
use docket::http::ACCESS;
use docket::service::EXIT_CODE_DEAD;
use docket::start::{self, Ended, panics, signal};

/// Workers of the runtime: the wire, the actors and short tokenisations. The model has its own threads.
const RUNTIME_WORKERS: usize = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_logging(&cli);
    panics::log();
    match run(cli) {
        Ok(Ended::Stopped) => ExitCode::SUCCESS,
        Ok(Ended::Dead) => ExitCode::from(EXIT_CODE_DEAD),
        Err(error) => {
            // Nothing is left to be done when standard error is closed.
            let _ = writeln!(io::stderr(), "docket: {}", told(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes; a cause that its effect has already quoted is not said again.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        so_far if so_far.contains(&cause) => told,
        so_far => format!("{so_far}: {cause}"),
    })
}

fn run(cli: Cli) -> anyhow::Result<Ended> {
    let home = cli.home();
    let mut out = io::stdout().lock();
    match cli.command {
        Command::Serve(arguments) => return serve(*arguments, home),
        Command::Pull(arguments) => pull::run(&arguments, &home, &mut out)?,
        Command::Models(arguments) => models::run(&arguments, &home, &mut out)?,
        Command::Ask(arguments) => ask::run(&arguments, &mut out)?,
        Command::Health(arguments) => health::run(&arguments, &mut out)?,
        Command::Completions(arguments) => completions::run(&arguments, &mut out)?,
        Command::Man(arguments) => man::run(&arguments, &mut out)?,
        Command::Keys(arguments) => {
            keys::run(&arguments, SystemTime::now(), (&mut out, &mut io::stderr()))?;
        }
        Command::Usage(arguments) => usage::run(&arguments, &home, &mut out)?,
        Command::Openapi(arguments) => writeln!(out, "{}", arguments.document())?,
    }
    Ok(Ended::Stopped)
}

fn serve(arguments: ServeArgs, home: std::path::PathBuf) -> anyhow::Result<Ended> {
    let config =
        arguments.config(home).map_err(|faults| anyhow!("these settings cannot be:\n{faults}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_WORKERS)
        .enable_all()
        .build()
        .context("no runtime")?;
    let stop = signal::stop(&runtime).context("no signal handler")?;
    let served = runtime.block_on(start::serve(&config, stop));
    // A tokenisation may still run; nobody waits for it.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(served?)
}

/// Logs go to standard error, so that standard output is a command's result only.
fn start_logging(cli: &Cli) {
    let level = tracing::Level::from(cli.log_level);
    // What it would say of a line that cannot be written goes where no line can be written, and a
    // failure to write there panics: a full disk under the log must not end the server.
    let builder = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(EnvFilter::new(format!(
            "{level},{}=info,{ACCESS}=info",
            start::LISTENING
        )));
    match cli.log {
        LogFormat::Text => builder.with_target(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}
