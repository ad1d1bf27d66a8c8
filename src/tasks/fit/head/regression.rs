//! Penalised logistic regression on components, on top of the option scores that a model gave.

use nalgebra::{DMatrix, DMatrixView, DVector, DVectorView};

use crate::tasks::fit::examples::Examples;
use crate::tasks::fit::logistic;
use crate::tasks::fit::minimise::{Effort, Smooth, minimise};

/// The log loss's fifth decimal, which a record shows, is settled well before this gradient.
const EFFORT: Effort = Effort { iterations: 300, gradient: 1e-7 };

/// The examples of a regression.
#[derive(Debug)]
pub(super) struct Regression {
    /// Scores before the correction, and answers.
    examples: Examples,
    /// `[components, examples]`.
    features: DMatrix<f64>,
    /// `[examples, components]`: both orders, because each evaluation needs both.
    transposed: DMatrix<f64>,
}

/// A fitted regression.
#[derive(Debug)]
pub(super) struct Fitted {
    /// `[options, components]`.
    pub(super) weights: DMatrix<f64>,
    /// `[options]`.
    pub(super) offset: DVector<f64>,
}

impl Fitted {
    /// What it adds to the scores: `[options, examples]` of `[components, examples]`.
    pub(super) fn apply(&self, features: &DMatrix<f64>) -> DMatrix<f64> {
        let mut correction = &self.weights * features;
        correction.column_iter_mut().for_each(|mut column| column += &self.offset);
        correction
    }
}

impl Regression {
    pub(super) fn new(examples: &Examples, features: DMatrix<f64>) -> Self {
        let transposed = features.transpose();
        Self { examples: examples.clone(), features, transposed }
    }

    /// The fit at each penalty, each from where the last one ended.
    pub(super) fn path(&self, lambdas: &[f64]) -> Vec<Fitted> {
        let (options, components) = (self.examples.options(), self.features.nrows());
        let mut point = vec![0.0; options * (components + 1)];
        let mut path = Vec::with_capacity(lambdas.len());
        for &lambda in lambdas {
            point = minimise(&Penalised { regression: self, lambda }, point, EFFORT);
            let (weights, offset) = point.split_at(options * components);
            path.push(Fitted {
                weights: DMatrix::from_column_slice(options, components, weights),
                offset: DVector::from_column_slice(offset),
            });
        }
        path
    }
}

/// Mean log loss plus `lambda` times the squares of weights and offsets.
///
/// A point is the weights, `[options, components]` column-major, and then the offsets.
struct Penalised<'a> {
    regression: &'a Regression,
    lambda: f64,
}

impl Smooth for Penalised<'_> {
    fn at(&self, point: &[f64]) -> (f64, Vec<f64>) {
        let Regression { examples, features, transposed } = self.regression;
        let (options, components) = (examples.options(), features.nrows());
        let (weights, offset) = point.split_at(options * components);
        let weights = DMatrixView::from_slice(weights, options, components);
        let offset = DVectorView::from_slice(offset, options);
        let mut scores = examples.log_p.clone();
        scores.gemm(1.0, &weights, features, 1.0);
        scores.column_iter_mut().for_each(|mut column| column += &offset);
        let loss = logistic::loss_and_gradient(&mut scores, &examples.gold);
        let (of_weights, of_offset) = (&scores * transposed, scores.column_sum());
        let slopes = of_weights.iter().chain(of_offset.iter()).zip(point);
        let gradient = slopes.map(|(slope, x)| slope + 2.0 * self.lambda * x).collect();
        let squares: f64 = point.iter().map(|x| x * x).sum();
        (loss + self.lambda * squares, gradient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Regression {
        let rows = [vec![-0.2, -2.0], vec![-1.0, -0.5], vec![-0.7, -0.7]];
        let examples = Examples::new(&rows, &[1, 0, 0]).unwrap();
        Regression::new(&examples, DMatrix::from_column_slice(2, 3, &[1., 0., -1., 2., 0.5, -2.]))
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let regression = small();
        let penalised = Penalised { regression: &regression, lambda: 0.3 };
        let point = [0.1, -0.4, 0.7, 0.2, -0.3, 0.5];
        let (loss, gradient) = penalised.at(&point);
        for place in 0..point.len() {
            let mut moved = point;
            moved[place] += 1e-6;
            let slope = (penalised.at(&moved).0 - loss) / 1e-6;
            assert!((slope - gradient[place]).abs() < 1e-5, "{place}: {slope}");
        }
    }

    #[test]
    fn a_smaller_penalty_gives_larger_weights() {
        let path = small().path(&[10.0, 1.0, 0.1]);
        let norms: Vec<f64> = path.iter().map(|fitted| fitted.weights.norm()).collect();
        assert!(norms[0] < norms[1] && norms[1] < norms[2], "{norms:?}");
    }
}
