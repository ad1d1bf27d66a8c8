//! What each tenant got, against what it asked for and what its weight promises.

use super::Report;
use crate::measure::{Fairness, Group, fairness};

/// One tenant's part of the whole; the parts of all tenants add up to 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Share<'r> {
    pub(crate) tenant: &'r str,
    pub(crate) weight: f64,
    /// Of the weights of those that asked.
    pub(crate) fair: f64,
    /// Of the requests.
    pub(crate) offered: f64,
    /// Of what was done for them under load.
    pub(crate) served: f64,
}

impl Report {
    /// The tenants that asked for something, by number, and what their shares are of: tokens that
    /// were computed under load, or decisions where the server does not tell tokens. Empty where
    /// there is neither.
    pub(crate) fn shares(&self) -> (&'static str, Vec<Share<'_>>) {
        let asked = || self.asking().map(|(_, group)| group);
        let weights: f64 = self.asking().map(|(number, _)| self.weight(number)).sum();
        let requests = asked().map(|group| group.counts.sum()).sum::<u64>() as f64;
        let has_tokens = asked().any(|group| group.loaded_tokens > 0);
        let done =
            |group: &Group| if has_tokens { group.loaded_tokens } else { group.loaded_answered };
        let done_for_all = asked().map(done).sum::<u64>() as f64;
        let share = |(number, group): (usize, &Group)| Share {
            tenant: self.tenants.get(number).map_or("", String::as_str),
            weight: self.weight(number),
            fair: self.weight(number) / weights,
            offered: group.counts.sum() as f64 / requests,
            served: done(group) as f64 / done_for_all,
        };
        let unit = if has_tokens { "tokens computed under load" } else { "decisions under load" };
        let shares = self.asking().map(share).filter(|_| done_for_all > 0.0);
        (unit, shares.collect())
    }

    /// Of the tokens that were computed for each tenant under load, per weight.
    pub(crate) fn fairness_of_tokens(&self) -> Option<Fairness> {
        let per_weight = |(number, group): (usize, &Group)| {
            (number, group.loaded_tokens as f64 / self.weight(number))
        };
        fairness(self.asking().map(per_weight))
    }

    /// Of the mean latencies, milliseconds, of the tenants of which something was answered.
    pub(crate) fn fairness_of_latency(&self) -> Option<Fairness> {
        let answered = self.asking().filter(|(_, group)| group.latency.count() > 0);
        fairness(answered.map(|(number, group)| (number, group.latency.mean_ms())))
    }

    /// A tenant's weight: 1 where none was given.
    pub(crate) fn weight(&self, tenant: usize) -> f64 {
        self.weights.get(tenant).copied().unwrap_or(1.0)
    }

    fn asking(&self) -> impl Iterator<Item = (usize, &Group)> {
        let groups = self.measures.tenants.iter().enumerate();
        groups.filter(|(_, group)| group.counts.sum() > 0)
    }
}
