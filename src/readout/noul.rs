//! A noul's probability drawn towards even odds: a correction that other servers have fitted for their
//! model, for profiles that ask for it.

/// Least distance of a probability from 0 and 1 before its odds are taken.
const EDGE: f64 = 1e-4;

/// The probability whose log-odds are those of `yes`, divided by `scale`.
///
/// * `yes`: between 0 and 1; moved to 0.0001 from the ends where it is nearer, so that the odds are
///   finite.
/// * `scale`: above 0; above 1 draws towards one half, 1 changes nothing but the ends.
///
/// Source: `sigmoid(logit(clamp(p)) / s)` in gmlx 0.5.3's letter readout, whose s is 1.829074, fitted
/// for `OpenJev`; recorded values in tests/conformance/data/gmlx.json.
pub fn scaled(yes: f64, scale: f64) -> f64 {
    let p = yes.clamp(EDGE, 1.0 - EDGE);
    let log_odds = (p / (1.0 - p)).ln();
    1.0 / (1.0 + (-log_odds / scale).exp())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCALE: f64 = 1.829_074;

    #[test]
    fn the_ends_are_as_recorded() {
        assert!((scaled(1.0, SCALE) - 0.993_538_852_499_648_5).abs() < 1e-12);
        assert!((scaled(0.0, SCALE) - 0.006_461_147_500_351_5).abs() < 1e-12);
        assert!((scaled(0.5, SCALE) - 0.5).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn order_and_symmetry_are_kept(a in 0.0_f64..=1.0, b in 0.0_f64..=1.0, scale in 0.1_f64..10.0) {
            prop_assert!(a > b || scaled(a, scale) <= scaled(b, scale) + 1e-15);
            prop_assert!((scaled(a, scale) + scaled(1.0 - a, scale) - 1.0).abs() < 1e-9);
            prop_assert!((0.0..=1.0).contains(&scaled(a, scale)));
        }

        #[test]
        fn a_scale_of_1_changes_only_the_ends(p in 0.0002_f64..0.9998) {
            prop_assert!((scaled(p, 1.0) - p).abs() < 1e-12);
        }
    }
}
