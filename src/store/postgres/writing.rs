//! Making changes: all of them or none, one transaction after the other.

use std::collections::BTreeMap;

use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use super::CHANGES_KEPT;
use super::link::{Link, Timeout};
use super::reading::{column, number, version};
use crate::store::{
    Change, Key, Kind, RECORD_BYTES_MAX, StoreError, TENANT_BYTES_MAX, TENANT_RECORDS_MAX, Version,
    check_base,
};

const LAST: &str = "SELECT version FROM docket_store";

/// Takes the counter: whoever else would change the store waits here until this one is through.
const TURN: &str = "SELECT version FROM docket_store FOR UPDATE";

/// Whether an attempt whose answer was lost had been made.
const MADE: &str = "SELECT max(version) FROM docket_changes WHERE mark = $1";

const CURRENT: &str = "
    SELECT version, kind, tenant, id FROM docket_records
    JOIN unnest($1::text[], $2::text[], $3::text[]) AS wanted (kind, tenant, id)
    USING (kind, tenant, id)";

const PUT: &str = "
    INSERT INTO docket_records (kind, tenant, id, payer, version, bytes, body)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (kind, tenant, id) DO UPDATE
    SET version = excluded.version, bytes = excluded.bytes, body = excluded.body, changed_at = now()";

/// Of all tenants, and of the one whose records are changed.
const SIZES: &str = "
    SELECT count(*), coalesce(sum(bytes), 0)::bigint,
        count(*) FILTER (WHERE payer = $1 AND kind = $2),
        coalesce(sum(bytes) FILTER (WHERE payer = $1), 0)::bigint
    FROM docket_records WHERE body IS NOT NULL";

const COUNT: &str = "UPDATE docket_store SET version = $1";

const NOTE: &str = "
    INSERT INTO docket_changes (version, mark)
    SELECT version, $3::text FROM generate_series($1::bigint, $2::bigint) AS made (version)";

const FORGET_CHANGES: &str = "DELETE FROM docket_changes WHERE version <= $1";

const FORGET_REMOVED: &str = "DELETE FROM docket_records WHERE body IS NULL AND version <= $1";

/// Told when the transaction is committed.
const TELL: &str = "SELECT pg_notify('docket_store', $1)";

/// How much the store may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Records of all tenants.
    pub(super) records: u32,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// What is wanted of the connection that makes changes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted<'w> {
    /// The number of the last change.
    Version,
    /// These changes, and the mark of the attempt to make them.
    Changes(&'w [Change], &'w str),
}

/// A transaction that has its turn.
struct Turn<'t> {
    transaction: Transaction<'t>,
    timeout: Timeout,
    /// The last change before it.
    last: Version,
}

/// Does what is wanted; gives the number of the last change.
///
/// * `is_again`: whether it was attempted before and its answer was lost.
///
/// # Errors
/// [`StoreError`]; after [`StoreError::Unavailable`] it may have been done all the same.
pub(super) async fn perform(
    link: &mut Link,
    wanted: Wanted<'_>,
    is_again: bool,
    limits: Limits,
) -> Result<Version, StoreError> {
    match wanted {
        Wanted::Version => {
            let row = link.timeout().of(0, link.client.query_one(LAST, &[])).await?;
            version(&row)
        }
        Wanted::Changes(changes, mark) => make(link, changes, (mark, is_again), limits).await,
    }
}

/// Makes all changes, or none.
async fn make(
    link: &mut Link,
    changes: &[Change],
    (mark, is_again): (&str, bool),
    limits: Limits,
) -> Result<Version, StoreError> {
    check_bodies(changes)?;
    let timeout = link.timeout();
    let transaction = timeout.of(0, link.client.transaction()).await?;
    let row = timeout.of(0, transaction.query_one(TURN, &[])).await?;
    let turn = Turn { transaction, timeout, last: version(&row)? };
    if is_again && let Some(made) = turn.made(mark).await? {
        return Ok(made);
    }
    turn.check_bases(changes).await?;
    let last = turn.put(changes).await?;
    turn.check_sizes(changes, limits).await?;
    turn.finish(last, mark).await?;
    Ok(last)
}

