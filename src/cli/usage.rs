//! `docket usage`: what the tenants of a server asked for and what that cost.
//!
//! The numbers come from the folder in which the server keeps them. While a server counts there, its
//! folder is its own, and it is asked instead: it knows what the folder will have in half a second.

mod server;
mod table;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use serde_json::Value;
use thiserror::Error;

use self::server::{Caller, ServerError};
use super::switch::switch;
use crate::usage::{DAYS_DEFAULT, FOLDER, Meter, UsageError, Wanted, parse_days, parse_tenant};

/// The `--usage-dir` under which a server keeps nothing.
pub const OFF: &str = "off";

/// Where a server listens that was told nothing else.
const URL_DEFAULT: &str = "http://127.0.0.1:8000";

/// Whose usage, and where it is known.
#[derive(Debug, Args)]
pub struct UsageArgs {
    /// Folder of the counters [default: usage in the folder of the models]
    #[arg(long, env = "DOCKET_USAGE_DIR", value_name = "DIR")]
    pub usage_dir: Option<PathBuf>,

    /// Ask the server at this address instead of reading the folder
    #[arg(long, env = "DOCKET_URL")]
    pub url: Option<String>,

    /// API key of an operator, for asking a server
    #[arg(long, env = "DOCKET_KEY", hide_env_values = true)]
    pub key: Option<String>,

    /// Certificates in PEM, one of which has to vouch for a server of https: in place of those that
    /// vouch in public
    #[arg(long, env = "DOCKET_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Count the last days only, today among them
    #[arg(long, env = "DOCKET_DAYS", value_name = "COUNT", value_parser = parse_days)]
    pub days: Option<u32>,

    /// One tenant, by day; PARENT/SUB for a sub-tenant
    #[arg(long, env = "DOCKET_TENANT", value_name = "NAME", value_parser = parse_tenant)]
    pub tenant: Option<String>,

    /// Print JSON, as the server answers it
    #[arg(long, env = "DOCKET_JSON", value_parser = switch)]
    pub json: bool,
}

/// Why there is no table.
#[derive(Debug, Error)]
pub enum UsageCliError {
    /// The folder cannot be read.
    #[error(transparent)]
    Folder(UsageError),
    /// Nothing is in the folder, and no other was named.
    #[error("{0}; --usage-dir names another folder, --url asks a server")]
    Absent(UsageError),
    /// A server has the folder and was asked.
    #[error("{}: a server keeps its usage there, and could not be asked: {source}; --url names its address", .folder.display())]
    Served {
        /// The folder.
        folder: PathBuf,
        /// Why asking did not help.
        #[source]
        source: ServerError,
    },
    /// The server that was named did not answer.
    #[error(transparent)]
    Server(ServerError),
    /// What came back is not usage.
    #[error("the answer of the server is none of `GET /v1/usage`: {0}")]
    Shape(String),
    /// The table could not be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

/// Prints usage.
///
/// # Errors
/// See [`UsageCliError`].
pub fn run(arguments: &UsageArgs, home: &Path, out: &mut impl Write) -> Result<(), UsageCliError> {
    let usage = found(arguments, home, URL_DEFAULT)?;
    if arguments.json {
        writeln!(out, "{usage}")?;
        return Ok(());
    }
    let shown = if arguments.days.is_some() { "recent" } else { "total" };
    let table = match &arguments.tenant {
        Some(_) => table::of_one(&usage, shown),
        None => table::of_all(&usage, shown),
    };
    table::write(&table.map_err(UsageCliError::Shape)?, out)?;
    Ok(())
}

/// What `GET /v1/usage` answers, from wherever it is known. `local` is the server that is asked where
/// one counts in the folder and none was named.
fn found(arguments: &UsageArgs, home: &Path, local: &str) -> Result<Value, UsageCliError> {
    let wanted = Wanted {
        days: arguments.days.unwrap_or(DAYS_DEFAULT),
        tenant: arguments.tenant.clone(),
        all: arguments.tenant.is_none(),
    };
    let caller = Caller { key: arguments.key.as_deref(), ca: arguments.ca.as_deref() };
    let ask = |url: &str| server::ask(url, caller, &wanted);
    let folder = arguments.usage_dir.clone().unwrap_or_else(|| home.join(FOLDER));
    let is_off = folder.as_os_str() == OsStr::new(OFF);
    if arguments.url.is_some() || is_off {
        return ask(arguments.url.as_deref().unwrap_or(local)).map_err(UsageCliError::Server);
    }
    match Meter::read(&folder) {
        Ok(meter) => Ok(shown(&meter, &wanted)),
        Err(UsageError::InUse(_)) => {
            ask(local).map_err(|source| UsageCliError::Served { folder, source })
        }
        Err(error @ UsageError::Absent(_)) => Err(UsageCliError::Absent(error)),
        Err(error) => Err(UsageCliError::Folder(error)),
    }
}

fn shown(meter: &Meter, wanted: &Wanted) -> Value {
    let now = SystemTime::now();
    let shown = match &wanted.tenant {
        Some(tenant) => serde_json::to_value(meter.usage(tenant, wanted.days, now)),
        None => serde_json::to_value(meter.usage_of_all(wanted.days, now)),
    };
    // Texts and whole numbers only: nothing of them has no JSON.
    shown.unwrap_or_default()
}

#[cfg(test)]
mod tests;
