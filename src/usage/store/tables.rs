//! The store's tables: what a record looks like, how all are read, and how a flush is written.
//!
//! | table | key | value |
//! |---|---|---|
//! | `about` | `format` | the number of this layout |
//! | `totals` | full name | time of the first count, in seconds since 1970, and the counts, each in eight bytes |
//! | `days` | day since 1970, full name | the counts |
//!
//! The day stands ahead of the name, so that a flush touches the pages of one day only.

use std::path::Path;

use redb::{
    Database, Durability, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _,
    Table, TableDefinition, WriteTransaction,
};

use crate::usage::account::{Account, Change};
use crate::usage::counts::Counts;
use crate::usage::day::{Day, Moment};
use crate::usage::error::UsageError;
use crate::usage::ledger::{Changes, Ledger};
use crate::usage::{ALL_SUB_TENANTS_MAX, DAY_RECORDS_MAX, TENANTS_MAX};

const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
const TOTALS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("totals");
const DAYS: TableDefinition<'_, (u32, &str), &[u8]> = TableDefinition::new("days");

/// The entry of `about` that says which layout this is.
const FORMAT: &str = "format";

/// This layout.
const FORMAT_KNOWN: u64 = 1;

/// Most totals that are believed: every tenant and sub-tenant, and others of each tenant.
const TOTALS_MAX: u64 = (2 * TENANTS_MAX + ALL_SUB_TENANTS_MAX + 2) as u64;

/// Most records of a day that are believed: between two flushes there may be more than the limit.
const DAYS_MAX: u64 = DAY_RECORDS_MAX as u64 + TOTALS_MAX;

/// Why tables cannot be read or written.
#[derive(Debug)]
pub(super) enum TableFault {
    /// What the library says.
    Library(Box<redb::Error>),
    /// A record or table that cannot be.
    Damaged(String),
    /// Another layout.
    Newer(u64),
}

impl<E: Into<redb::Error>> From<E> for TableFault {
    fn from(error: E) -> Self {
        Self::Library(Box::new(error.into()))
    }
}

impl TableFault {
    /// The same, of the file at `path`.
    pub(super) fn told(self, path: &Path) -> UsageError {
        match self {
            Self::Library(error) => UsageError::of_store(path, *error),
            Self::Damaged(message) => UsageError::damaged(path, message),
            Self::Newer(format) => {
                UsageError::Newer { path: path.to_owned(), format, known: FORMAT_KNOWN }
            }
        }
    }
}

/// Makes the tables of a new store.
pub(super) fn begin(database: &Database) -> Result<(), TableFault> {
    let transaction = begin_write(database)?;
    transaction.open_table(ABOUT)?.insert(FORMAT, FORMAT_KNOWN)?;
    transaction.open_table(TOTALS)?;
    transaction.open_table(DAYS)?;
    Ok(transaction.commit()?)
}

/// Reads everything into a ledger.
pub(super) fn load(database: &Database, ledger: &Ledger) -> Result<(), TableFault> {
    let transaction = database.begin_read()?;
    let format = transaction.open_table(ABOUT)?.get(FORMAT)?.map(|format| format.value());
    match format {
        Some(FORMAT_KNOWN) => {}
        Some(format) => return Err(TableFault::Newer(format)),
        None => return Err(TableFault::Damaged("it does not say which format it has".to_owned())),
    }
    let (totals, days) = (transaction.open_table(TOTALS)?, transaction.open_table(DAYS)?);
    for (table, found, most) in
        [("totals", totals.len()?, TOTALS_MAX), ("days", days.len()?, DAYS_MAX)]
    {
        if found > most {
            let message = format!("its table {table} has {found} records, at most {most} can be");
            return Err(TableFault::Damaged(message));
        }
    }
    for total in totals.iter()? {
        let (name, record) = total?;
        let (since, total) = decode_total(record.value()).map_err(TableFault::Damaged)?;
        ledger.restore(name.value(), Account::stored(since, total));
    }
    for counted in days.iter()? {
        let (key, record) = counted?;
        let (day, name) = key.value();
        let counts = Counts::decode(record.value()).map_err(TableFault::Damaged)?;
        if !ledger.restore_day(name, Day(day), counts) {
            return Err(TableFault::Damaged("a day of a tenant that has no total".to_owned()));
        }
    }
    Ok(())
}

/// Writes a flush: all of it, or nothing.
pub(super) fn write(database: &Database, changes: &Changes) -> Result<(), TableFault> {
    let transaction = begin_write(database)?;
    if changes.all {
        transaction.delete_table(TOTALS)?;
        transaction.delete_table(DAYS)?;
    }
    {
        let mut totals = transaction.open_table(TOTALS)?;
        let mut days = transaction.open_table(DAYS)?;
        let mut record = Vec::new();
        for (name, change) in &changes.accounts {
            encode_total(change, &mut record);
            totals.insert(&**name, record.as_slice())?;
            write_days(&mut days, name, change, &mut record)?;
        }
    }
    Ok(transaction.commit()?)
}

fn write_days(
    days: &mut Table<'_, (u32, &'static str), &'static [u8]>,
    name: &str,
    change: &Change,
    record: &mut Vec<u8>,
) -> Result<(), TableFault> {
    for day in &change.dropped {
        days.remove((day.0, name))?;
    }
    for (day, counts) in &change.days {
        record.clear();
        counts.encode(record);
        days.insert((day.0, name), record.as_slice())?;
    }
    Ok(())
}

/// A transaction that is on disk when its commit returns.
fn begin_write(database: &Database) -> Result<WriteTransaction, TableFault> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    Ok(transaction)
}

fn encode_total(change: &Change, record: &mut Vec<u8>) {
    record.clear();
    record.extend(change.since.0.to_le_bytes());
    change.total.encode(record);
}

fn decode_total(record: &[u8]) -> Result<(Moment, Counts), String> {
    let Some((since, counts)) = record.split_first_chunk() else {
        return Err(format!("a record of {} bytes; 8 at least are known", record.len()));
    };
    Ok((Moment(u64::from_le_bytes(*since)), Counts::decode(counts)?))
}
