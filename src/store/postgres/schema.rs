//! The tables of the store, and how they came to be what they are.
//!
//! A migration only adds: servers of the version before go on while a fleet is replaced. It runs under
//! a lock of the database, so of several servers that start together one makes it.

use tokio_postgres::GenericClient;

use super::link::{Link, Timeout, lost};
use crate::store::StoreError;

/// Migrations, oldest first, each with the version that it makes.
const MIGRATIONS: [(i32, &str); 1] = [(
    1,
    "
    CREATE TABLE docket_store (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        version bigint NOT NULL
    );
    INSERT INTO docket_store (version) VALUES (0);
    CREATE TABLE docket_changes (
        version bigint PRIMARY KEY,
        mark text NOT NULL
    );
    CREATE TABLE docket_records (
        kind text NOT NULL,
        tenant text NOT NULL,
        id text NOT NULL,
        payer text NOT NULL,
        version bigint NOT NULL UNIQUE,
        bytes bigint NOT NULL,
        body bytea,
        changed_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (kind, tenant, id)
    );
",
)];

/// What the migrations that were made are kept in.
const LEDGER: &str = "
    CREATE TABLE IF NOT EXISTS docket_schema (
        version integer PRIMARY KEY,
        made_at timestamptz NOT NULL DEFAULT now()
    )";

/// The lock under which migrations are made: `docket` in ASCII.
const LOCK: i64 = 0x646f_636b_6574;

/// The newest schema that is known.
const KNOWN: i32 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// Makes the schema what is known, unless it is already.
///
/// # Errors
/// [`StoreError::Schema`] of a newer one, [`StoreError::Unavailable`].
pub(super) async fn prepare(link: &mut Link) -> Result<(), StoreError> {
    let timeout = link.timeout();
    if check(found(&link.client, timeout).await?)? {
        return Ok(());
    }
    let transaction = timeout.of(0, link.client.transaction()).await?;
    let lock = transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]);
    timeout.of(0, lock).await?;
    // Another server may have made them while this one waited.
    let made = found(&transaction, timeout).await?;
    if check(made)? {
        return Ok(());
    }
    timeout.of(0, transaction.batch_execute(LEDGER)).await?;
    for (version, migration) in MIGRATIONS.iter().filter(|(version, _)| *version > made) {
        timeout.of(0, transaction.batch_execute(migration)).await?;
        let noted = "INSERT INTO docket_schema (version) VALUES ($1)";
        timeout.of(0, transaction.execute(noted, &[version])).await?;
    }
    timeout.of(0, transaction.commit()).await?;
    tracing::info!("the store's schema went from version {made} to {KNOWN}");
    Ok(())
}

/// Whether a schema is the one that is known.
fn check(found: i32) -> Result<bool, StoreError> {
    if found > KNOWN {
        return Err(StoreError::Schema { found, known: KNOWN });
    }
    Ok(found == KNOWN)
}

/// The version of the schema; 0 where there is none.
async fn found(client: &impl GenericClient, timeout: Timeout) -> Result<i32, StoreError> {
    let is_there = "SELECT to_regclass('docket_schema') IS NOT NULL";
    let row = timeout.of(0, client.query_one(is_there, &[])).await?;
    if !row.try_get::<_, bool>(0).map_err(|error| lost(&error))? {
        return Ok(0);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM docket_schema";
    let row = timeout.of(0, client.query_one(newest, &[])).await?;
    row.try_get(0).map_err(|error| lost(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_schema_is_told_and_an_older_one_is_to_be_migrated() {
        assert_eq!((check(KNOWN), check(0)), (Ok(true), Ok(false)));
        let refused = check(KNOWN + 1).unwrap_err();
        assert_eq!(refused, StoreError::Schema { found: KNOWN + 1, known: KNOWN });
        assert!(refused.to_string().contains("needs a newer one"), "{refused}");
    }

    #[test]
    fn no_migration_takes_anything_away() {
        let taking = ["DROP", "DELETE", "TRUNCATE", "ALTER COLUMN", "RENAME"];
        for (_, migration) in MIGRATIONS {
            let text = migration.to_uppercase();
            assert!(!taking.iter().any(|word| text.contains(word)), "{migration}");
        }
    }
}
