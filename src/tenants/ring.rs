//! The keyring: who a key belongs to. Parsed once, never changed, replaced as a whole.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use actors::TenantId;

use super::fault::{Fault, Faults};
use super::key::{Key, KeyHash, KeyId};
use super::record;
use super::settings::Settings;
use super::{Tenant, moment};
use crate::config::keys::{ApiKey, KEY_BYTES_MAX};

/// All tenants and their keys.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    tenants: BTreeMap<TenantId, Arc<Tenant>>,
    /// By the first bytes of the hash; which entry it is, if any, is decided in constant time. The
    /// map's own hashing is random, and nobody can choose the hash of a key that works.
    keys: HashMap<u64, Vec<Entry>>,
}

/// A key, as its tenant and its place there.
#[derive(Debug, Clone)]
struct Entry {
    tenant: Arc<Tenant>,
    place: usize,
}

impl Entry {
    fn key(&self) -> &Key {
        &self.tenant.keys[self.place]
    }
}

/// Whose a key is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found<'a> {
    /// A tenant's, now.
    Valid(&'a Arc<Tenant>, &'a KeyId),
    /// A tenant's, until the key or the tenant expired. Outside it is as one that is unknown.
    Expired(&'a Arc<Tenant>, &'a KeyId),
    /// Nobody's.
    Unknown,
}

impl Tenant {
    /// Whether the tenant itself has expired.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.settings.expires.is_some_and(|end| now >= end)
    }
}

impl Key {
    /// Whether the key has expired; its tenant may have all the same.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|end| now >= end)
    }
}

impl Keyring {
    /// Reads a key file.
    ///
    /// # Errors
    /// All its faults, each with its place; never the text of a key.
    pub fn parse(text: &str) -> Result<Self, Vec<Fault>> {
        let mut ring = Self::default();
        for tenant in record::tenants(text)? {
            ring.insert(Arc::new(tenant));
        }
        Ok(ring)
    }

    /// The keys of the command line: their tenants are operators and have no limits.
    ///
    /// # Errors
    /// A key that is given for two tenants.
    pub fn from_api_keys(keys: &[ApiKey]) -> Result<Self, Vec<Fault>> {
        let mut tenants: BTreeMap<&str, Vec<Key>> = BTreeMap::new();
        let mut seen: HashMap<&str, &str> = HashMap::new();
        let mut faults = Faults::default();
        for (place, key) in keys.iter().enumerate() {
            let (tenant, text) = (key.tenant.as_str(), key.secret.reveal());
            match seen.insert(text, tenant) {
                None => tenants.entry(tenant).or_default().push(Key {
                    id: KeyId::of_flag(place + 1),
                    hash: KeyHash::of(text.as_bytes()),
                    created: None,
                    expires: None,
                    note: None,
                }),
                Some(other) if other != tenant => {
                    faults.add("--api-key", format!("{other} and {tenant} have the same key"));
                }
                Some(_) => {}
            }
        }
        let mut ring = Self::default();
        for (name, keys) in tenants {
            let (name, settings) = (TenantId(Arc::from(name)), Settings::of_flag());
            ring.insert(Arc::new(Tenant { name, settings, keys }));
        }
        faults.or(ring)
    }

    /// Both together: those of the file with those of the command line.
    ///
    /// # Errors
    /// Tenants that both name, since it would not be clear what holds, and keys that both have.
    pub fn join(mut self, flags: &Self) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        for tenant in flags.tenants().filter(|tenant| self.tenants.contains_key(&tenant.name)) {
            let message = "--api-key names this tenant too; it can be in one of both";
            faults.add(format!("tenants.{}", tenant.name.0), message);
        }
        let keys = flags.tenants().flat_map(|tenant| &tenant.keys);
        for both in keys.filter_map(|key| self.entry(&key.hash)) {
            let place = format!("tenants.{}.keys", both.tenant.name.0);
            faults.add(place, format!("{} is given as --api-key too", both.key().id));
        }
        for tenant in flags.tenants() {
            self.insert(Arc::clone(tenant));
        }
        faults.or(self)
    }

    fn insert(&mut self, tenant: Arc<Tenant>) {
        for (place, key) in tenant.keys.iter().enumerate() {
            let entry = Entry { tenant: Arc::clone(&tenant), place };
            self.keys.entry(key.hash.head()).or_default().push(entry);
        }
        self.tenants.insert(tenant.name.clone(), tenant);
    }

    /// Whose a key is. One hash and one look-up, however many keys there are.
    pub fn find(&self, key: &[u8], now: SystemTime) -> Found<'_> {
        // No key is longer, so the time says only what was sent.
        if key.len() > KEY_BYTES_MAX {
            return Found::Unknown;
        }
        let Some(entry) = self.entry(&KeyHash::of(key)) else {
            return Found::Unknown;
        };
        let (tenant, key) = (&entry.tenant, entry.key());
        if tenant.is_expired(now) || key.is_expired(now) {
            return Found::Expired(tenant, &key.id);
        }
        Found::Valid(tenant, &key.id)
    }

    fn entry(&self, hash: &KeyHash) -> Option<&Entry> {
        self.keys.get(&hash.head())?.iter().find(|entry| entry.key().hash == *hash)
    }

    /// All tenants, by name.
    pub fn tenants(&self) -> impl Iterator<Item = &Arc<Tenant>> {
        self.tenants.values()
    }

    /// The tenant of this name.
    pub fn tenant(&self, name: &str) -> Option<&Arc<Tenant>> {
        self.tenants.get(&TenantId(Arc::from(name)))
    }

    /// The key of this id, and whose it is.
    pub fn key(&self, id: &KeyId) -> Option<(&Arc<Tenant>, &Key)> {
        let keys =
            self.tenants().flat_map(|tenant| tenant.keys.iter().map(move |key| (tenant, key)));
        keys.into_iter().find(|(_, key)| key.id == *id)
    }

    /// Whether nobody has a key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl Key {
    /// When it ends, as people read it.
    pub fn end(&self) -> String {
        self.expires.map_or_else(|| "never".to_owned(), moment::written)
    }
}