impl Turn<'_> {
    async fn made(&self, mark: &str) -> Result<Option<Version>, StoreError> {
        let row = self.timeout.of(0, self.transaction.query_one(MADE, &[&mark])).await?;
        let made: Option<i64> = column(&row, 0)?;
        Ok(made.and_then(|made| u64::try_from(made).ok()).map(Version))
    }

    async fn check_bases(&self, changes: &[Change]) -> Result<(), StoreError> {
        let kinds: Vec<&str> = changes.iter().map(|change| change.key.kind.as_str()).collect();
        let tenants: Vec<&str> = changes.iter().map(|change| &*change.key.tenant.0).collect();
        let ids: Vec<&str> = changes.iter().map(|change| change.key.id.as_str()).collect();
        let named: [&(dyn ToSql + Sync); 3] = [&kinds, &tenants, &ids];
        let current = self.timeout.of(0, self.transaction.query(CURRENT, &named)).await?;
        let mut found: BTreeMap<(String, String, String), Version> = BTreeMap::new();
        for row in &current {
            found.insert((column(row, 1)?, column(row, 2)?, column(row, 3)?), version(row)?);
        }
        // Of one that is not there it is not known whether it was younger than what is remembered.
        let oldest = oldest(self.last);
        for Change { key, base, .. } in changes {
            let at = (key.kind.as_str().to_owned(), key.tenant.0.to_string(), key.id.clone());
            check_base(key, *base, found.get(&at).copied().unwrap_or(oldest))?;
        }
        Ok(())
    }

    async fn put(&self, changes: &[Change]) -> Result<Version, StoreError> {
        let mut last = self.last;
        for Change { key, body, .. } in changes {
            last.0 += 1;
            let Key { kind, tenant, id } = key;
            let body = body.as_deref().map(str::as_bytes);
            let length = body.map_or(0, <[u8]>::len);
            let (kind, tenant, payer) = (kind.as_str(), &*tenant.0, tenant.payer());
            let (version, bytes) = (number(last), i64::try_from(length).unwrap_or(i64::MAX));
            let values: [&(dyn ToSql + Sync); 7] =
                [&kind, &tenant, id, &payer, &version, &bytes, &body];
            self.timeout.of(length, self.transaction.execute(PUT, &values)).await?;
        }
        Ok(last)
    }

    async fn check_sizes(&self, changes: &[Change], limits: Limits) -> Result<(), StoreError> {
        // What is removed makes room.
        let Some(Change { key, .. }) = changes.iter().find(|change| change.body.is_some()) else {
            return Ok(());
        };
        let (payer, kind) = (key.tenant.payer(), key.kind.as_str());
        let row = self.timeout.of(0, self.transaction.query_one(SIZES, &[&payer, &kind])).await?;
        let size =
            |at: usize| column::<i64>(&row, at).map(|size| u64::try_from(size).unwrap_or_default());
        let own = key.kind != Kind::Keys;
        for (found, most, what) in [
            (size(0)?, u64::from(limits.records), "records of all tenants"),
            (size(1)?, limits.bytes, "bytes of all tenants"),
            (size(2)?, TENANT_RECORDS_MAX as u64, "tasks"),
            (size(3)?, TENANT_BYTES_MAX, "bytes of tasks"),
        ]
        .into_iter()
        .take(if own { 4 } else { 2 })
        {
            if found > most {
                let message = format!("the store would hold {found} {what}, at most {most} fit");
                return Err(StoreError::Full(message));
            }
        }
        Ok(())
    }

    async fn finish(self, last: Version, mark: &str) -> Result<(), StoreError> {
        let (oldest, first) = (number(oldest(last)), number(self.last) + 1);
        let Self { transaction, timeout, .. } = self;
        let last = number(last);
        timeout.of(0, transaction.execute(NOTE, &[&first, &last, &mark])).await?;
        timeout.of(0, transaction.execute(COUNT, &[&last])).await?;
        timeout.of(0, transaction.execute(FORGET_CHANGES, &[&oldest])).await?;
        timeout.of(0, transaction.execute(FORGET_REMOVED, &[&oldest])).await?;
        timeout.of(0, transaction.execute(TELL, &[&last.to_string()])).await?;
        timeout.of(0, transaction.commit()).await
    }
}

/// The last change that is forgotten when `last` is made.
fn oldest(last: Version) -> Version {
    Version(last.0.saturating_sub(CHANGES_KEPT))
}

fn check_bodies(changes: &[Change]) -> Result<(), StoreError> {
    let is_long =
        |change: &&Change| change.body.as_ref().is_some_and(|body| body.len() > RECORD_BYTES_MAX);
    match changes.iter().find(is_long) {
        Some(Change { key, .. }) => {
            let message = format!("{key} would have more than {RECORD_BYTES_MAX} bytes");
            Err(StoreError::Full(message))
        }
        None => Ok(()),
    }
}
