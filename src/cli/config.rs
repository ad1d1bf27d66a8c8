//! `docket config`: the settings that a server would have, checked or shown without starting one.

use clap::{Args, Subcommand};

use super::serve::ServeArgs;

/// What to do with the settings of a server.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// What to do
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// What to do with the settings of a server. The flags are those of `serve`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Tell all faults at once of flags, environment and configuration file, as `serve` takes them
    Check(Box<ServeArgs>),
    /// Print the settings in effect as a configuration file, each with where it was said
    Show(Box<ServeArgs>),
    /// Print a configuration file with every setting explained
    Example,
}
