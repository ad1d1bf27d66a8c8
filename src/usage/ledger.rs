//! The accounts of all tenants in memory: added to by every request, read by the flushes.
//!
//! An addition takes two locks for a few nanoseconds each: the map's, shared by all who do not bring
//! a new name, and the account's own. Both are free while a flush writes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::account::{Account, Change};
use super::counts::Counts;
use super::day::{Day, Moment};
use super::{ALL_SUB_TENANTS_MAX, DAY_RECORDS_MAX, DAYS_MAX, OTHERS, SUB_TENANTS_MAX, TENANTS_MAX};

/// What separates a tenant's name from its sub-tenant's.
const SEPARATOR: char = '/';

/// Longest name of a tenant with its sub-tenant, in bytes; what is longer is counted for [`OTHERS`].
const NAME_BYTES_MAX: usize = 2 * crate::config::keys::TENANT_BYTES_MAX + 1;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) tenants: usize,
    pub(super) sub_tenants: usize,
    pub(super) all_sub_tenants: usize,
    pub(super) days: usize,
    pub(super) day_records: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tenants: TENANTS_MAX,
            sub_tenants: SUB_TENANTS_MAX,
            all_sub_tenants: ALL_SUB_TENANTS_MAX,
            days: DAYS_MAX,
            day_records: DAY_RECORDS_MAX,
        }
    }
}

/// The accounts of all tenants.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    limits: Limits,
    tenants: Named<Tenant>,
    /// Sub-tenants of all tenants.
    sub_tenants: AtomicUsize,
    /// Whether anything was added after changes were last taken, so that an idle server looks at
    /// no account twice a second.
    changed: AtomicBool,
}

/// What a flush writes: tenants' full names and what changed of each.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Whether these are all that there is: the store forgets everything else.
    pub(super) all: bool,
    pub(super) accounts: Vec<(Arc<str>, Change)>,
}

/// A tenant: what was counted for itself, and its sub-tenants.
#[derive(Debug, Default)]
pub(super) struct Tenant {
    own: Mutex<Account>,
    sub_tenants: Named<Mutex<Account>>,
}

