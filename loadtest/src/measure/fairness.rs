//! Fairness: how evenly something was shared out.

/// How evenly values are spread over tenants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fairness {
    /// Jain's index: 1 where all have the same, 1/n where one of n has everything.
    pub(crate) jain: f64,
    /// Largest difference between two tenants, in the values' unit.
    pub(crate) gap: f64,
    /// Number and value of the tenant with least, and of the one with most.
    pub(crate) least: (usize, f64),
    pub(crate) most: (usize, f64),
}

/// Of values by tenant; none where fewer than two have one, or all of them are 0.
///
/// Source: R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness and discrimination"
/// (1984): `(sum x)^2 / (n * sum x^2)`.
pub(crate) fn fairness(values: impl IntoIterator<Item = (usize, f64)>) -> Option<Fairness> {
    let values: Vec<(usize, f64)> = values.into_iter().collect();
    let sum: f64 = values.iter().map(|(_, value)| value).sum();
    let squares: f64 = values.iter().map(|(_, value)| value * value).sum();
    let least = values.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = values.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let jain = sum * sum / (values.len() as f64 * squares);
    let is_known = values.len() > 1 && squares > 0.0;
    is_known.then_some(Fairness { jain, gap: most.1 - least.1, least, most })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[f64]) -> Option<Fairness> {
        fairness(values.iter().copied().enumerate())
    }

    #[test]
    fn equal_shares_give_one_and_a_monopoly_one_over_n() {
        assert!((of(&[7.0, 7.0, 7.0]).unwrap().jain - 1.0).abs() < 1e-9);
        let all = of(&[0.0, 8.0, 0.0, 0.0]).unwrap();
        assert_eq!((all.jain, all.gap, all.most), (0.25, 8.0, (1, 8.0)));
        // (1 + 3)^2 / (2 * 10)
        assert!((of(&[1.0, 3.0]).unwrap().jain - 0.8).abs() < 1e-9);
    }

    #[test]
    fn one_tenant_or_nothing_to_share_is_neither_fair_nor_unfair() {
        assert_eq!([of(&[]), of(&[5.0]), of(&[0.0, 0.0])], [None; 3]);
    }

    proptest! {
        /// The index is between 1/n and 1 and does not depend on the unit.
        #[test]
        fn the_index_is_bounded_and_without_unit(
            values in prop::collection::vec(0.1..1e6_f64, 2..20),
        ) {
            let jain = of(&values).unwrap().jain;
            let low = 1.0 / values.len() as f64;
            prop_assert!(jain >= low - 1e-9 && jain <= 1.0 + 1e-9);
            let scaled: Vec<f64> = values.iter().map(|value| value * 1e3).collect();
            prop_assert!((of(&scaled).unwrap().jain - jain).abs() < 1e-9);
        }
    }
}
