//! Monitors of tasks as metrics, drawn at each scrape: a task that is removed is gone from them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::tasks::desk::Desk;
use crate::tasks::fit::traffic::{Traffic, TrafficFigures};

/// One metric: its name, kind and help, and its value.
type Monitor = (&'static str, &'static str, &'static str, fn(&TrafficFigures) -> Option<f64>);

const MONITORS: [Monitor; 3] = [
    (
        "docket_task_answers_total",
        "counter",
        "Answers to questions of a task since the start or its registration",
        |figures| Some(figures.observed as f64),
    ),
    (
        "docket_task_total_variation",
        "gauge",
        "Total-variation distance of a task's last 1,000 answers from those of its examples, 0 to 1",
        |figures| figures.total_variation,
    ),
    (
        "docket_task_cusum",
        "gauge",
        "Sum of standard deviations by which a task's confidences are too low; above 10 they fell",
        |figures| Some(figures.cusum),
    ),
];

/// The monitors in Prometheus text format.
pub(super) fn monitors(desk: &Desk) -> String {
    let mut seen = BTreeSet::new();
    let mut shown: Vec<(String, TrafficFigures)> = Vec::new();
    for (tenant, task) in desk.all() {
        let Some(figures) = task.traffic().as_ref().map(Traffic::figures) else {
            continue;
        };
        let labels = format!("tenant=\"{}\",task=\"{}\"", tenant.bucket(), escaped(&task.id));
        // Tenants of one bucket may have tasks of one name; a series is there once.
        if seen.insert(labels.clone()) {
            shown.push((labels, figures));
        }
    }
    let mut text = String::new();
    for (name, kind, help, value) in MONITORS.iter().filter(|_| !shown.is_empty()) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, figures) in &shown {
            if let Some(value) = value(figures) {
                let _ = writeln!(text, "{name}{{{labels}}} {value}");
            }
        }
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
