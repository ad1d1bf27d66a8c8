//! The MLP's gate: `activation(gate) * up`, row by row for the next product.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use crate::files::Activation;

use super::exponential::exp;
use super::portable::{Isa, Job, Level, mul_add};
use super::{PANEL_COLUMNS, Product};

/// sqrt(2 / pi) and the cube's factor of gelu's tanh form.
const GELU: (f32, f32) = (0.797_884_6, 0.044_715);

/// Fills `out`, row-major `[rows, width]`, with `activation(gate) * up` of rows from `first`.
///
/// * `gate_up`: the gate's panels, then as many panels of up.
pub fn activate(
    level: Level,
    activation: Activation,
    (gate_up, first): (&Product, usize),
    width: usize,
    out: &mut [f32],
) {
    level.run(ActivateJob { activation, gate_up, first, width, out });
}

struct ActivateJob<'a> {
    activation: Activation,
    gate_up: &'a Product,
    first: usize,
    width: usize,
    out: &'a mut [f32],
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
        let Self { gate_up, first, width, out, .. } = self;
        let panels = width.div_ceil(PANEL_COLUMNS);
        for (row, out) in (first..).zip(out.chunks_exact_mut(width)) {
            for (panel, out) in out.chunks_mut(PANEL_COLUMNS).enumerate() {
                let (gate, up) = (gate_up.lanes(panel, row), gate_up.lanes(panels + panel, row));
                let gated = gate.iter().zip(up).map(|(gate, up)| activation(*gate) * up);
                out.iter_mut().zip(gated).for_each(|(out, value)| *out = value);
            }
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
