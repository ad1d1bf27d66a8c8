//! Additions from many threads, flushes between them and restarts, against a plain model.
//!
//! Goal: what is counted is what was added, by tenant and by day, however threads, flushes and
//! restarts fall. Method: random additions, split over threads; the model is a map.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actors::TenantId;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::usage::day::Moment;
use crate::usage::flush::Shelf as _;
use crate::usage::ledger::Ledger;
use crate::usage::store::Store;
use crate::usage::{Counts, Day, Meter, view};

const NAMES: [&str; 5] = ["acme", "acme/x", "acme/y", "b", "b.c-d_e"];

/// An addition: whose, on which day, and how much.
type Addition = (usize, u64, Counts);

fn additions() -> impl Strategy<Value = Vec<Addition>> {
    let counts = any::<[u16; 3]>().prop_map(|[requests, reads, computed]| Counts {
        requests: requests.into(),
        reads: reads.into(),
        computed_tokens: computed.into(),
        ..Counts::default()
    });
    prop::collection::vec((0..NAMES.len(), 0_u64..4, counts), 0..200)
}

/// What each name has on each day.
fn model(additions: &[Addition]) -> BTreeMap<(String, String), Counts> {
    let mut model = BTreeMap::new();
    for (name, day, counts) in additions {
        let day = Day(u32::try_from(*day).unwrap()).to_string();
        let sum: &mut Counts = model.entry((NAMES[*name].to_owned(), day)).or_default();
        sum.add(*counts);
    }
    model
}

/// The same of a ledger. Tenants contain their sub-tenants, which are taken off again.
fn found(ledger: &Ledger) -> BTreeMap<(String, String), Counts> {
    let mut found = BTreeMap::new();
    for name in NAMES {
        let usage = view::of_one(ledger, name, 400, Day(10));
        let sum = Counts::sum(usage.days.iter().map(|day| day.counts));
        assert_eq!((usage.total, usage.recent), (sum, sum), "{name}");
        for day in usage.days {
            found.insert((name.to_owned(), day.day), day.counts);
        }
    }
    found
}

/// The model with sub-tenants in their tenants.
fn with_parents(model: BTreeMap<(String, String), Counts>) -> BTreeMap<(String, String), Counts> {
    let mut whole = model.clone();
    for ((name, day), counts) in model {
        if let Some((parent, _)) = name.split_once('/') {
            whole.entry((parent.to_owned(), day)).or_default().add(counts);
        }
    }
    whole
}

fn add_all(ledger: &Ledger, additions: &[Addition]) {
    for (name, day, counts) in additions {
        ledger.add(NAMES[*name], *counts, Moment(day * 86_400 + 7));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Threads lose nothing and count nothing twice.
    #[test]
    fn additions_of_many_threads_add_up(additions in additions(), threads in 1_usize..5) {
        let ledger = Ledger::default();
        let share = additions.len().div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            for part in additions.chunks(share) {
                scope.spawn(|| add_all(&ledger, part));
            }
        });
        prop_assert_eq!(found(&ledger), with_parents(model(&additions)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Flushes and restarts change no number.
    #[test]
    fn restarts_change_no_number(
        rounds in prop::collection::vec(
            (prop::collection::vec(additions(), 1..4), any::<bool>()), 1..4)
    ) {
        let folder = TempDir::new().unwrap();
        let mut all = Vec::new();
        for (flushes, is_everything) in rounds {
            let (mut store, ledger) = Store::open(folder.path()).unwrap();
            prop_assert_eq!(found(&ledger), with_parents(model(&all)));
            for additions in flushes {
                add_all(&ledger, &additions);
                all.extend(additions);
                let changes =
                    if is_everything { ledger.take_all() } else { ledger.take_changes() };
                store.write(&changes).unwrap();
            }
        }
        let ledger = Store::open(folder.path()).unwrap().1;
        prop_assert_eq!(found(&ledger), with_parents(model(&all)));
    }
}

#[test]
fn additions_beside_flushes_are_written_once_each() {
    let folder = TempDir::new().unwrap();
    let meter = Meter::open(folder.path()).unwrap();
    let now = SystemTime::now();
    let one = Counts { reads: 1, ..Counts::default() };
    std::thread::scope(|scope| {
        for name in ["a", "b", "a/x"] {
            let (meter, tenant) = (&meter, TenantId(name.into()));
            scope.spawn(move || (0..20_000).for_each(|_| meter.add_at(&tenant, one, now)));
        }
    });
    meter.close(Duration::from_mins(1)).unwrap();
    let read = Meter::read(folder.path()).unwrap();
    assert_eq!(read.usage_of_all(1, now), meter.usage_of_all(1, now));
    assert_eq!(read.usage("a", 1, now).total.reads, 40_000);
}

#[test]
fn midnight_parts_two_days() {
    let meter = Meter::in_memory();
    let tenant = TenantId("a".into());
    let one = Counts { reads: 1, ..Counts::default() };
    // The first of December 2026.
    let midnight = UNIX_EPOCH + Duration::from_hours(20_788 * 24);
    let before = midnight - Duration::from_secs(1);
    for (count, seconds) in [(1, 0), (2, 1), (4, 86_400), (8, 86_401)] {
        let now = before + Duration::from_secs(seconds);
        (0..count).for_each(|_| meter.add_at(&tenant, one, now));
    }
    let usage = meter.usage("a", 2, midnight + Duration::from_hours(24));
    let days: Vec<_> = usage.days.iter().map(|day| (day.day.as_str(), day.counts.reads)).collect();
    assert_eq!(days, [("2026-12-01", 6), ("2026-12-02", 8)]);
    assert_eq!((usage.total.reads, usage.recent.reads), (15, 14));
    assert_eq!(usage.since.as_deref(), Some("2026-11-30T23:59:59Z"));
}
