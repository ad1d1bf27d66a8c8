//! Reading what has changed.

use std::sync::Arc;

use actors::TenantId;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

use super::link::{Link, lost};
use crate::store::{Follower, Key, Kind, Record, Seen, StoreError, Version};

/// Most records that are listed at a time.
const LISTED_MAX: i64 = 1_024;

/// Most bytes of records that are read at a time, unless one has more.
const BYTES_AT_ONCE: usize = 8 << 20;

/// Where the store is, with the mark of its last change and that of the change that was seen last.
const STATE: &str = "
    SELECT store.version, own.mark, seen.mark
    FROM docket_store store
    LEFT JOIN docket_changes own ON own.version = store.version
    LEFT JOIN docket_changes seen ON seen.version = $1";

const LIST: &str = "
    SELECT version, bytes FROM docket_records WHERE version > $1 ORDER BY version LIMIT $2";

/// One that was changed since it was listed is not among these; it is further on in the list.
const READ: &str = "
    SELECT version, kind, tenant, id, body FROM docket_records
    WHERE version = ANY($1) ORDER BY version";

const ONE: &str = "
    SELECT version, kind, tenant, id, body FROM docket_records
    WHERE kind = $1 AND tenant = $2 AND id = $3";

/// A record that is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listed {
    version: i64,
    bytes: usize,
}

/// Tells of every record that was changed after `seen`.
///
/// # Errors
/// [`StoreError::Unavailable`].
pub(super) async fn catch_up(
    link: &Link,
    seen: &Seen,
    told: &dyn Follower,
) -> Result<Seen, StoreError> {
    let timeout = link.timeout();
    let before = number(seen.version);
    let row = timeout.of(0, link.client.query_one(STATE, &[&before])).await?;
    let version = version(&row)?;
    let mark = column::<Option<String>>(&row, 1)?.unwrap_or_default();
    let seen_mark = column::<Option<String>>(&row, 2)?;
    let is_new = seen.version == Version::default();
    let is_anew = !is_new && seen_mark.as_ref() != Some(&seen.mark);
    if version == seen.version && !is_anew {
        return Ok(seen.clone());
    }
    let mut from = before;
    if is_anew {
        told.anew();
        from = 0;
    }
    loop {
        let listed = list(link, from).await?;
        for group in groups(&listed) {
            read(link, group, told).await?;
        }
        match listed.last() {
            Some(last) => from = last.version,
            None => break,
        }
    }
    told.seen(version);
    Ok(Seen { version, mark })
}

/// One record as it is now.
///
/// # Errors
/// [`StoreError::Unavailable`].
pub(super) async fn one(link: &Link, key: &Key) -> Result<Option<Record>, StoreError> {
    let (kind, tenant) = (key.kind.as_str(), &*key.tenant.0);
    let named: [&(dyn ToSql + Sync); 3] = [&kind, &tenant, &key.id];
    let found = link.timeout().of(BYTES_AT_ONCE, link.client.query_opt(ONE, &named)).await?;
    found.map_or(Ok(None), |row| record(&row))
}

async fn list(link: &Link, from: i64) -> Result<Vec<Listed>, StoreError> {
    let rows = link.timeout().of(0, link.client.query(LIST, &[&from, &LISTED_MAX])).await?;
    let listed = |row: &Row| {
        let bytes = usize::try_from(column::<i64>(row, 1)?).unwrap_or_default();
        Ok(Listed { version: column(row, 0)?, bytes })
    };
    rows.iter().map(listed).collect()
}

async fn read(link: &Link, group: &[Listed], told: &dyn Follower) -> Result<(), StoreError> {
    let versions: Vec<i64> = group.iter().map(|listed| listed.version).collect();
    let bytes = group.iter().map(|listed| listed.bytes).sum();
    let rows = link.timeout().of(bytes, link.client.query(READ, &[&versions])).await?;
    let records: Vec<_> = rows.iter().map(record).collect::<Result<_, _>>()?;
    drop(rows);
    aside(|| {
        for record in records.into_iter().flatten() {
            told.take(record);
        }
    });
    Ok(())
}

/// Runs `work`, which may take long, so that other tasks of this worker go on meanwhile; in place on a
/// runtime that has one thread only.
fn aside(work: impl FnOnce()) {
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        tokio::task::block_in_place(work);
    } else {
        work();
    }
}

/// Cuts a list where what is read at a time would be too much.
fn groups(mut listed: &[Listed]) -> Vec<&[Listed]> {
    let mut groups = Vec::new();
    while !listed.is_empty() {
        let mut bytes = 0;
        let fits = |one: &&Listed| {
            bytes += one.bytes;
            bytes <= BYTES_AT_ONCE
        };
        let count = listed.iter().take_while(fits).count().max(1);
        let (group, rest) = listed.split_at(count);
        groups.push(group);
        listed = rest;
    }
    groups
}

/// The record of a row; `None` of a kind that is not known here, or whose body is no text.
fn record(row: &Row) -> Result<Option<Record>, StoreError> {
    let version = version(row)?;
    let Some(kind) = Kind::named(column(row, 1)?) else { return Ok(None) };
    let key = Key { kind, tenant: TenantId(column::<&str>(row, 2)?.into()), id: column(row, 3)? };
    let Some(body) = column::<Option<&[u8]>>(row, 4)? else {
        return Ok(Some(Record { key, version, body: None }));
    };
    let Ok(text) = std::str::from_utf8(body) else {
        tracing::error!("{key} of the store is no UTF-8 text and is left out");
        return Ok(None);
    };
    Ok(Some(Record { key, version, body: Some(Arc::from(text)) }))
}

/// The number in the first column.
pub(super) fn version(row: &Row) -> Result<Version, StoreError> {
    Ok(Version(u64::try_from(column::<i64>(row, 0)?).unwrap_or_default()))
}

/// A column of a row.
pub(super) fn column<'r, T: FromSql<'r>>(row: &'r Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|error| lost(&error))
}

/// A number as the database has it.
pub(super) fn number(version: Version) -> i64 {
    i64::try_from(version.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_at_a_time_is_bounded_and_one_large_record_stands_alone() {
        let listed = |version: i64, bytes: usize| Listed { version, bytes };
        let half = BYTES_AT_ONCE / 2;
        let all = [
            listed(1, half),
            listed(2, half),
            listed(3, 1),
            listed(4, 3 * BYTES_AT_ONCE),
            listed(5, 1),
        ];
        let cut: Vec<Vec<i64>> = groups(&all)
            .into_iter()
            .map(|group| group.iter().map(|one| one.version).collect())
            .collect();
        assert_eq!(cut, [vec![1, 2], vec![3], vec![4], vec![5]]);
        assert!(groups(&[]).is_empty());
    }
}
