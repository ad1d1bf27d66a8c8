//! Whitened principal components of hidden states: standardised, projected, scaled to unit variance.

use nalgebra::{DMatrix, DVector, SymmetricEigen};

/// Most components.
const COMPONENTS_MAX: usize = 512;
/// Added to every standard deviation, so that a dimension that never changes divides by no 0.
const DEVIATION_LEAST: f64 = 1e-6;
/// Share of the greatest singular value, and of a dimension's deviation, below which a component is
/// rounding noise.
const SINGULAR_SHARE: f64 = 1e-6;

/// A linear map from hidden states to components.
#[derive(Debug)]
pub(super) struct Features {
    /// `[dimensions]`.
    mean: DVector<f64>,
    /// `[dimensions, components]`, with the standard deviations divided out.
    projection: DMatrix<f64>,
}

impl Features {
    /// The components of these states.
    ///
    /// * `hidden`: `[dimensions, examples]`.
    pub(super) fn of(hidden: &DMatrix<f64>) -> Self {
        let mean = hidden.column_mean();
        let mut standard = hidden.clone();
        standard.column_iter_mut().for_each(|mut column| column -= &mean);
        let examples = hidden.ncols() as f64;
        let square = |row: usize| standard.row(row).norm_squared() / examples;
        let deviation =
            DVector::from_fn(hidden.nrows(), |row, _| square(row).sqrt() + DEVIATION_LEAST);
        divide_rows(&mut standard, &deviation);
        let mut projection = whitening(&standard);
        divide_rows(&mut projection, &deviation);
        Self { mean, projection }
    }

    /// `[components, examples]` of `[dimensions, examples]`.
    pub(super) fn project(&self, hidden: &DMatrix<f64>) -> DMatrix<f64> {
        let mut centred = hidden.clone();
        centred.column_iter_mut().for_each(|mut column| column -= &self.mean);
        self.projection.tr_mul(&centred)
    }

    /// A regression on components as one on hidden states.
    ///
    /// * `weights`: `[options, components]`; `offset`: `[options]`.
    /// * returns `[options, dimensions]` and `[options]`.
    pub(super) fn fold(
        &self,
        weights: &DMatrix<f64>,
        offset: &DVector<f64>,
    ) -> (DMatrix<f64>, DVector<f64>) {
        let a = weights * self.projection.transpose();
        let c = offset - &a * &self.mean;
        (a, c)
    }
}

fn divide_rows(matrix: &mut DMatrix<f64>, by: &DVector<f64>) {
    matrix.column_iter_mut().for_each(|mut column| column.component_div_assign(by));
}

/// The projection onto principal components of unit variance.
///
/// Through the eigenvectors of the smaller of the two products of the matrix with itself: far
/// cheaper than a decomposition of the matrix, and as exact as [`SINGULAR_SHARE`] needs, whose
/// square is some thousand times the rounding of a product.
///
/// * `standard`: `[dimensions, examples]`, centred.
fn whitening(standard: &DMatrix<f64>) -> DMatrix<f64> {
    let (dimensions, examples) = standard.shape();
    let wide = dimensions > examples;
    let product = if wide { standard.tr_mul(standard) } else { standard * standard.transpose() };
    let eigen = SymmetricEigen::new(product);
    let places = principal(&eigen.eigenvalues, examples);
    let mut vectors = eigen.eigenvectors.select_columns(&places);
    let root = (examples as f64).sqrt();
    for (mut vector, &place) in vectors.column_iter_mut().zip(&places) {
        let square = eigen.eigenvalues[place];
        // A singular vector of the other side is the product over the singular value.
        vector *= root / if wide { square } else { square.sqrt() };
    }
    if wide { standard * vectors } else { vectors }
}

/// Places of the eigenvalues that count, greatest first.
fn principal(squares: &DVector<f64>, examples: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..squares.len()).collect();
    places.sort_by(|&a, &b| squares[b].total_cmp(&squares[a]));
    let greatest = places.first().map_or(0.0, |&place| squares[place]);
    let least = greatest.max(examples as f64) * SINGULAR_SHARE * SINGULAR_SHARE;
    places.retain(|&place| squares[place] > least);
    places.truncate(COMPONENTS_MAX.min(examples.saturating_sub(1)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::fit::planted::Draws;

    fn states(dimensions: usize, examples: usize) -> DMatrix<f64> {
        let mut draws = Draws::new(7);
        DMatrix::from_fn(dimensions, examples, |row, _| draws.normal() * (row + 1) as f64 + 3.0)
    }

    #[test]
    fn components_have_mean_0_variance_1_and_are_uncorrelated() {
        for (dimensions, examples, components) in [(5, 40, 5), (40, 12, 11)] {
            let hidden = states(dimensions, examples);
            let got = Features::of(&hidden).project(&hidden);
            assert_eq!(got.nrows(), components);
            assert!(got.column_mean().amax() < 1e-12);
            let covariance = &got * got.transpose() / examples as f64;
            let off = covariance - DMatrix::identity(components, components);
            assert!(off.amax() < 1e-9, "{}", off.amax());
        }
    }

    #[test]
    fn a_dimension_that_never_changes_has_no_weight() {
        let mut hidden = states(3, 20);
        hidden.row_mut(1).fill(4.0);
        let features = Features::of(&hidden);
        assert_eq!(features.projection.ncols(), 2);
        assert!(features.projection.row(1).amax() < 1e-9);
        assert_eq!(Features::of(&DMatrix::from_element(3, 20, 1.0)).projection.ncols(), 0);
    }

    #[test]
    fn a_folded_regression_gives_the_scores_of_the_components() {
        let hidden = states(4, 20);
        let features = Features::of(&hidden);
        let weights = DMatrix::from_fn(2, 4, |row, column| (row * 4 + column) as f64 - 3.0);
        let offset = DVector::from_vec(vec![0.5, -0.5]);
        let mut want = &weights * features.project(&hidden);
        want.column_iter_mut().for_each(|mut column| column += &offset);
        let (a, c) = features.fold(&weights, &offset);
        let mut got = a * &hidden;
        got.column_iter_mut().for_each(|mut column| column += &c);
        assert!((got - want).amax() < 1e-10);
    }
}
