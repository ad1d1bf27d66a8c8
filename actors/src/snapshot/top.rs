//! The tenants with most of something: as many as a page can show, however many there are.

use std::cmp::Reverse;

use crate::read::TenantId;

/// Most tenants that a snapshot names.
pub const TOP_TENANTS: usize = 10;

/// The tenants with most, the one that has most first; of those with as much, by name.
#[derive(Debug)]
pub(crate) struct Top<V>(Vec<(TenantId, V)>);

impl<V: Ord + Copy> Top<V> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn offer(&mut self, tenant: &TenantId, value: V) {
        let has_more =
            |(name, other): &(TenantId, V)| (Reverse(*other), name) < (Reverse(value), tenant);
        let place = self.0.partition_point(has_more);
        if place < TOP_TENANTS {
            self.0.truncate(TOP_TENANTS - 1);
            self.0.insert(place, (tenant.clone(), value));
        }
    }

    pub(crate) fn into_vec(self) -> Vec<(TenantId, V)> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_with_most_are_named_in_order() {
        let mut top = Top::new();
        for number in 0..100_u32 {
            top.offer(&TenantId(format!("{number:02}").into()), number * 37 % 50);
        }
        let top = top.into_vec();
        assert_eq!(top.len(), TOP_TENANTS);
        let values: Vec<_> = top.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [49, 49, 48, 48, 47, 47, 46, 46, 45, 45]);
        assert!(top[0].0 < top[1].0);
    }
}
