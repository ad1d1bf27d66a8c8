//! The `docket` command: parses what was typed, runs it, and turns failures into exit codes.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use tokio::runtime::Runtime;
use tracing::Level;
use tracing_subscriber::EnvFilter;

use docket::cli::config::ConfigCommand;
use docket::cli::gateway::GatewayArgs;
use docket::cli::serve::ServeArgs;
use docket::cli::settings::{self, Settings, Typed};
use docket::cli::{
    Cli, Command, LogFormat, ask, completions, health, keys, man, models, pull, usage,
};
use docket::config::Config;
use docket::http::ACCESS;
use docket::service::EXIT_CODE_DEAD;
use docket::start::{self, Ended, panics, signal};
use docket::tenants::{Fault, listed};

/// Workers of the runtime: the wire, the actors and short tokenisations. The model has its own threads.
const RUNTIME_WORKERS: usize = 2;

/// How the faults of settings are introduced.
const REFUSED: &str = "these settings cannot be:";

fn main() -> ExitCode {
    let typed = settings::parse(std::env::args_os()).unwrap_or_else(|error| error.exit());
    start_logging(&typed.cli);
    panics::log();
    match run(typed) {
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

fn run(Typed { cli, settings }: Typed) -> anyhow::Result<Ended> {
    let home = cli.home();
    let mut out = io::stdout().lock();
    match cli.command {
        Command::Serve(arguments) => return serve(*arguments, &settings, home),
        Command::Gateway(arguments) => gateway(*arguments)?,
        Command::Pull(arguments) => pull::run(&arguments, &home, &mut out)?,
        Command::Models(arguments) => models::run(&arguments, &home, &mut out)?,
        Command::Ask(arguments) => ask::run(&arguments, &mut out)?,
        Command::Health(arguments) => health::run(&arguments, &mut out)?,
        Command::Completions(arguments) => completions::run(&arguments, &mut out)?,
        Command::Man(arguments) => man::run(&arguments, &mut out)?,
        Command::Keys(arguments) => {
            keys::run(&arguments, SystemTime::now(), (&mut out, &mut io::stderr()))?;
        }
        Command::Config(arguments) => match arguments.command {
            ConfigCommand::Check(arguments) => {
                warn(&settings.warnings(false));
                settings
                    .check(*arguments, home, start::check)
                    .map_err(|faults| refused(&faults))?;
                writeln!(out, "{}", settings.summary())?;
            }
            ConfigCommand::Show(arguments) => {
                let config = configured(*arguments, &settings, home)?;
                write!(out, "{}", settings.shown(&config).to_toml())?;
            }
            ConfigCommand::Example => write!(out, "{}", settings::example())?,
        },
        Command::Usage(arguments) => usage::run(&arguments, &home, &mut out)?,
        Command::Openapi(arguments) => writeln!(out, "{}", arguments.document())?,
    }
    Ok(Ended::Stopped)
}

fn configured(arguments: ServeArgs, settings: &Settings, home: PathBuf) -> anyhow::Result<Config> {
    warn(&settings.warnings(true));
    settings.config(arguments, home).map_err(|faults| refused(&faults))
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

fn refused(faults: &[Fault]) -> anyhow::Error {
    anyhow!("{REFUSED}\n{}", listed(faults))
}

fn serve(arguments: ServeArgs, settings: &Settings, home: PathBuf) -> anyhow::Result<Ended> {
    let config = configured(arguments, settings, home)?;
    let shown = settings.shown(&config).to_json();
    let (runtime, stop) = runtime()?;
    let served = runtime.block_on(start::serve(&config, shown, stop));
    // A tokenisation may still run; nobody waits for it.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(served?)
}

fn gateway(arguments: GatewayArgs) -> anyhow::Result<()> {
    let config = arguments.config().map_err(|faults| anyhow!("{REFUSED}\n{faults}"))?;
    let (runtime, stop) = runtime()?;
    let served = runtime.block_on(start::gateway::serve(config, stop));
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(served?)
}

/// Threads for what waits, and a future that is done when the process is told to stop.
fn runtime() -> anyhow::Result<(Runtime, impl Future<Output = ()>)> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_WORKERS)
        .enable_all()
        .build()
        .context("the system gives no threads")?;
    let stop = signal::stop(&runtime).context("the system gives no handler of signals")?;
    Ok((runtime, stop))
}

/// Logs go to standard error, so that standard output is a command's result only.
fn start_logging(cli: &Cli) {
    let level = Level::from(cli.log_level);
    // What it would say of a line that cannot be written goes where no line can be written, and a
    // failure to write there panics: a full disk under the log must not end the server.
    let wire = of_the_wire(level);
    let builder = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_env_filter(EnvFilter::new(format!(
            "{level},h2={wire},hyper={wire},{}=info,{ACCESS}=info",
            start::LISTENING
        )));
    match cli.log {
        LogFormat::Text => builder.with_target(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}

/// The least important lines about connections. What clients do wrong on one is counted, and told line
/// by line, at their will, to developers only. What is more important is less in tracing's order.
fn of_the_wire(level: Level) -> Level {
    if level > Level::INFO { level } else { Level::ERROR }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_told_of_to_developers_only() {
        for (level, wire) in [
            (Level::ERROR, Level::ERROR),
            (Level::WARN, Level::ERROR),
            (Level::INFO, Level::ERROR),
            (Level::DEBUG, Level::DEBUG),
            (Level::TRACE, Level::TRACE),
        ] {
            assert_eq!(of_the_wire(level), wire, "{level}");
        }
    }
}
