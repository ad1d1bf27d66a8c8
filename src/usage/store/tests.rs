//! The store: what is written comes back, whatever happens to the process; what is damaged is told.
//!
//! Goal: no number comes out of a store that was not written into it. Method: stores in folders of
//! their own, closed, copied while they are open (as a killed process leaves them), cut and flipped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::usage::counts::Counts;
use crate::usage::day::{Day, Moment};
use crate::usage::view::{UsageOfAll, of_all};

fn reads(reads: u64) -> Counts {
    Counts { requests: 1, reads, ..Counts::default() }
}

fn at(day: u64) -> Moment {
    Moment(day * 86_400)
}

/// All that a ledger says of 400 days, and of each tenant's.
fn seen(ledger: &Ledger) -> (UsageOfAll, Vec<crate::usage::Usage>) {
    let all = of_all(ledger, 400, Day(500));
    let each = all.tenants.iter();
    let each = each.map(|one| crate::usage::view::of_one(ledger, &one.tenant, 400, Day(500)));
    let each = each.collect();
    (all, each)
}

fn opened(folder: &Path) -> (Store, Ledger) {
    Store::open(folder).unwrap()
}

fn flush(store: &mut Store, ledger: &Ledger) {
    store.write(&ledger.take_changes()).unwrap();
}

/// A folder with a store of a few tenants, and what it says after each of its flushes.
fn filled() -> (TempDir, PathBuf, Vec<(UsageOfAll, Vec<crate::usage::Usage>)>) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("deep/usage");
    let (mut store, ledger) = opened(&path);
    let mut states = vec![seen(&ledger)];
    for day in 300..310 {
        for tenant in ["acme", "acme/x", "acme/y", "b", "c.d-e_f"] {
            ledger.add(tenant, reads(day), at(day));
        }
        flush(&mut store, &ledger);
        states.push(seen(&ledger));
    }
    drop(store);
    (folder, path, states)
}

#[test]
fn what_was_written_comes_back() {
    let (_folder, path, states) = filled();
    let (mut store, ledger) = opened(&path);
    assert_eq!(Some(&seen(&ledger)), states.last());
    ledger.add("b", reads(7), at(309));
    flush(&mut store, &ledger);
    let expected = seen(&ledger);
    drop(store);
    assert_eq!(seen(&opened(&path).1), expected);
    assert_ne!(Some(&expected), states.last());
}

#[test]
fn a_flush_that_is_repeated_counts_nothing_twice() {
    let folder = TempDir::new().unwrap();
    let (mut store, ledger) = opened(folder.path());
    ledger.add("a", reads(3), at(1));
    let changes = ledger.take_changes();
    (0..3).for_each(|_| store.write(&changes).unwrap());
    store.write(&ledger.take_all()).unwrap();
    drop(store);
    assert_eq!(seen(&opened(folder.path()).1), seen(&ledger));
}

#[test]
fn dropped_days_are_gone_and_stay_in_the_total() {
    let (_folder, path, _) = filled();
    let (mut store, ledger) = opened(&path);
    let mut changes = ledger.take_all();
    changes.all = false;
    for (_, change) in &mut changes.accounts {
        change.dropped = change.days.drain(..8).map(|(day, _)| day).collect();
    }
    store.write(&changes).unwrap();
    drop(store);
    let (all, each) = seen(&opened(&path).1);
    assert_eq!(all.total, seen(&ledger).0.total);
    assert!(all.recent.reads < all.total.reads);
    assert!(each.iter().all(|usage| usage.days.len() == 2), "{each:?}");
}

#[test]
fn everything_anew_leaves_nothing_old() {
    let (_folder, path, _) = filled();
    let (mut store, _) = opened(&path);
    let other = Ledger::default();
    other.add("only", reads(1), at(400));
    store.write(&other.take_all()).unwrap();
    drop(store);
    assert_eq!(seen(&opened(&path).1), seen(&other));
}

#[test]
fn a_killed_process_leaves_a_store_that_opens() {
    let folder = TempDir::new().unwrap();
    let (mut store, ledger) = opened(folder.path());
    for round in 0..5 {
        ledger.add("a", reads(round), at(round));
        flush(&mut store, &ledger);
        // The file as the kernel has it while the process lives; not closed, never repaired.
        let copy = TempDir::new().unwrap();
        fs::copy(store.folder.store(), folder::store(copy.path())).unwrap();
        assert_eq!(seen(&read(copy.path()).unwrap()), seen(&ledger));
        assert_eq!(seen(&opened(copy.path()).1), seen(&ledger));
    }
}

#[test]
fn a_store_that_somebody_has_is_told_from_one_that_is_not_there() {
    let (folder, path, states) = filled();
    let store = opened(&path);
    assert!(matches!(Store::open(&path), Err(UsageError::InUse(_))));
    assert!(matches!(read(&path), Err(UsageError::InUse(_))));
    drop(store);
    let before = fs::read(folder::store(&path)).unwrap();
    assert_eq!(Some(&seen(&read(&path).unwrap())), states.last());
    assert_eq!(fs::read(folder::store(&path)).unwrap(), before, "reading writes nothing");
    assert!(matches!(read(folder.path()), Err(UsageError::Absent(_))));
    assert!(matches!(read(&folder.path().join("none")), Err(UsageError::Absent(_))));
}

