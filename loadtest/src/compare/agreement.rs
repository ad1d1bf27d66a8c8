//! Whether two runs gave the same answers: by the number of the decision, question by question.

use serde_json::Value;

use super::runs::Run;

/// From which probability on a noul is a yes.
const YES: f64 = 0.5;

/// How far answers agree.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Agreement {
    /// Questions that both runs answered, and that have as many probabilities in both.
    pub(super) questions: u64,
    /// Of these, those whose most probable answer is the same.
    pub(super) same_top: u64,
    /// Questions that have not: they cannot be the same.
    pub(super) unlike: u64,
    /// Sum over the questions of the mean difference of a probability, and the largest difference.
    dp_sum: f64,
    pub(super) dp_max: f64,
}

impl Agreement {
    /// Of two runs; nothing is compared where they did not draw the same decisions.
    pub(super) fn of(a: &Run, b: &Run) -> Self {
        let is_same = ["workload", "workload_digest", "seed"]
            .iter()
            .all(|field| a.word(field) == b.word(field));
        let kept = |run: &'_ Run| {
            run.at("/answers").and_then(Value::as_object).cloned().unwrap_or_default()
        };
        if !is_same {
            return Self::default();
        }
        let (of_a, of_b) = (kept(a), kept(b));
        let both = of_a.iter().filter_map(|(number, answers)| Some((answers, of_b.get(number)?)));
        both.map(|(a, b)| Self::of_decision(a, b)).fold(Self::default(), Self::and)
    }

    fn of_decision(a: &Value, b: &Value) -> Self {
        let (a, b) = (questions(a), questions(b));
        if a.len() != b.len() {
            return Self { unlike: a.len().max(b.len()) as u64, ..Self::default() };
        }
        a.iter().zip(&b).map(|(a, b)| Self::of_question(a, b)).fold(Self::default(), Self::and)
    }

    fn of_question(a: &[f64], b: &[f64]) -> Self {
        if a.is_empty() || b.is_empty() {
            // A server that gives no probabilities for it.
            return Self::default();
        }
        if a.len() != b.len() {
            return Self { unlike: 1, ..Self::default() };
        }
        let differences = || a.iter().zip(b).map(|(a, b)| (a - b).abs());
        Self {
            questions: 1,
            same_top: u64::from(top(a) == top(b)),
            unlike: 0,
            dp_sum: differences().sum::<f64>() / a.len() as f64,
            dp_max: differences().fold(0.0, f64::max),
        }
    }

    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            questions: self.questions + other.questions,
            same_top: self.same_top + other.same_top,
            unlike: self.unlike + other.unlike,
            dp_sum: self.dp_sum + other.dp_sum,
            dp_max: self.dp_max.max(other.dp_max),
        }
    }

    /// Share of the questions whose most probable answer is the same.
    pub(super) fn top_share(&self) -> Option<f64> {
        (self.questions > 0).then(|| self.same_top as f64 / self.questions as f64)
    }

    /// Mean over the questions of the mean difference of a probability.
    pub(super) fn dp_mean(&self) -> Option<f64> {
        (self.questions > 0).then(|| self.dp_sum / self.questions as f64)
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let (Some(top), Some(mean)) = (self.top_share(), self.dp_mean()) else {
            return "no question was answered by both and kept".to_owned();
        };
        let unlike = if self.unlike > 0 {
            format!("; {} more have another number of options", self.unlike)
        } else {
            String::new()
        };
        format!(
            "{} questions: the same top choice in {}, mean |dp| {mean:.5}, largest |dp| \
             {:.5}{unlike}",
            self.questions,
            crate::report::percent(top),
            self.dp_max
        )
    }
}

fn questions(decision: &Value) -> Vec<Vec<f64>> {
    let numbers = |answer: &Value| {
        answer.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    decision.as_array().into_iter().flatten().map(numbers).collect()
}

/// Number of the most probable answer, the first of equal ones; of a lone probability whether it is
/// a yes.
fn top(answer: &[f64]) -> usize {
    if let [yes] = answer {
        return usize::from(*yes >= YES);
    }
    let better =
        |best: (usize, f64), (n, p): (usize, &f64)| if *p > best.1 { (n, *p) } else { best };
    answer.iter().enumerate().fold((0, f64::NEG_INFINITY), better).0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tops_are_those_of_people() {
        assert_eq!(
            [top(&[0.49]), top(&[0.5]), top(&[0.2, 0.4, 0.4]), top(&[0.1, 0.2, 0.7])],
            [0, 1, 1, 2]
        );
    }

    #[test]
    fn differences_are_means_over_questions() {
        let of = |a: Value, b: Value| Agreement::of_decision(&a, &b);
        let found = of(json!([[0.6], [0.2, 0.3, 0.5]]), json!([[0.4], [0.2, 0.2, 0.6]]));
        assert_eq!((found.questions, found.same_top, found.unlike), (2, 1, 0));
        assert!((found.dp_mean().unwrap() - f64::midpoint(0.2, 0.2 / 3.0)).abs() < 1e-9);
        assert!((found.dp_max - 0.2).abs() < 1e-9);
        let unlike = of(json!([[0.6], [0.5, 0.5]]), json!([[0.6], [1.0]]));
        assert_eq!((unlike.questions, unlike.unlike), (1, 1));
        assert_eq!(of(json!([[0.6]]), json!([])).unlike, 1);
        // A server need not give probabilities.
        assert_eq!(of(json!([[]]), json!([[0.6]])), Agreement::default());
    }
}
