//! The report: rates and percentiles, queue wait apart from engine time.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use crate::client::Outcome;

/// The outcome as a table.
pub(crate) fn render(outcome: &Outcome) -> String {
    let answered = outcome.sent - outcome.failed;
    let rate = f64::from(answered) / outcome.elapsed.as_secs_f64().max(1e-9);
    let mut text = format!(
        "{answered} of {} answered in {:.2} s, {rate:.1} requests/s, {} tokens computed, {} cached\n",
        outcome.sent,
        outcome.elapsed.as_secs_f64(),
        outcome.computed_tokens,
        outcome.cached_tokens
    );
    let _ = writeln!(text, "{:<14}{:>10}{:>10}{:>10}{:>10}", "ms", "p50", "p90", "p99", "max");
    row(&mut text, "total", &outcome.total_us);
    row(&mut text, "queue wait", &outcome.queue_us);
    row(&mut text, "state wait", &outcome.state_us);
    row(&mut text, "engine time", &outcome.engine_us);
    if let Some(why) = &outcome.first_failure {
        let _ = writeln!(text, "first failure: {why}");
    }
    text
}

fn row(text: &mut String, name: &str, samples_us: &[u64]) {
    // Three significant digits up to an hour.
    let Ok(mut histogram) = Histogram::<u64>::new_with_max(3_600_000_000, 3) else { return };
    for sample in samples_us {
        histogram.saturating_record(*sample);
    }
    let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
    let _ = writeln!(
        text,
        "{name:<14}{:>10.1}{:>10.1}{:>10.1}{:>10.1}",
        at(0.5),
        at(0.9),
        at(0.99),
        histogram.max() as f64 / 1e3
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_percentiles_in_milliseconds() {
        let outcome = Outcome {
            sent: 2,
            total_us: vec![1_000, 3_000],
            elapsed: std::time::Duration::from_secs(1),
            ..Outcome::default()
        };
        let text = render(&outcome);
        assert!(text.starts_with("2 of 2 answered in 1.00 s, 2.0 requests/s"), "{text}");
        assert!(text.contains("total                1.0"), "{text}");
    }
}
