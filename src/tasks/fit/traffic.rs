//! Monitors of a certified task's traffic: whether the questions are still like the examples.
//!
//! A certificate holds for questions like those it was made from. Two figures tell when they are
//! not: how far the distribution of the answers is from that of the examples, and a sum of how much
//! lower confidences are than theirs.

use std::collections::VecDeque;

use super::{Malformed, check_length, mean};

/// Answers that the distribution is taken over; older ones are forgotten, so that a change shows
/// however many came before it.
pub const WINDOW_ANSWERS: usize = 1_000;
/// Standard deviations that a confidence may be low without being counted.
const SLACK: f64 = 0.5;
/// Sum from which confidences count as fallen. Of normal confidences that have not changed, it is
/// reached about once in 140,000 answers (Siegmund's approximation).
pub const CUSUM_LIMIT: f64 = 10.0;
/// Standard deviation of confidences below which the examples say too little about it.
const DEVIATION_LEAST: f64 = 0.01;

/// Counters of one task; a value that its owner changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// `[options]`: share of each answer in the examples.
    training: Vec<f64>,
    mean: f64,
    deviation: f64,
    /// The last answers, oldest first, at most [`WINDOW_ANSWERS`].
    window: VecDeque<usize>,
    /// `[options]`: how often each is in the window.
    counts: Vec<usize>,
    observed: u64,
    cusum: f64,
}

/// What the monitors say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrafficFigures {
    /// Answers since the task was registered or the server started.
    pub observed: u64,
    /// Total-variation distance of the last [`WINDOW_ANSWERS`] answers from the examples': from 0
    /// (the same shares) to 1 (no answer in common); `None` before the first.
    pub total_variation: Option<f64>,
    /// Sum of standard deviations that confidences are too low, never below 0.
    pub cusum: f64,
    /// Whether that is above [`CUSUM_LIMIT`].
    pub confidence_fell: bool,
}

impl Traffic {
    /// Monitors against a task's examples.
    ///
    /// * `training`: `[options]`, how often each is the answer of an example.
    /// * `confidences`: top probabilities of examples that the task was not fitted to.
    ///
    /// # Errors
    /// [`Malformed::Length`] where there is no confidence to compare with.
    pub fn new(training: &[usize], confidences: &[f64]) -> Result<Self, Malformed> {
        if confidences.is_empty() {
            check_length("confidences", 0, training.iter().sum::<usize>().max(1))?;
        }
        let total = training.iter().sum::<usize>().max(1) as f64;
        let centre = mean(confidences);
        let squares: Vec<f64> = confidences.iter().map(|p| (p - centre).powi(2)).collect();
        Ok(Self {
            training: training.iter().map(|&count| count as f64 / total).collect(),
            mean: centre,
            deviation: mean(&squares).sqrt().max(DEVIATION_LEAST),
            window: VecDeque::new(),
            counts: vec![0; training.len()],
            observed: 0,
            cusum: 0.0,
        })
    }

    /// Counts one answer.
    ///
    /// * `answer`: the option; one that is none of the task's is not counted.
    /// * `confidence`: its probability.
    pub fn observe(&mut self, answer: usize, confidence: f64) {
        let Some(count) = self.counts.get_mut(answer) else { return };
        *count += 1;
        self.window.push_back(answer);
        if self.window.len() > WINDOW_ANSWERS
            && let Some(oldest) = self.window.pop_front()
        {
            self.counts[oldest] -= 1;
        }
        self.observed += 1;
        let low = (self.mean - confidence) / self.deviation - SLACK;
        if low.is_finite() {
            self.cusum = (self.cusum + low).max(0.0);
        }
    }

    /// What the monitors say now.
    pub fn figures(&self) -> TrafficFigures {
        TrafficFigures {
            observed: self.observed,
            total_variation: self.total_variation(),
            cusum: self.cusum,
            confidence_fell: self.cusum > CUSUM_LIMIT,
        }
    }

    fn total_variation(&self) -> Option<f64> {
        let seen = self.window.len() as f64;
        let pairs = self.counts.iter().zip(&self.training);
        let distance =
            pairs.map(|(&count, share)| (count as f64 / seen - share).abs()).sum::<f64>();
        (seen > 0.0).then_some(distance / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::fit::planted::Draws;

    fn monitors() -> Traffic {
        Traffic::new(&[3, 1], &[0.7, 0.9]).unwrap()
    }

    #[test]
    fn the_distance_is_half_the_sum_of_differences() {
        let mut traffic = monitors();
        assert_eq!(traffic.figures().total_variation, None);
        traffic.observe(1, 0.8);
        assert_eq!(traffic.figures().total_variation, Some(0.75));
        (0..3).for_each(|_| traffic.observe(0, 0.8));
        assert_eq!(traffic.figures().total_variation, Some(0.0));
        traffic.observe(7, 0.1);
        assert_eq!(traffic.figures().observed, 4, "no option of the task");
    }

    #[test]
    fn answers_beyond_the_window_are_forgotten() {
        let mut traffic = monitors();
        (0..5_000).for_each(|_| traffic.observe(0, 0.8));
        (0..WINDOW_ANSWERS).for_each(|_| traffic.observe(1, 0.8));
        let figures = traffic.figures();
        assert_eq!((figures.observed, figures.total_variation), (6_000, Some(0.75)));
    }

    #[test]
    fn the_sum_counts_what_is_low_beyond_the_slack() {
        // Mean 0.8, deviation 0.1: 0.6 is two deviations low, one and a half beyond the slack.
        let mut traffic = monitors();
        traffic.observe(0, 0.6);
        assert!((traffic.figures().cusum - 1.5).abs() < 1e-9);
        traffic.observe(0, f64::NAN);
        assert!((traffic.figures().cusum - 1.5).abs() < 1e-9, "no number changes nothing");
        traffic.observe(0, 1.0);
        assert!(traffic.figures().cusum.abs() < 1e-9);
    }

    #[test]
    fn unchanged_traffic_is_quiet_and_a_fall_of_one_deviation_soon_shows() {
        let mut draws = Draws::new(5);
        let mut confidence = |mean: f64| mean + 0.1 * draws.normal();
        let mut traffic = monitors();
        for _ in 0..10_000 {
            traffic.observe(0, confidence(0.8));
            assert!(!traffic.figures().confidence_fell);
        }
        (0..100).for_each(|_| traffic.observe(0, confidence(0.7)));
        assert!(traffic.figures().confidence_fell);
    }

    #[test]
    fn no_confidence_is_refused() {
        assert!(matches!(Traffic::new(&[3, 1], &[]), Err(Malformed::Length { .. })));
    }
}
