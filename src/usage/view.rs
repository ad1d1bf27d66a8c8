//! Usage as it is shown: one tenant with its days, or all of them, in the shape of the JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::account::Account;
use super::counts::Counts;
use super::day::{Day, Moment};
use super::ledger::{Ledger, Tenant, locked};
use crate::config::keys::tenant_hash;

/// What was counted for one tenant. Numbers contain those of its sub-tenants, as its limits do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// The tenant; `PARENT/SUB` for a sub-tenant.
    pub tenant: String,
    /// As logs and traces show it, see [`tenant_hash`].
    pub hash: String,
    /// When it was first counted, as RFC 3339 in UTC; `None` where it never was.
    pub since: Option<String>,
    /// All that was ever counted.
    pub total: Counts,
    /// The sum of the last days that were asked for, of which today is one.
    pub recent: Counts,
    /// Those of these days on which something was counted, the oldest first.
    pub days: Vec<DayUsage>,
    /// The sub-tenants, by name.
    pub sub_tenants: Vec<SubUsage>,
}

/// What was counted on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DayUsage {
    /// The day in UTC, as `YYYY-MM-DD`.
    pub day: String,
    /// What was counted on it.
    #[serde(flatten)]
    pub counts: Counts,
}

/// What was counted for a sub-tenant, or for a tenant in the list of all, without its days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubUsage {
    /// The full name.
    pub tenant: String,
    /// As logs and traces show it, see [`tenant_hash`].
    pub hash: String,
    /// When it was first counted.
    pub since: Option<String>,
    /// All that was ever counted.
    pub total: Counts,
    /// The sum of the last days.
    pub recent: Counts,
}

/// What was counted for all tenants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageOfAll {
    /// How many days `recent` sums up, today among them.
    pub days: u32,
    /// The sum over all tenants.
    pub total: Counts,
    /// The sum over all tenants of the last days.
    pub recent: Counts,
    /// Tenants and sub-tenants, each tenant ahead of its own; its numbers contain theirs.
    pub tenants: Vec<SubUsage>,
}

/// An account without its lock.
#[derive(Debug, Default)]
struct Sheet {
    since: Option<Moment>,
    total: Counts,
    days: BTreeMap<Day, Counts>,
}

impl Sheet {
    /// An account's numbers, of days from `first` on.
    fn of(account: &Account, first: Day) -> Self {
        let days = account.days().range(first..).map(|(day, counts)| (*day, *counts)).collect();
        Self { since: account.since(), total: account.total(), days }
    }

    fn add(&mut self, other: &Self) {
        self.since = self.since.into_iter().chain(other.since).min();
        self.total.add(other.total);
        for (day, counts) in &other.days {
            self.days.entry(*day).or_default().add(*counts);
        }
    }

    fn entry(&self, tenant: &str) -> SubUsage {
        SubUsage {
            tenant: tenant.to_owned(),
            hash: tenant_hash(tenant),
            since: self.since.map(|since| since.to_string()),
            total: self.total,
            recent: Counts::sum(self.days.values().copied()),
        }
    }
}

/// A tenant with its sub-tenants, and these each.
fn sheets(tenant: &Tenant, first: Day) -> (Sheet, Vec<(String, Sheet)>) {
    let mut whole = Sheet::of(&tenant.own(), first);
    let mut parts = Vec::new();
    for (name, account) in tenant.sub_tenants() {
        let part = Sheet::of(&locked(&account), first);
        whole.add(&part);
        parts.push((name.to_string(), part));
    }
    (whole, parts)
}

/// Usage of one tenant or sub-tenant in the last `days` days; zeros for one that was never counted.
pub(super) fn of_one(ledger: &Ledger, name: &str, days: u32, today: Day) -> Usage {
    let first = first_day(days, today);
    let parent = name.split_once('/').map_or(name, |(parent, _)| parent);
    let tenant = ledger.tenant(parent);
    let (whole, parts) = match tenant {
        Some(tenant) if parent.len() == name.len() => sheets(&tenant, first),
        Some(tenant) => {
            let account = tenant.sub_tenant(name);
            let sheet = account.map(|account| Sheet::of(&locked(&account), first));
            (sheet.unwrap_or_default(), Vec::new())
        }
        None => Default::default(),
    };
    let SubUsage { tenant, hash, since, total, recent } = whole.entry(name);
    let by_day =
        |(day, counts): (&Day, &Counts)| DayUsage { day: day.to_string(), counts: *counts };
    let days = whole.days.iter().map(by_day).collect();
    let sub_tenants = parts.iter().map(|(name, part)| part.entry(name)).collect();
    Usage { tenant, hash, since, total, recent, days, sub_tenants }
}

