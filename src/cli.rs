//! What was typed: the command line and the environment, which only this module reads.
//!
//! Every flag can also be set by an environment variable, `DOCKET_` and its name; the flag wins. Those of
//! a server stand in a configuration file too, under both ([`settings`]). The time limits of `ask` and
//! `health` are `DOCKET_ASK_TIMEOUT` and `DOCKET_HEALTH_TIMEOUT`, since `DOCKET_TIMEOUT` is the server's,
//! and the file of `keys` is `DOCKET_KEYS`, which is the server's too. Flags that describe a request of
//! `ask` or a key of `keys new` have no variable.
//! What a command needs from here on is a [`crate::config::Config`] or plain arguments.

pub mod ask;
mod causes;
pub mod completions;
pub mod config;
pub mod gateway;
pub mod health;
pub mod keys;
pub mod listed;
pub mod man;
pub mod models;
mod named;
pub mod openapi;
pub mod pull;
pub mod serve;
pub mod settings;
mod switch;
pub mod usage;
#[cfg(test)]
mod vouched;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use self::ask::AskArgs;
use self::completions::CompletionsArgs;
use self::config::ConfigArgs;
use self::gateway::GatewayArgs;
use self::health::HealthArgs;
use self::keys::KeysArgs;
use self::man::ManArgs;
use self::models::ModelsArgs;
use self::openapi::OpenapiArgs;
use self::pull::PullArgs;
use self::serve::ServeArgs;
use self::usage::UsageArgs;
use crate::version;

/// Heading of the flags about what is logged.
const LOGS: &str = "Logs";

/// A decision server: typed questions in, calibrated probabilities out, from one forward pass
#[derive(Debug, Parser)]
#[command(name = "docket", version = version::LINE, arg_required_else_help = true)]
pub struct Cli {
    /// Folder of the models [default: docket in the user's cache folder]
    #[arg(long, global = true, env = "DOCKET_HOME", value_name = "FOLDER")]
    pub home: Option<PathBuf>,

    /// How log lines look
    #[arg(long, global = true, env = "DOCKET_LOG", value_enum, default_value = "text")]
    #[arg(help_heading = LOGS)]
    pub log: LogFormat,

    /// Least important log lines that are written
    #[arg(long, global = true, env = "DOCKET_LOG_LEVEL", value_enum, default_value = "info")]
    #[arg(help_heading = LOGS)]
    pub log_level: LogLevel,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a model, pulling it first if it is absent
    Serve(Box<ServeArgs>),
    /// Send requests on to many servers, those on one state to one of them
    Gateway(Box<GatewayArgs>),
    /// Download a model
    Pull(PullArgs),
    /// List the models that are known by name
    Models(ModelsArgs),
    /// Ask a running server for a decision
    Ask(Box<AskArgs>),
    /// Say whether a running server takes decisions: exit 0 if so
    Health(HealthArgs),
    /// Make, list and revoke the keys of a key file
    Keys(KeysArgs),
    /// Check or show the settings that a server would have
    Config(ConfigArgs),
    /// Show what the tenants of a server asked for
    Usage(UsageArgs),
    /// Print the HTTP interface as an `OpenAPI` document
    Openapi(OpenapiArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands into a folder
    Man(ManArgs),
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Least important log lines that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Failures only.
    Error,
    /// What may become one.
    Warn,
    /// What an operator wants to know.
    Info,
    /// What a developer wants to know.
    Debug,
    /// Everything.
    Trace,
}

impl From<LogLevel> for tracing::Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

impl Cli {
    /// The folder of the models: the flag, else `docket` in the user's cache folder; in the working
    /// folder for a user without one.
    pub fn home(&self) -> PathBuf {
        let cache = std::env::var_os("XDG_CACHE_HOME");
        let user = std::env::var_os("HOME");
        self.home.clone().unwrap_or_else(|| default_home(cache, user))
    }
}

fn default_home(cache: Option<OsString>, user: Option<OsString>) -> PathBuf {
    let cache = cache.map(PathBuf::from).filter(|path| path.is_absolute());
    let user = user.filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".cache"));
    cache.or(user).unwrap_or_default().join("docket")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_has_its_environment_variable() {
        let command = Cli::command();
        let inner = command.get_subcommands().flat_map(clap::Command::get_subcommands);
        let commands = command.get_subcommands().chain(inner).chain([&command]);
        let flags = commands.flat_map(|command| {
            command.get_arguments().map(move |flag| (command.get_name(), flag))
        });
        let mut seen = 0;
        for (command, flag) in flags.filter(|(_, flag)| flag.get_long().is_some()) {
            let long = flag.get_long().unwrap();
            let expected = match (command, long) {
                ("ask", "timeout") => "DOCKET_ASK_TIMEOUT".to_owned(),
                ("health", "timeout") => "DOCKET_HEALTH_TIMEOUT".to_owned(),
                ("keys", "file") => "DOCKET_KEYS".to_owned(),
                _ => format!("DOCKET_{}", long.to_uppercase().replace('-', "_")),
            };
            let described = [Some(ask::INLINE), Some(keys::DESCRIBED)];
            let is_inline = described.contains(&flag.get_help_heading());
            let env = flag.get_env().map(|name| name.to_string_lossy().into_owned());
            assert_eq!(env, (!is_inline).then_some(expected), "--{long}");
            seen += 1;
        }
        assert!(seen > 30, "{seen}");
    }

    #[test]
    fn the_home_is_in_the_users_cache_folder() {
        let home = |cache: Option<&str>, user: Option<&str>| {
            default_home(cache.map(OsString::from), user.map(OsString::from))
        };
        assert_eq!(home(Some("/c"), Some("/u")), PathBuf::from("/c/docket"));
        assert_eq!(home(Some("relative"), Some("/u")), PathBuf::from("/u/.cache/docket"));
        assert_eq!(home(None, Some("/u")), PathBuf::from("/u/.cache/docket"));
        assert_eq!(home(None, Some("")), PathBuf::from("docket"));
        let typed = Cli::parse_from(["docket", "--home", "/m", "models"]);
        assert_eq!(typed.home(), PathBuf::from("/m"));
    }
}
