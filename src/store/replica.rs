//! What one server knows of the records of a kind: the newest that it was told of, whoever told.
//!
//! A server hears of its own changes from its own hand at once, and of all changes, those among them,
//! in order from the store. So it may hear of an older state of a record after a newer one; the newer
//! one stays. A removal is remembered until every older state must have been told of.

use std::collections::BTreeMap;

use actors::TenantId;

use super::Version;

/// The newest known state of the records of one kind.
#[derive(Debug)]
pub struct Replica<T> {
    /// All changes up to this one are in.
    seen: Version,
    /// The largest number that was ever taken.
    newest: Version,
    tenants: BTreeMap<TenantId, BTreeMap<String, Known<T>>>,
}

#[derive(Debug)]
struct Known<T> {
    version: Version,
    /// It is of another history of the store and was not told of in this one so far.
    is_stale: bool,
    bytes: usize,
    /// `None`: it was removed.
    what: Option<T>,
}

impl<T> Default for Replica<T> {
    fn default() -> Self {
        let (seen, newest) = (Version::default(), Version::default());
        Self { seen, newest, tenants: BTreeMap::new() }
    }
}

impl<T> Replica<T> {
    /// Takes a state of a record, unless a newer one is known; says whether it did.
    ///
    /// * `what`: the record and how many bytes it has; `None` where it was removed.
    pub fn take(
        &mut self,
        (tenant, id): (&TenantId, &str),
        version: Version,
        what: Option<(T, usize)>,
    ) -> bool {
        if self.knows((tenant, id), version) {
            return false;
        }
        let (what, bytes) = match what {
            Some((what, bytes)) => (Some(what), bytes),
            None => (None, 0),
        };
        let known = Known { version, is_stale: false, bytes, what };
        let own = self.tenants.entry(tenant.clone()).or_default();
        own.insert(id.to_owned(), known);
        self.newest = self.newest.max(version);
        true
    }

    /// Whether nothing newer than this state of a record is to be told.
    pub fn knows(&self, (tenant, id): (&TenantId, &str), version: Version) -> bool {
        let known = self.tenants.get(tenant).and_then(|own| own.get(id));
        known.is_some_and(|known| !known.is_stale && known.version >= version)
    }

    /// A number larger than all that were taken, for who alone gives them.
    pub fn next(&self) -> Version {
        Version(self.newest.0 + 1)
    }

    /// What is known is of another history: it stays until [`Self::seen`] unless it is told of again.
    pub fn anew(&mut self) {
        self.seen = Version::default();
        for known in self.tenants.values_mut().flat_map(BTreeMap::values_mut) {
            known.is_stale = true;
        }
    }

    /// All changes up to this one are in.
    pub fn seen(&mut self, version: Version) {
        self.seen = version;
        let stays =
            |known: &Known<T>| !known.is_stale && (known.what.is_some() || known.version > version);
        self.tenants.retain(|_, own| {
            own.retain(|_, known| stays(known));
            !own.is_empty()
        });
    }

    /// A tenant's records, oldest change first.
    pub fn of(&self, tenant: &TenantId) -> Vec<&T> {
        let own = self.tenants.get(tenant).into_iter().flat_map(BTreeMap::values);
        let mut own: Vec<_> =
            own.filter_map(|known| Some((known.version, known.what.as_ref()?))).collect();
        own.sort_by_key(|(version, _)| *version);
        own.into_iter().map(|(_, what)| what).collect()
    }

    /// A record of this name.
    pub fn find(&self, tenant: &TenantId, id: &str) -> Option<&T> {
        self.tenants.get(tenant)?.get(id)?.what.as_ref()
    }

    /// All records of all tenants.
    pub fn all(&self) -> impl Iterator<Item = (&TenantId, &str, &T)> {
        self.tenants.iter().flat_map(|(tenant, own)| {
            own.iter()
                .filter_map(move |(id, known)| Some((tenant, id.as_str(), known.what.as_ref()?)))
        })
    }

    /// All records of a tenant and its sub-tenants.
    pub fn paid_by<'a>(
        &'a self,
        payer: &'a str,
    ) -> impl Iterator<Item = (&'a TenantId, &'a str, &'a T)> {
        self.all().filter(move |(tenant, ..)| tenant.payer() == payer)
    }

    /// How many records a tenant has with its sub-tenants, and how many bytes, by its name.
    pub fn sizes(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut sizes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (tenant, own) in &self.tenants {
            let (count, bytes) = sizes.entry(tenant.payer()).or_default();
            *count += own.values().filter(|known| known.what.is_some()).count();
            *bytes += own.values().map(|known| known.bytes).sum::<usize>();
        }
        sizes
    }

    /// All changes up to this one are in.
    pub fn version(&self) -> Version {
        self.seen
    }
}