#[test]
fn a_folder_stays_its_holders_while_the_store_is_closed() {
    let folder = TempDir::new().unwrap();
    let held = Folder::hold(folder.path()).unwrap();
    assert!(matches!(Folder::hold(folder.path()), Err(UsageError::InUse(_))));
    assert!(matches!(read(folder.path()), Err(UsageError::InUse(_))));
    drop(held);
    assert!(matches!(read(folder.path()), Err(UsageError::Absent(_))));
    assert!(Folder::hold(folder.path()).is_ok());
}

#[test]
fn a_folder_that_cannot_be_is_told() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    for path in [file.clone(), file.join("usage"), PathBuf::from("/proc/usage")] {
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, UsageError::Io { .. }), "{error}");
        assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
    }
    assert!(matches!(read(&file), Err(UsageError::Absent(_))));
}

#[test]
fn what_is_no_store_is_told_and_left_as_it_is() {
    let zeros = vec![0; 100_000];
    for content in [&b""[..], b"x", b"# not a store\n", &zeros] {
        let folder = TempDir::new().unwrap();
        let path = folder::store(folder.path());
        fs::write(&path, content).unwrap();
        for error in [Store::open(folder.path()).unwrap_err(), read(folder.path()).unwrap_err()] {
            assert!(matches!(error, UsageError::Damaged { .. }), "{error}");
            assert!(error.to_string().contains("move it away"), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn a_store_of_a_newer_layout_is_told() {
    const ABOUT: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("about");
    let folder = TempDir::new().unwrap();
    drop(opened(folder.path()));
    let database = Database::open(folder::store(folder.path())).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(ABOUT).unwrap().insert("format", 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, UsageError::Newer { format: 2, known: 1, .. }), "{error}");
}

#[test]
fn what_was_left_of_a_store_in_the_making_is_no_obstacle() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("usage.redb.new"), "half of").unwrap();
    let (mut store, ledger) = opened(folder.path());
    ledger.add("a", reads(1), at(1));
    flush(&mut store, &ledger);
    assert!(!folder.path().join("usage.redb.new").exists());
}

#[test]
fn a_store_that_was_removed_is_made_again_with_everything() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("usage");
    let (mut store, ledger) = opened(&path);
    ledger.add("a", reads(1), at(1));
    flush(&mut store, &ledger);
    fs::remove_dir_all(&path).unwrap();
    assert!(!store.is_open());
    ledger.add("b", reads(1), at(1));
    store.write(&ledger.take_all()).unwrap();
    assert!(store.is_open());
    drop(store);
    assert_eq!(seen(&opened(&path).1), seen(&ledger));
}

/// Opens a damaged store in both ways: an error, or what it said after one of its last two flushes.
fn check_damaged(content: &[u8], states: &[(UsageOfAll, Vec<crate::usage::Usage>)]) -> bool {
    let folder = TempDir::new().unwrap();
    fs::write(folder::store(folder.path()), content).unwrap();
    let outcomes = catch_unwind(AssertUnwindSafe(|| {
        let copy = read(folder.path()).map(|ledger| seen(&ledger));
        [copy, Store::open(folder.path()).map(|(_, ledger)| seen(&ledger))]
    }));
    let outcomes = outcomes.expect("a damaged store is no panic");
    for outcome in &outcomes {
        match outcome {
            Ok(seen) => assert!(states.iter().rev().take(2).any(|state| state == seen)),
            Err(error) => assert!(matches!(error, UsageError::Damaged { .. }), "{error}"),
        }
    }
    outcomes.iter().all(Result::is_ok)
}

#[test]
fn a_cut_store_is_an_error() {
    let (_folder, path, states) = filled();
    let whole = fs::read(folder::store(&path)).unwrap();
    assert!(check_damaged(&whole, &states));
    for eighth in 0..8 {
        for cut in [whole.len() * eighth / 8, whole.len() * eighth / 8 + 513] {
            assert!(!check_damaged(&whole[..cut], &states), "{cut} of {}", whole.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1, ..ProptestConfig::default() })]

    /// A flipped bit, or a page of something else, is an error or changes no number.
    #[test]
    fn a_flipped_bit_is_an_error_or_changes_nothing(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8, any::<bool>()), 150)
    ) {
        let (_folder, path, states) = filled();
        let whole = fs::read(folder::store(&path)).unwrap();
        let mut errors = 0;
        for (place, bit, is_early) in flips {
            let mut damaged = whole.clone();
            // Half of them where the library has its roots.
            let place = place.index(if is_early { 512 } else { whole.len() });
            damaged[place] ^= 1 << bit;
            errors += usize::from(!check_damaged(&damaged, &states));
        }
        prop_assert!(errors > 5, "{errors}");
    }
}
