//! One tenant's counts in memory, and which of them the store has not yet.

use std::collections::BTreeMap;

use super::counts::Counts;
use super::day::{Day, Moment};

/// What was counted for one tenant.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// When it was first counted.
    since: Option<Moment>,
    /// All that was ever counted, of days that are no longer kept too.
    total: Counts,
    days: BTreeMap<Day, Counts>,
    /// The first day that changed after the last flush took the changes.
    changed_from: Option<Day>,
    /// Days given up after that.
    dropped: Vec<Day>,
}

/// What a store is told of one tenant: absolute values, which it keeps in the place of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) since: Moment,
    pub(super) total: Counts,
    pub(super) days: Vec<(Day, Counts)>,
    /// Days that the store is to forget.
    pub(super) dropped: Vec<Day>,
}

impl Account {
    /// An account as a store has it.
    pub(super) fn stored(since: Moment, total: Counts) -> Self {
        Self { since: Some(since), total, ..Self::default() }
    }

    /// Takes in a day as a store has it.
    pub(super) fn restore(&mut self, day: Day, counts: Counts) {
        self.days.insert(day, counts);
    }

    /// Counts something.
    pub(super) fn add(&mut self, counts: Counts, now: Moment) {
        let day = now.day();
        self.since.get_or_insert(now);
        self.total.add(counts);
        self.days.entry(day).or_default().add(counts);
        self.changed_from = Some(self.changed_from.map_or(day, |from| from.min(day)));
    }

    /// Takes what changed since this was last called; `None` where nothing did.
    pub(super) fn take_changes(&mut self) -> Option<Change> {
        let from = self.changed_from.take();
        let dropped = std::mem::take(&mut self.dropped);
        if from.is_none() && dropped.is_empty() {
            return None;
        }
        Some(self.change(from, dropped))
    }

    /// Takes everything, for a store that may have nothing of it.
    pub(super) fn take_all(&mut self) -> Change {
        self.changed_from = None;
        self.dropped.clear();
        self.change(Some(Day(0)), Vec::new())
    }

    fn change(&self, from: Option<Day>, dropped: Vec<Day>) -> Change {
        let since = self.since.unwrap_or(Moment(0));
        let days = from.map(|from| self.days.range(from..)).into_iter().flatten();
        let days = days.map(|(day, counts)| (*day, *counts)).collect();
        Change { since, total: self.total, days, dropped }
    }

    /// Gives up the oldest days until at most `days_max` are left, and all that lie before `first`.
    pub(super) fn prune(&mut self, days_max: usize, first: Day) {
        while let Some(oldest) = self.days.first_entry()
            && (*oldest.key() < first || self.days.len() > days_max)
        {
            self.dropped.extend(self.days.pop_first().map(|(day, _)| day));
        }
    }

    /// When it was first counted.
    pub(super) fn since(&self) -> Option<Moment> {
        self.since
    }

    /// All that was ever counted.
    pub(super) fn total(&self) -> Counts {
        self.total
    }

    /// The days that are kept, the oldest first.
    pub(super) fn days(&self) -> &BTreeMap<Day, Counts> {
        &self.days
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(reads: u64) -> Counts {
        Counts { reads, ..Counts::default() }
    }

    fn at(day: u64) -> Moment {
        Moment(day * 86_400)
    }

    #[test]
    fn a_second_belongs_to_the_day_that_it_is_in() {
        let mut account = Account::default();
        account.add(reads(1), Moment(86_400 * 7 - 1));
        account.add(reads(2), Moment(86_400 * 7));
        let days: Vec<_> = account.days().clone().into_iter().collect();
        assert_eq!(days, [(Day(6), reads(1)), (Day(7), reads(2))]);
        assert_eq!((account.total(), account.since()), (reads(3), Some(Moment(86_400 * 7 - 1))));
    }

    #[test]
    fn changes_are_absolute_and_taken_once() {
        let mut account = Account::stored(at(1), reads(10));
        account.restore(Day(3), reads(4));
        assert_eq!(account.take_changes(), None);
        account.add(reads(1), at(3));
        account.add(reads(1), at(5));
        let change = account.take_changes().unwrap();
        assert_eq!((change.since, change.total), (at(1), reads(12)));
        assert_eq!(change.days, [(Day(3), reads(5)), (Day(5), reads(1))]);
        assert_eq!(account.take_changes(), None);
        account.add(reads(1), at(5));
        assert_eq!(account.take_changes().unwrap().days, [(Day(5), reads(2))]);
        assert_eq!(account.take_all().days, [(Day(3), reads(5)), (Day(5), reads(2))]);
    }

    #[test]
    fn a_clock_that_goes_back_counts_for_the_day_that_it_says() {
        let mut account = Account::default();
        account.add(reads(1), at(9));
        assert!(account.take_changes().is_some());
        account.add(reads(2), at(8));
        let change = account.take_changes().unwrap();
        assert_eq!(change.days, [(Day(8), reads(2)), (Day(9), reads(1))]);
        assert_eq!(change.total, reads(3));
    }

    #[test]
    fn pruned_days_stay_in_the_total_and_are_told_to_the_store() {
        let mut account = Account::default();
        (0..6).for_each(|day| account.add(reads(1), at(day)));
        assert!(account.take_changes().is_some());
        account.prune(4, Day(0));
        assert_eq!(account.take_changes().unwrap().dropped, [Day(0), Day(1)]);
        account.prune(4, Day(4));
        let change = account.take_changes().unwrap();
        assert_eq!((change.dropped, change.days), (vec![Day(2), Day(3)], vec![]));
        assert_eq!((account.total(), account.days().len()), (reads(6), 2));
    }
}
