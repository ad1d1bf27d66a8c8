//! Planted gains and planted noise: whether the keep rules keep the one and drop the other, over
//! seeds.
//!
//! Scores are drawn so that the right correction is known: normal with a unit variance, raised by
//! `signal` for the right option. Their posterior under even options is softmax(signal * score), so
//! those log-probabilities cannot be improved, and a bias added to them can.

use super::folds::splitmix64;
use super::{Folds, calibration, head, logistic};

/// Seeded draws.
pub(super) struct Draws {
    state: u64,
}

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Between 0 and 1, neither included.
    pub(super) fn uniform(&mut self) -> f64 {
        ((splitmix64(&mut self.state) >> 12) as f64 + 0.5) / 2.0_f64.powi(52)
    }

    /// Of mean 0 and variance 1, by Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn normals(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.normal()).collect()
    }

    /// Log-probabilities that know as much of the answer as `signal` says, plus a bias.
    fn log_p(&mut self, gold: usize, signal: f64, bias: &[f64]) -> Vec<f64> {
        let mut scores = self.normals(bias.len());
        scores[gold] += signal;
        let biased: Vec<f64> =
            scores.iter().zip(bias).map(|(score, bias)| signal * score + bias).collect();
        logistic::softmax(&biased).into_iter().map(f64::ln).collect()
    }
}

const SEEDS: u64 = 100;

/// How many of the seeds' calibrations of 60 examples and 4 options are applied.
fn calibrations_kept(bias_size: f64) -> usize {
    let kept = |seed| {
        let mut draws = Draws::new(seed);
        let bias: Vec<f64> = draws.normals(4).iter().map(|value| value * bias_size).collect();
        let gold: Vec<usize> = (0..60).map(|n| n % 4).collect();
        let log_p: Vec<_> = gold.iter().map(|&gold| draws.log_p(gold, 1.5, &bias)).collect();
        let folds = Folds::seeded(60, calibration::FOLDS, seed);
        calibration::fit(&log_p, &gold, &folds).unwrap().applied
    };
    (0..SEEDS).filter(|&seed| kept(seed)).count()
}

#[test]
fn a_planted_bias_is_kept_and_noise_is_not() {
    let (gain, noise) = (calibrations_kept(2.0), calibrations_kept(0.0));
    println!("calibration: gain kept {gain} of {SEEDS}, noise kept {noise} of {SEEDS}");
    assert!(gain >= 90, "a gain is kept {gain} times");
    assert!(noise <= 10, "noise is kept {noise} times");
}

/// How many of the seeds' heads of 50 examples, 10 options and 12 dimensions are applied.
fn heads_kept(signal: f64, seeds: u64) -> usize {
    let kept = |seed| {
        let mut draws = Draws::new(seed);
        let centres: Vec<Vec<f64>> = (0..10).map(|_| draws.normals(12)).collect();
        let gold: Vec<usize> = (0..50).map(|n| n % 10).collect();
        let mut hidden = |&gold: &usize| -> Vec<f32> {
            let centre = centres[gold].iter();
            #[expect(clippy::cast_possible_truncation, reason = "hidden states are f32")]
            centre.map(|centre| (draws.normal() + signal * centre) as f32).collect()
        };
        let hidden: Vec<_> = gold.iter().map(&mut hidden).collect();
        let log_p: Vec<_> = gold.iter().map(|&gold| draws.log_p(gold, 1.0, &[0.0; 10])).collect();
        let folds = Folds::stratified(&gold, head::FOLDS, seed);
        head::fit(&log_p, &hidden, &gold, &folds).unwrap().applied()
    };
    (0..seeds).filter(|&seed| kept(seed)).count()
}

#[test]
fn a_planted_direction_is_kept_and_noise_is_not() {
    let (gain, noise) = (heads_kept(1.0, SEEDS), heads_kept(0.0, SEEDS));
    println!("head: gain kept {gain} of {SEEDS}, noise kept {noise} of {SEEDS}");
    assert!(gain >= 90, "a gain is kept {gain} times");
    assert!(noise <= 10, "noise is kept {noise} times");
}

#[test]
fn the_same_examples_give_the_same_bits() {
    let fit = || {
        let mut draws = Draws::new(3);
        let gold: Vec<usize> = (0..60).map(|n| n % 10).collect();
        let log_p: Vec<_> = gold.iter().map(|&gold| draws.log_p(gold, 1.0, &[0.3; 10])).collect();
        let hidden: Vec<Vec<f32>> = gold
            .iter()
            .map(|&gold| (0..16).map(|n| if n == gold { 2.0 } else { 0.1 * n as f32 }).collect())
            .collect();
        let folds = Folds::stratified(&gold, 5, 3);
        let head = head::fit(&log_p, &hidden, &gold, &folds).unwrap();
        let bits: Vec<u32> =
            head.weights.iter().flat_map(|weights| weights.a.iter().map(|a| a.to_bits())).collect();
        (bits, format!("{head:?}"))
    };
    let first = fit();
    assert!(!first.0.is_empty());
    assert_eq!(first, fit());
}
