//! The MLP's gate: `activation(gate) * up`, on a panel of both.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use crate::files::Activation;

use super::exponential::exp;
use super::portable::{Isa, Job, Level, mul_add};

/// sqrt(2 / pi) and the cube's factor of gelu's tanh form.
const GELU: (f32, f32) = (0.797_884_6, 0.044_715);

/// `gate = activation(gate) * up`, for as many values as both have.
pub(super) fn activate(level: Level, activation: Activation, gate: &mut [f32], up: &[f32]) {
    level.run(ActivateJob { activation, gate, up });
}

struct ActivateJob<'a> {
    activation: Activation,
    gate: &'a mut [f32],
    up: &'a [f32],
}

impl Job for ActivateJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        match self.activation {
            Activation::Silu => self.fill(silu::<I>),
            Activation::GeluTanh => self.fill(gelu::<I>),
        }
    }
}

impl ActivateJob<'_> {
    #[inline(always)]
    fn fill(self, activation: impl Fn(f32) -> f32) {
        for (gate, up) in self.gate.iter_mut().zip(self.up) {
            *gate = activation(*gate) * up;
        }
    }
}

/// `x * sigmoid(x)`.
#[inline(always)]
fn silu<I: Isa>(x: f32) -> f32 {
    x / (1.0 + exp::<I>(-x))
}

/// `x * (1 + tanh(u)) / 2`, which is `x * sigmoid(2 u)`, with `u = sqrt(2 / pi) (x + 0.044715 x^3)`.
#[inline(always)]
fn gelu<I: Isa>(x: f32) -> f32 {
    let u = GELU.0 * x * mul_add::<I>(GELU.1 * x, x, 1.0);
    x / (1.0 + exp::<I>(-2.0 * u))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Both<'a>(f32, &'a mut [f32; 2]);

    impl Job for Both<'_> {
        #[inline(always)]
        fn run<I: Isa>(self) {
            *self.1 = [silu::<I>(self.0), gelu::<I>(self.0)];
        }
    }

    #[test]
    fn activations_follow_their_formulas() {
        for (level, x) in
            Level::all().into_iter().flat_map(|l| [-9.0, -0.5, 0.0, 3.0].map(|x| (l, x)))
        {
            let mut results = [0.0; 2];
            level.run(Both(x, &mut results));
            let silu = x / (1.0 + (-x).exp());
            let gelu = 0.5 * x * (1.0 + (GELU.0 * (x + GELU.1 * x.powi(3))).tanh());
            assert!((results[0] - silu).abs() < 1e-6, "silu({x}) = {}", results[0]);
            assert!((results[1] - gelu).abs() < 1e-6, "gelu({x}) = {}", results[1]);
        }
    }
}