/// Things by name; a lock for readers, since names are new once.
#[derive(Debug)]
struct Named<T>(RwLock<HashMap<Arc<str>, Arc<T>>>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Default> Named<T> {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<Arc<str>, Arc<T>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Arc<str>, Arc<T>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has this name; where nothing has it, something new, or what is called `others` if there
    /// is no place for more (`has_place` is told how many there are).
    fn get(&self, name: &str, others: &str, has_place: impl FnOnce(usize) -> bool) -> Arc<T> {
        if let Some(found) = self.read().get(name) {
            return Arc::clone(found);
        }
        let mut all = self.write();
        // Somebody else may have brought the name between the two locks.
        let name = if all.contains_key(name) || has_place(all.len()) { name } else { others };
        Arc::clone(all.entry(Arc::from(name)).or_default())
    }

    /// All of them, by name; the lock is not kept.
    fn all(&self) -> Vec<(Arc<str>, Arc<T>)> {
        let all = self.read();
        let mut all: Vec<_> =
            all.iter().map(|(name, found)| (Arc::clone(name), Arc::clone(found))).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

impl Tenant {
    /// Its own account.
    pub(super) fn own(&self) -> MutexGuard<'_, Account> {
        locked(&self.own)
    }

    /// The accounts of its sub-tenants by their full names, in their order.
    pub(super) fn sub_tenants(&self) -> Vec<(Arc<str>, Arc<Mutex<Account>>)> {
        self.sub_tenants.all()
    }

    /// The account of one sub-tenant by its full name.
    pub(super) fn sub_tenant(&self, name: &str) -> Option<Arc<Mutex<Account>>> {
        self.sub_tenants.read().get(name).map(Arc::clone)
    }
}

impl Ledger {
    #[cfg(test)]
    pub(super) fn limited(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Counts something for the tenant of this name, `PARENT/SUB` for a sub-tenant.
    pub(super) fn add(&self, name: &str, counts: Counts, now: Moment) {
        let name = if name.len() > NAME_BYTES_MAX { OTHERS } else { name };
        self.on_account(name, |account| account.add(counts, now));
        if !self.changed.load(Ordering::Relaxed) {
            self.changed.store(true, Ordering::Release);
        }
    }

    /// Acts on the account of a name, a new one where there is none and place for it.
    fn on_account(&self, name: &str, act: impl FnOnce(&mut Account)) {
        let parent = name.split_once(SEPARATOR).map_or(name, |(parent, _)| parent);
        if let Some(tenant) = self.tenants.read().get(parent) {
            return self.on_account_of(tenant, parent, name, act);
        }
        let tenant = self.tenants.get(parent, OTHERS, |tenants| tenants < self.limits.tenants);
        // Without a place for the tenant there is none for its sub-tenants.
        let is_known = self.tenants.read().contains_key(parent);
        self.on_account_of(&tenant, parent, if is_known { name } else { parent }, act);
    }

    fn on_account_of(
        &self,
        tenant: &Tenant,
        parent: &str,
        name: &str,
        act: impl FnOnce(&mut Account),
    ) {
        if name.len() == parent.len() {
            return act(&mut tenant.own());
        }
        if let Some(account) = tenant.sub_tenants.read().get(name) {
            return act(&mut locked(account));
        }
        let others = format!("{parent}{SEPARATOR}{OTHERS}");
        let has_place = |sub_tenants| {
            sub_tenants < self.limits.sub_tenants
                && self.sub_tenants.fetch_add(1, Ordering::Relaxed) < self.limits.all_sub_tenants
        };
        act(&mut locked(&tenant.sub_tenants.get(name, &others, has_place)));
    }

    /// Puts an account in as a store has it, whatever the limits are.
    pub(super) fn restore(&self, name: &str, account: Account) {
        let (parent, is_sub) =
            name.split_once(SEPARATOR).map_or((name, false), |(parent, _)| (parent, true));
        let tenant = self.tenants.get(parent, parent, |_| true);
        if is_sub {
            self.sub_tenants.fetch_add(1, Ordering::Relaxed);
            tenant.sub_tenants.write().insert(Arc::from(name), Arc::new(Mutex::new(account)));
        } else {
            *tenant.own() = account;
        }
    }

    /// Puts a day of an account in as a store has it; `false` where the account is unknown.
    pub(super) fn restore_day(&self, name: &str, day: Day, counts: Counts) -> bool {
        let parent = name.split_once(SEPARATOR).map_or(name, |(parent, _)| parent);
        let Some(tenant) = self.tenant(parent) else { return false };
        if parent.len() == name.len() {
            let mut own = tenant.own();
            own.restore(day, counts);
            return own.since().is_some();
        }
        let account = tenant.sub_tenant(name);
        account.map(|account| locked(&account).restore(day, counts)).is_some()
    }

    /// A tenant.
    pub(super) fn tenant(&self, name: &str) -> Option<Arc<Tenant>> {
        self.tenants.read().get(name).map(Arc::clone)
    }

    /// All tenants, by name.
    pub(super) fn tenants(&self) -> Vec<(Arc<str>, Arc<Tenant>)> {
        self.tenants.all()
    }

    /// Takes what changed since this was last called.
    pub(super) fn take_changes(&self) -> Changes {
        if !self.changed.swap(false, Ordering::Acquire) {
            return Changes::default();
        }
        self.prune();
        let mut accounts = Vec::new();
        self.each(|name, account| {
            accounts.extend(account.take_changes().map(|change| (Arc::clone(name), change)));
        });
        Changes { all: false, accounts }
    }

    /// Takes everything, for a store that may have nothing of it.
    pub(super) fn take_all(&self) -> Changes {
        self.changed.store(false, Ordering::Relaxed);
        self.prune();
        let mut accounts = Vec::new();
        self.each(|name, account| {
            if account.since().is_some() {
                accounts.push((Arc::clone(name), account.take_all()));
            }
        });
        Changes { all: true, accounts }
    }

    /// Visits every account, each under its own lock.
    fn each(&self, mut visit: impl FnMut(&Arc<str>, &mut Account)) {
        for (name, tenant) in self.tenants() {
            visit(&name, &mut tenant.own());
            for (name, account) in tenant.sub_tenants() {
                visit(&name, &mut locked(&account));
            }
        }
    }

    /// Gives up days that are too many: of one tenant, or of all together.
    fn prune(&self) {
        let mut records = 0;
        self.each(|_, account| {
            account.prune(self.limits.days, Day(0));
            records += account.days().len();
        });
        if records > self.limits.day_records {
            let first = self.first_day_with_place();
            self.each(|_, account| account.prune(self.limits.days, first));
        }
    }

    /// The first day from which on all records have place; at least today stays.
    fn first_day_with_place(&self) -> Day {
        let mut records: BTreeMap<Day, usize> = BTreeMap::new();
        self.each(|_, account| {
            account.days().keys().for_each(|day| *records.entry(*day).or_default() += 1);
        });
        let mut sum = 0;
        let newest_first = records.iter().rev().skip(1);
        let mut first = records.last_key_value().map_or(Day(0), |(day, count)| {
            sum = *count;
            *day
        });
        for (day, count) in newest_first {
            sum += count;
            if sum > self.limits.day_records {
                break;
            }
            first = *day;
        }
        first
    }
}

/// An account under its lock. No addition can leave one half done, so that a panic elsewhere is no
/// reason not to use it.
pub(super) fn locked(account: &Mutex<Account>) -> MutexGuard<'_, Account> {
    account.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Counts {
        Counts { requests: 1, ..Counts::default() }
    }

    fn on_day(ledger: &Ledger, name: &str, day: u64) {
        ledger.add(name, one(), Moment(day * 86_400));
    }

    /// Names and requests of all accounts that have any.
    fn requests(ledger: &Ledger) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        ledger.each(|name, account| found.push((name.to_string(), account.total().requests)));
        found.retain(|(_, requests)| *requests > 0);
        found
    }

    fn pairs(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
        pairs.iter().map(|(name, requests)| ((*name).to_owned(), *requests)).collect()
    }

    #[test]
    fn tenants_without_a_place_are_counted_as_others() {
        let limits = Limits { tenants: 2, ..Limits::default() };
        let ledger = Ledger::limited(limits);
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for name in ["a", "b", "c", "d", "b", "c/sub", &long] {
            on_day(&ledger, name, 1);
        }
        assert_eq!(requests(&ledger), pairs(&[("(others)", 4), ("a", 1), ("b", 2)]));
    }

    #[test]
    fn sub_tenants_without_a_place_are_counted_as_others_of_their_tenant() {
        let limits = Limits { sub_tenants: 2, all_sub_tenants: 3, ..Limits::default() };
        let ledger = Ledger::limited(limits);
        for name in ["a/1", "a/2", "a/3", "a/4", "a/1", "b/1", "b/2", "b/3", "c", "c/1"] {
            on_day(&ledger, name, 1);
        }
        let a = [("a/(others)", 2), ("a/1", 2), ("a/2", 1)];
        let others = [("b/(others)", 2), ("b/1", 1), ("c", 1), ("c/(others)", 1)];
        assert_eq!(requests(&ledger), pairs(&[&a[..], &others[..]].concat()));
    }

    #[test]
    fn what_a_store_has_comes_back_whatever_the_limits_are() {
        let ledger = Ledger::limited(Limits { tenants: 0, sub_tenants: 0, ..Limits::default() });
        for name in ["a", "b", "b/1"] {
            ledger.restore(name, Account::stored(Moment(5), one()));
        }
        assert_eq!(requests(&ledger), pairs(&[("a", 1), ("b", 1), ("b/1", 1)]));
        assert_eq!(ledger.take_changes(), Changes::default());
        on_day(&ledger, "b/1", 1);
        assert_eq!(requests(&ledger), pairs(&[("a", 1), ("b", 1), ("b/1", 2)]));
        assert_eq!(ledger.take_changes().accounts.len(), 1);
        assert_eq!(ledger.take_all().accounts.len(), 3);
    }

    #[test]
    fn the_oldest_days_go_first() {
        let ledger = Ledger::limited(Limits { days: 3, ..Limits::default() });
        (1..=5).for_each(|day| on_day(&ledger, "a", day));
        on_day(&ledger, "b", 1);
        let (_, change) = &ledger.take_changes().accounts[0];
        assert_eq!(change.days.iter().map(|(day, _)| day.0).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(change.total.requests, 5);
        assert_eq!(ledger.tenant("b").unwrap().own().days().len(), 1, "has place of its own");
    }

    #[test]
    fn the_oldest_days_of_all_go_where_they_are_too_many_together() {
        let ledger = Ledger::limited(Limits { day_records: 4, ..Limits::default() });
        for (name, day) in [("a", 1), ("a", 2), ("b", 2), ("a", 3), ("b", 3), ("c", 3)] {
            on_day(&ledger, name, day);
        }
        let changes = ledger.take_changes();
        let dropped: Vec<_> =
            changes.accounts.iter().map(|(_, change)| change.dropped.clone()).collect();
        assert_eq!(dropped, [vec![Day(1), Day(2)], vec![Day(2)], vec![]]);
        on_day(&ledger, "d", 3);
        on_day(&ledger, "e", 3);
        let left = ledger.take_changes().accounts;
        assert!(left.iter().all(|(_, change)| change.days.len() == 1), "today stays: {left:?}");
    }
}
