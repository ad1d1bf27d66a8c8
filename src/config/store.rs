//! The store that several servers share.

use std::path::PathBuf;
use std::time::Duration;

use super::faults::Faults;
use super::keys::Secret;
use crate::store::Address;

/// Where the shared store is, and what it may hold.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreConfig {
    /// Where it is. Default none: tasks are kept by this server alone.
    pub address: Option<Address>,
    /// File whose first line is the password, read at each connection. Default none.
    pub password_file: Option<PathBuf>,
    /// The password, where neither the address nor a file has one: what `PGPASSWORD` says.
    pub password: Option<Secret>,
    /// File of the authorities that vouch for the database, in PEM. Default: those of the web.
    pub ca: Option<PathBuf>,
    /// After what silence it is asked for changes. Default 5 s; 100 ms to an hour. A database tells of
    /// changes itself; this is for when that fails.
    pub poll: Duration,
    /// Longest time of a statement or of connecting, and a second more for each MiB that it moves.
    /// Default 5 s; 100 ms to 10 min.
    pub timeout: Duration,
    /// Most records of all tenants. Default 65,536; 1 to 10,000,000.
    pub records_max: u32,
    /// Most bytes of all records. Default 4 GiB; 1 MiB to 1 TiB. Every server holds all of them in
    /// memory.
    pub bytes_max: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            address: None,
            password_file: None,
            password: None,
            ca: None,
            poll: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            records_max: 65_536,
            bytes_max: 4 << 30,
        }
    }
}

impl StoreConfig {
    pub(super) fn check(&self, faults: &mut Faults) {
        let least = Duration::from_millis(100);
        faults.check_duration("--store-poll", self.poll, least..=Duration::from_hours(1));
        faults.check_duration("--store-timeout", self.timeout, least..=Duration::from_mins(10));
        faults.check_range("--store-records-max", self.records_max, 1..=10_000_000);
        faults.check_bytes("--store-bytes-max", self.bytes_max, 1 << 20..=1 << 40);
        for (flag, file) in
            [("--store-password-file", &self.password_file), ("--store-ca", &self.ca)]
        {
            if file.is_some() && self.address.is_none() {
                faults.add(flag, "it needs --store");
            }
        }
        let has_password = self.address.as_ref().is_some_and(Address::has_password);
        if has_password && self.password_file.is_some() {
            faults.add("--store-password-file", "--store has a password too; one of them is used");
        }
    }
}
