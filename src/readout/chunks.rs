//! Chunks: questions with more options than labels, read in near-equal lists and once more over
//! the winners, until one list is left.

/// One round of reads: disjoint lists of options, and what they gave.
#[derive(Debug, Clone)]
pub struct Round {
    /// Option indexes of each list, `[lists][options]`.
    pub lists: Vec<Vec<usize>>,
    /// Probability of each option within its list, `[lists][options]`; sums to 1 in each list.
    pub probabilities: Vec<Vec<f64>>,
    /// Position of each list's most probable option within it, `[lists]`.
    pub winners: Vec<usize>,
}

/// Splits options into the fewest lists of at most `labels_max` (at least 2), near-equal in size.
///
/// `k = ceil(n / labels_max)` lists of `ceil(n / k)` options, the last one shorter.
pub fn split(options: &[usize], labels_max: usize) -> Vec<Vec<usize>> {
    let lists = options.len().div_ceil(labels_max.max(2)).max(1);
    let size = options.len().div_ceil(lists).max(1);
    options.chunks(size).map(<[usize]>::to_vec).collect()
}

/// Composes all rounds of a question into one distribution over its `options`.
///
/// Within a list the ratios are those of the list's own reads; between lists those of their
/// winners: `p(i) ~ p_final(winner) * p_list(i) / p_list(winner)`.
///
/// * `rounds`: in the order they were read; the first has every option, the last a single list.
/// * returns `[options]`, sums to 1.
pub fn compose(rounds: &[Round], options: usize) -> Vec<f64> {
    // Weights of a round's winners are those of the round after it; above the last stands 1.
    let mut weights = vec![1.0; options];
    for round in rounds.iter().rev() {
        for ((list, p), &winner) in round.lists.iter().zip(&round.probabilities).zip(&round.winners)
        {
            // With a single list the winner is the question's own, and p / p_winner is rescaled
            // below; keeping p itself leaves a lone read bit for bit as it was.
            let scale =
                if round.lists.len() == 1 { 1.0 } else { weights[list[winner]] / p[winner] };
            for (&option, p) in list.iter().zip(p) {
                weights[option] = scale * p;
            }
        }
    }
    if rounds.len() > 1 {
        let total: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= total;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizes(options: usize, labels_max: usize) -> Vec<usize> {
        let all: Vec<usize> = (0..options).collect();
        split(&all, labels_max).iter().map(Vec::len).collect()
    }

    #[test]
    fn chunks_are_near_equal() {
        assert_eq!(sizes(52, 52), vec![52]);
        assert_eq!(sizes(53, 52), vec![27, 26]);
        assert_eq!(sizes(105, 52), vec![35, 35, 35]);
        assert_eq!(sizes(255, 52), vec![51; 5]);
    }

    fn round(lists: Vec<Vec<usize>>, probabilities: Vec<Vec<f64>>) -> Round {
        let winners = probabilities.iter().map(|p| crate::readout::confidence::first_top(p));
        Round { winners: winners.collect(), lists, probabilities }
    }

    #[test]
    fn two_chunks_compose_by_their_winners() {
        // Worked by hand: winners 0 and 2 at .6 to .4; option 1 is a third of option 0, option 3 a
        // quarter of option 2: weights .6 .2 .4 .1, total 1.3.
        let first = round(vec![vec![0, 1], vec![2, 3]], vec![vec![0.75, 0.25], vec![0.8, 0.2]]);
        let last = round(vec![vec![0, 2]], vec![vec![0.6, 0.4]]);
        let p = compose(&[first, last], 4);
        for (p, weight) in p.iter().zip([0.6, 0.2, 0.4, 0.1]) {
            assert!((p - weight / 1.3).abs() < 1e-15, "{p}");
        }
    }

    #[test]
    fn a_lone_list_comes_back_bit_for_bit() {
        let p = vec![0.1 + 0.2, 0.7];
        assert_eq!(compose(&[round(vec![vec![0, 1]], vec![p.clone()])], 2), p);
    }

    proptest! {
        #[test]
        fn composition_sums_to_1_and_keeps_ratios_inside_chunks(
            weights in prop::collection::vec(0.01_f64..1.0, 2..255),
            labels_max in 2_usize..60,
        ) {
            let mut lists = split(&(0..weights.len()).collect::<Vec<_>>(), labels_max);
            let first = lists.clone();
            let mut rounds = Vec::new();
            loop {
                let p: Vec<Vec<f64>> = lists.iter().map(|list| {
                    let total: f64 = list.iter().map(|&i| weights[i]).sum();
                    list.iter().map(|&i| weights[i] / total).collect()
                }).collect();
                let done = round(lists.clone(), p);
                let winners: Vec<usize> =
                    done.lists.iter().zip(&done.winners).map(|(list, &w)| list[w]).collect();
                rounds.push(done);
                if winners.len() == 1 { break; }
                lists = split(&winners, labels_max);
            }
            let p = compose(&rounds, weights.len());
            prop_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for list in first {
                for pair in list.windows(2) {
                    let (got, want) = (p[pair[0]] / p[pair[1]], weights[pair[0]] / weights[pair[1]]);
                    prop_assert!((got / want - 1.0).abs() < 1e-9);
                }
            }
        }
    }
}
