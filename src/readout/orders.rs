//! Orders: in which permutations a list of options is displayed, and the way back.
//!
//! Small models answer a position as much as an option (ARCHITECTURE D10). Rotations put every
//! option at every position equally often, which random orders do not.

/// How a question's options may be reordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reordering {
    /// Cyclic rotations.
    Rotations,
    /// As given and reversed: a scale must stay a scale.
    Directions,
}

impl Reordering {
    /// How many different orders a list of `options` has.
    pub fn orders_max(self, options: usize) -> usize {
        match self {
            Self::Rotations => options,
            Self::Directions => options.min(2),
        }
    }

    /// The first `wanted` orders of `list`, as given first; fewer where fewer differ, at least one.
    ///
    /// Fewer rotations than options are spread evenly over the list, so that every option visits
    /// early, middle and late positions.
    pub fn orders(self, list: &[usize], wanted: usize) -> Vec<Vec<usize>> {
        let count = wanted.min(self.orders_max(list.len())).max(1);
        (0..count).map(|order| self.order(list, order, count)).collect()
    }

    fn order(self, list: &[usize], order: usize, count: usize) -> Vec<usize> {
        let mut shown = list.to_vec();
        match self {
            Self::Rotations => shown.rotate_left(order * list.len() / count),
            Self::Directions if order == 1 => shown.reverse(),
            Self::Directions => {}
        }
        shown
    }
}

/// Averages what several orders of one list gave.
///
/// * `list`: the options as given, `[options]`.
/// * `readings`: for each order its displayed options and their probabilities, `[orders][options]`.
/// * returns the mean probability of each option in the order of `list`.
pub fn average(list: &[usize], readings: &[(Vec<usize>, Vec<f64>)]) -> Vec<f64> {
    let of = |&option: &usize| {
        mean(readings.iter().map(|(shown, p)| probability_of(option, shown, p)).collect())
    };
    list.iter().map(of).collect()
}

/// The mean, summed smallest first: two options that got the same numbers in other orders are then
/// exactly equal, and the tie rule applies to them.
fn mean(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.iter().sum::<f64>() / values.len() as f64
}

fn probability_of(option: usize, shown: &[usize], probabilities: &[f64]) -> f64 {
    shown.iter().position(|&at| at == option).map_or(0.0, |position| probabilities[position])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_rotations_put_every_option_at_every_position_once() {
        let orders = Reordering::Rotations.orders(&[4, 7, 9], 9);
        assert_eq!(orders, vec![vec![4, 7, 9], vec![7, 9, 4], vec![9, 4, 7]]);
    }

    #[test]
    fn fewer_rotations_are_spread_evenly() {
        let orders = Reordering::Rotations.orders(&[0, 1, 2, 3, 4, 5], 3);
        assert_eq!(orders.iter().map(|order| order[0]).collect::<Vec<_>>(), vec![0, 2, 4]);
    }

    #[test]
    fn a_scale_is_read_upwards_and_downwards_only() {
        let orders = Reordering::Directions.orders(&[0, 1, 2], 32);
        assert_eq!(orders, vec![vec![0, 1, 2], vec![2, 1, 0]]);
    }

    #[test]
    fn one_option_has_one_order() {
        assert_eq!(Reordering::Rotations.orders(&[3], 8), vec![vec![3]]);
        assert_eq!(Reordering::Directions.orders(&[3], 8), vec![vec![3]]);
    }

    #[test]
    fn probabilities_are_averaged_by_option_and_not_by_position() {
        // A model that always says "the first": averaged over both orders it says nothing.
        let readings = [(vec![0, 1], vec![0.75, 0.25]), (vec![1, 0], vec![0.75, 0.25])];
        assert_eq!(average(&[0, 1], &readings), vec![0.5, 0.5]);
    }

    proptest! {
        #[test]
        fn undoing_an_order_restores_the_list(options in 1_usize..40, wanted in 1_usize..50, rotate: bool) {
            let list: Vec<usize> = (0..options).map(|i| i * 3).collect();
            let how = if rotate { Reordering::Rotations } else { Reordering::Directions };
            for shown in how.orders(&list, wanted) {
                // Each option's "probability" is its own number, wherever it was displayed.
                let p = shown.iter().map(|&option| option as f64).collect();
                let back = average(&list, &[(shown, p)]);
                prop_assert_eq!(back, list.iter().map(|&o| o as f64).collect::<Vec<_>>());
            }
        }

        #[test]
        fn orders_are_distinct_and_the_first_is_as_given(options in 1_usize..60, wanted in 1_usize..70) {
            let list: Vec<usize> = (0..options).collect();
            for how in [Reordering::Rotations, Reordering::Directions] {
                let mut orders = how.orders(&list, wanted);
                prop_assert_eq!(&orders[0], &list);
                let count = orders.len();
                orders.sort();
                orders.dedup();
                prop_assert_eq!(orders.len(), count);
                prop_assert_eq!(count, wanted.min(how.orders_max(options)));
            }
        }
    }
}
