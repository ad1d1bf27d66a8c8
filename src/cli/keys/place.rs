//! Where `docket keys` finds the tenants and their keys: in a file, or in the shared store.
//!
//! In the store two of these commands may run at once, on two machines. What one makes of a text that
//! is no longer there is not written but made again of the new one: adding and removing keys commutes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use actors::TenantId;
use tokio::runtime::{Builder, Runtime};

use super::KeysError;
use crate::config::StoreConfig;
use crate::store::postgres::Postgres;
use crate::store::{Address, Key, Record, Store as _, StoreError, Version};
use crate::tenants::{
    Added, Change, EditError, Fault, KeyFile, KeyId, Keyring, with_key, without_key,
};

/// How often a change is made anew since somebody else made one meanwhile.
const TRIES_MAX: usize = 8;

/// A file of keys, or a store with some.
#[derive(Debug)]
pub(super) enum Place {
    File(KeyFile),
    Store(Box<Stored>),
}

/// The keys of a store.
#[derive(Debug)]
pub(super) struct Stored {
    runtime: Runtime,
    store: Postgres,
    /// What it is called in messages.
    name: PathBuf,
}

/// What there is, and what is to be said of it.
pub(super) struct Loaded {
    pub(super) keyring: Keyring,
    pub(super) warning: Option<String>,
}

impl Place {
    /// The keys of a store; nothing is asked of it yet.
    ///
    /// # Errors
    /// [`KeysError::Store`].
    pub(super) fn of_store(address: &Address, config: &StoreConfig) -> Result<Self, KeysError> {
        let store = Postgres::new(address, config).map_err(KeysError::Store)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| KeysError::Store(error.to_string()))?;
        let name = PathBuf::from(format!("the keys of {address}"));
        Ok(Self::Store(Box::new(Stored { runtime, store, name })))
    }

    /// What it is called in messages.
    pub(super) fn name(&self) -> &Path {
        match self {
            Self::File(file) => &file.path,
            Self::Store(stored) => &stored.name,
        }
    }

    /// What a server is started with that is to have these keys.
    pub(super) fn flag(&self) -> String {
        match self {
            Self::File(file) => format!("--keys {}", file.path.display()),
            Self::Store(_) => "--keys store".to_owned(),
        }
    }

    /// Reads all keys.
    ///
    /// # Errors
    /// [`KeysError`].
    pub(super) fn load(&self) -> Result<Loaded, KeysError> {
        let faulty = |faults| KeysError::Faults(self.name().to_owned(), faults);
        match self {
            Self::File(file) => {
                let (keyring, stamp) = file.load().map_err(faulty)?;
                Ok(Loaded { keyring, warning: stamp.warning() })
            }
            Self::Store(stored) => {
                let (_, text) = stored.read()?;
                let unmade = || faulty(vec![Fault::new("the store", "it has no keys so far")]);
                let keyring = Keyring::parse(&text.ok_or_else(unmade)?).map_err(faulty)?;
                Ok(Loaded { keyring, warning: None })
            }
        }
    }

    /// Adds a key to a tenant, and sets fields of the tenant.
    ///
    /// # Errors
    /// [`KeysError`]; nothing is changed then, but where the answer of a store was lost.
    pub(super) fn add(
        &self,
        tenant: &str,
        changes: &[Change],
        (note, expires): (Option<String>, Option<SystemTime>),
        now: SystemTime,
    ) -> Result<Added, KeysError> {
        match self {
            Self::File(file) => Ok(file.add(tenant, changes, (note, expires), now)?),
            Self::Store(stored) => stored.change(|old| {
                let described = (note.clone(), expires);
                with_key((stored.name.as_path(), old), (tenant, changes), described, now)
            }),
        }
    }

    /// Removes a key; returns whose it was.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(super) fn revoke(&self, id: &KeyId) -> Result<TenantId, KeysError> {
        match self {
            Self::File(file) => Ok(file.revoke(id)?),
            Self::Store(stored) => stored.change(|old| {
                let none = || EditError::NoSuchKey { path: stored.name.clone(), id: id.clone() };
                without_key((stored.name.as_path(), old.ok_or_else(none)?), id)
            }),
        }
    }
}

impl Stored {
    /// The text of the keys, and up to which change it is known.
    fn read(&self) -> Result<(Version, Option<String>), KeysError> {
        let record = self.runtime.block_on(self.store.read(&Key::of_keys()));
        Ok(match record.map_err(|error| self.failed(&error))? {
            Some(Record { version, body, .. }) => (version, body.map(|body| body.to_string())),
            None => (Version::default(), None),
        })
    }

    fn change<T>(
        &self,
        edit: impl Fn(Option<&str>) -> Result<(String, T), EditError>,
    ) -> Result<T, KeysError> {
        for _ in 0..TRIES_MAX {
            let (version, old) = self.read()?;
            let (new, made) = edit(old.as_deref())?;
            let body = Some(Arc::from(new));
            let change = crate::store::Change { key: Key::of_keys(), base: Some(version), body };
            match self.runtime.block_on(self.store.change(vec![change])) {
                Ok(_) => return Ok(made),
                Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
        let told =
            format!("{}: others changed them {TRIES_MAX} times meanwhile", self.name.display());
        Err(KeysError::Store(told))
    }

    fn failed(&self, error: &StoreError) -> KeysError {
        KeysError::Store(format!("{}: {error}", self.name.display()))
    }
}
