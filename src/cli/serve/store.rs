//! Flags of the store that several servers share.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::set;
use crate::config::keys::Secret;
use crate::config::quantity::{parse_bytes, parse_duration};
use crate::config::{Config, Faults, StoreConfig};
use crate::store::Address;

/// Postgres's own variable for a password.
const PGPASSWORD: &str = "PGPASSWORD";

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "The shared store")]
pub(super) struct StoreArgs {
    /// Database in which servers share their tasks, and with `--keys store` their keys:
    /// `postgres://USER@HOST:PORT/DATABASE`. It is never shown [default: none]
    #[arg(long, env = "DOCKET_STORE", value_name = "URL", hide_env_values = true)]
    #[arg(value_parser = secret)]
    store: Option<Secret>,

    /// File whose first line is the password for --store; read at each connection [default: none, the
    /// password is in the URL or in `PGPASSWORD`]
    #[arg(long, env = "DOCKET_STORE_PASSWORD_FILE", value_name = "FILE")]
    store_password_file: Option<PathBuf>,

    /// Certificates in PEM of the authorities that vouch for --store [default: those of the web]
    #[arg(long, env = "DOCKET_STORE_CA", value_name = "FILE")]
    store_ca: Option<PathBuf>,

    /// After what silence --store is asked for changes that it did not tell of [default: 5s]
    #[arg(long, env = "DOCKET_STORE_POLL", value_name = "TIME", value_parser = parse_duration)]
    store_poll: Option<Duration>,

    /// Longest time of a statement to --store, and a second more for each MiB that it moves [default: 5s]
    #[arg(long, env = "DOCKET_STORE_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    store_timeout: Option<Duration>,

    /// Most tasks of all tenants in --store [default: 65536]
    #[arg(long, env = "DOCKET_STORE_RECORDS_MAX", value_name = "COUNT")]
    store_records_max: Option<u32>,

    /// Most bytes of all tasks in --store, which every server holds in memory [default: 4GiB]
    #[arg(long, env = "DOCKET_STORE_BYTES_MAX", value_name = "SIZE", value_parser = parse_bytes)]
    store_bytes_max: Option<u64>,
}

/// Takes every text: what is wrong with it is told without it, later.
#[expect(clippy::unnecessary_wraps, reason = "a parser of clap's gives a result")]
pub(in crate::cli) fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::new(text))
}

/// Where the store is, and with what password; nothing where no text or an empty one names it.
///
/// # Errors
/// What is wrong with it, in words without it.
pub(in crate::cli) fn located(
    store: Option<&Secret>,
    (password_file, ca): (Option<PathBuf>, Option<PathBuf>),
) -> Result<StoreConfig, String> {
    let text = store.map(Secret::reveal).filter(|text| !text.is_empty());
    let address = text.map(Address::parse).transpose()?;
    let password = address.as_ref().and_then(|_| of_postgres(std::env::var_os(PGPASSWORD)));
    Ok(StoreConfig { address, password_file, password, ca, ..StoreConfig::default() })
}

fn of_postgres(variable: Option<OsString>) -> Option<Secret> {
    let text = variable?.into_string().ok()?;
    (!text.is_empty()).then(|| Secret::new(text))
}

impl StoreArgs {
    pub(super) fn fill(self, config: &mut Config, faults: &mut Faults) {
        let files = (self.store_password_file, self.store_ca);
        match located(self.store.as_ref(), files) {
            Ok(store) => config.store = store,
            Err(message) => faults.add("--store", message),
        }
        let store = &mut config.store;
        set(&mut store.poll, self.store_poll);
        set(&mut store.timeout, self.store_timeout);
        set(&mut store.records_max, self.store_records_max);
        set(&mut store.bytes_max, self.store_bytes_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_names_no_store_and_no_password() {
        let of = |text: &str| located(Some(&Secret::new(text)), (None, None));
        assert_eq!(of("").unwrap().address, None);
        assert!(of("postgres://ann@db/docket").unwrap().address.is_some());
        let refused = of("postgres://ann:hunter2@:x/docket").unwrap_err();
        assert!(!refused.contains("hunter2"), "{refused}");
        assert_eq!(of_postgres(Some(OsString::new())), None);
        assert_eq!(of_postgres(Some("pass".into())), Some(Secret::new("pass")));
    }
}