/// Usage of all tenants.
pub(super) fn of_all(ledger: &Ledger, days: u32, today: Day) -> UsageOfAll {
    let first = first_day(days, today);
    let mut all = UsageOfAll {
        days,
        total: Counts::default(),
        recent: Counts::default(),
        tenants: Vec::new(),
    };
    for (name, tenant) in ledger.tenants() {
        let (whole, parts) = sheets(&tenant, first);
        let whole = whole.entry(&name);
        all.total.add(whole.total);
        all.recent.add(whole.recent);
        all.tenants.push(whole);
        all.tenants.extend(parts.iter().map(|(name, part)| part.entry(name)));
    }
    all
}

/// The first of the days that are shown; with none of them, one that no clock reaches.
fn first_day(days: u32, today: Day) -> Day {
    if days == 0 { Day(u32::MAX) } else { today.first_of(days) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ledger() -> Ledger {
        let ledger = Ledger::default();
        let reads = |reads| Counts { requests: 1, reads, ..Counts::default() };
        for (name, day, count) in
            [("acme", 10, 1), ("acme/x", 10, 2), ("acme/x", 40, 3), ("acme/y", 39, 4), ("b", 40, 5)]
        {
            ledger.add(name, reads(count), Moment(day * 86_400));
        }
        ledger
    }

    fn numbers(value: &Value) -> (u64, u64) {
        (value["requests"].as_u64().unwrap(), value["reads"].as_u64().unwrap())
    }

    #[test]
    fn a_tenants_numbers_contain_those_of_its_sub_tenants() {
        let usage = serde_json::to_value(of_one(&ledger(), "acme", 2, Day(40))).unwrap();
        assert_eq!(
            (&usage["tenant"], &usage["hash"]),
            (&json!("acme"), &json!(tenant_hash("acme")))
        );
        assert_eq!(usage["sub_tenants"][1]["hash"], tenant_hash("acme/y"));
        assert_eq!(usage["since"], "1970-01-11T00:00:00Z");
        assert_eq!((numbers(&usage["total"]), numbers(&usage["recent"])), ((4, 10), (2, 7)));
        let days = usage["days"].as_array().unwrap();
        let days: Vec<_> = days.iter().map(|day| (&day["day"], numbers(day))).collect();
        assert_eq!(days, [(&json!("1970-02-09"), (1, 4)), (&json!("1970-02-10"), (1, 3))]);
        let subs = usage["sub_tenants"].as_array().unwrap();
        let subs: Vec<_> =
            subs.iter().map(|sub| (&sub["tenant"], numbers(&sub["total"]))).collect();
        assert_eq!(subs, [(&json!("acme/x"), (2, 5)), (&json!("acme/y"), (1, 4))]);
        assert_eq!(usage["sub_tenants"][0]["since"], "1970-01-11T00:00:00Z");
    }

    #[test]
    fn a_sub_tenant_is_shown_alone() {
        let usage = of_one(&ledger(), "acme/x", 400, Day(40));
        assert_eq!((usage.total.reads, usage.days.len()), (5, 2));
        assert!(usage.sub_tenants.is_empty());
    }

    #[test]
    fn whoever_was_never_counted_has_zeros() {
        for name in ["none", "acme/none", "none/x"] {
            let usage = of_one(&ledger(), name, 30, Day(40));
            assert_eq!((usage.tenant.as_str(), usage.since), (name, None));
            assert_eq!((usage.total, usage.days.len()), (Counts::default(), 0));
        }
    }

    #[test]
    fn all_tenants_are_summed_up_once() {
        let all = of_all(&ledger(), 1, Day(40));
        let names: Vec<_> = all.tenants.iter().map(|entry| entry.tenant.as_str()).collect();
        assert_eq!(names, ["acme", "acme/x", "acme/y", "b"]);
        assert_eq!((all.total.reads, all.recent.reads), (15, 8));
        let none = of_all(&ledger(), 0, Day(40));
        assert_eq!((none.total.reads, none.recent), (15, Counts::default()));
    }
}
