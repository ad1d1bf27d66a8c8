//! Minima of smooth functions by L-BFGS, from the crate argmin.
//!
//! The best point that was seen is kept here, because a line search that finds no better step near
//! the minimum ends argmin's run with an error, and its points are gone.

use std::cell::RefCell;

use argmin::core::{CostFunction, Error, Executor, Gradient, IterState};
use argmin::solver::linesearch::MoreThuenteLineSearch;
use argmin::solver::quasinewton::LBFGS;

/// Steps that the curvature is estimated from; what `scipy.optimize` uses.
const MEMORY: usize = 10;

/// Evaluations allowed for an iteration, so that no line search goes on for ever.
const EVALUATIONS_PER_ITERATION: u64 = 20;

/// A smooth function with its gradient.
pub(super) trait Smooth {
    /// Value and gradient at a point.
    fn at(&self, point: &[f64]) -> (f64, Vec<f64>);
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effort {
    /// Most iterations.
    pub(super) iterations: u64,
    /// Euclidean norm of the gradient at which the minimum counts as found.
    pub(super) gradient: f64,
}

/// Returns the best point found from `start`.
pub(super) fn minimise(function: &impl Smooth, start: Vec<f64>, effort: Effort) -> Vec<f64> {
    let watched = Watched {
        function,
        seen: RefCell::new(Seen::default()),
        evaluations_max: effort.iterations.saturating_mul(EVALUATIONS_PER_ITERATION),
    };
    // An error of argmin's says only that it found no better step: the best one is what counts.
    let _ = run(&watched, start.clone(), effort);
    watched.seen.into_inner().best.map_or(start, |(_, point)| point)
}

/// What argmin keeps between iterations.
type State = IterState<Vec<f64>, Vec<f64>, (), (), (), f64>;

fn run<F: Smooth>(watched: &Watched<'_, F>, start: Vec<f64>, effort: Effort) -> Result<(), Error> {
    let solver: LBFGS<_, Vec<f64>, Vec<f64>, f64> =
        LBFGS::new(MoreThuenteLineSearch::new(), MEMORY).with_tolerance_grad(effort.gradient)?;
    let configure = |state: State| state.param(start).max_iters(effort.iterations);
    Executor::new(watched, solver).configure(configure).timer(false).run()?;
    Ok(())
}

/// A function, and what argmin has seen of it.
struct Watched<'a, F> {
    function: &'a F,
    seen: RefCell<Seen>,
    evaluations_max: u64,
}

#[derive(Default)]
struct Seen {
    evaluations: u64,
    /// Point, value and gradient of the last evaluation: argmin asks for the two apart.
    last: Option<(Vec<f64>, f64, Vec<f64>)>,
    /// Least value and its point.
    best: Option<(f64, Vec<f64>)>,
}

impl<F: Smooth> Watched<'_, F> {
    fn look<T>(&self, point: &[f64], answer: impl Fn(f64, &[f64]) -> T) -> Result<T, Error> {
        let seen = &mut *self.seen.borrow_mut();
        if let Some((_, value, gradient)) = seen.last.as_ref().filter(|last| last.0 == point) {
            return Ok(answer(*value, gradient));
        }
        seen.evaluations += 1;
        if seen.evaluations > self.evaluations_max {
            return Err(Error::msg("the evaluations allowed are spent"));
        }
        let (value, gradient) = self.function.at(point);
        if seen.best.as_ref().is_none_or(|(least, _)| value < *least) {
            seen.best = Some((value, point.to_vec()));
        }
        let answered = answer(value, &gradient);
        seen.last = Some((point.to_vec(), value, gradient));
        Ok(answered)
    }
}

impl<F: Smooth> CostFunction for &Watched<'_, F> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, point: &Vec<f64>) -> Result<f64, Error> {
        self.look(point, |value, _| value)
    }
}

impl<F: Smooth> Gradient for &Watched<'_, F> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    fn gradient(&self, point: &Vec<f64>) -> Result<Vec<f64>, Error> {
        self.look(point, |_, gradient| gradient.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A narrow valley, with its minimum at 1, 1.
    struct Rosenbrock;

    impl Smooth for Rosenbrock {
        fn at(&self, x: &[f64]) -> (f64, Vec<f64>) {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            (a * a + 100.0 * b * b, vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b])
        }
    }

    const EFFORT: Effort = Effort { iterations: 300, gradient: 1e-9 };

    #[test]
    fn the_bottom_of_a_narrow_valley_is_found() {
        let got = minimise(&Rosenbrock, vec![-1.2, 1.0], EFFORT);
        assert!(got.iter().all(|x| (x - 1.0).abs() < 1e-7), "{got:?}");
    }

    #[test]
    fn no_iteration_returns_the_start() {
        let none = Effort { iterations: 0, gradient: 1e-9 };
        assert_eq!(minimise(&Rosenbrock, vec![-1.2, 1.0], none), [-1.2, 1.0]);
    }

    #[test]
    fn a_function_without_a_number_ends_at_the_start() {
        struct Lost;
        impl Smooth for Lost {
            fn at(&self, _: &[f64]) -> (f64, Vec<f64>) {
                (f64::NAN, vec![f64::NAN; 2])
            }
        }
        assert_eq!(minimise(&Lost, vec![0.5, 2.0], EFFORT), [0.5, 2.0]);
    }
}
