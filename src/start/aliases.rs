//! The metrics under the names by which routers and dashboards of the field know them.
//!
//! A Kubernetes gateway picks a server by five gauges of vLLM's, and its dashboards show the rest. All
//! are drawn from docket's own metrics when those are rendered, so that they say the same and cost a
//! read nothing. What vLLM calls a request is a read: one question in one order.

use std::fmt::Write as _;

use actors::{Caps, PAGE_TOKENS, Snapshot};

/// vLLM's histograms, without `vllm:`, with the histogram of docket's which they are.
const HISTOGRAMS: [(&str, &str); 9] = [
    ("request_queue_time_seconds", "docket_queue_wait_seconds"),
    ("request_prefill_time_seconds", "docket_read_run_seconds"),
    ("request_inference_time_seconds", "docket_read_run_seconds"),
    ("time_to_first_token_seconds", "docket_read_duration_seconds"),
    ("e2e_request_latency_seconds", "docket_read_duration_seconds"),
    ("iteration_tokens_total", "docket_step_tokens"),
    ("kv_block_lifetime_seconds", "docket_block_lifetime_seconds"),
    ("kv_block_idle_before_evict_seconds", "docket_block_idle_seconds"),
    ("kv_block_reuse_gap_seconds", "docket_block_reuse_gap_seconds"),
];

/// Likewise the counters without labels of their own.
const COUNTERS: [(&str, &str); 4] = [
    ("prompt_tokens_total", "docket_prompt_tokens_total"),
    ("prompt_tokens_cached_total", "docket_cached_tokens_total"),
    ("prefix_cache_queries_total", "docket_prompt_tokens_total"),
    ("prefix_cache_hits_total", "docket_cached_tokens_total"),
];

/// vLLM's reasons of an end, each with the outcomes of reads that it stands for.
const FINISHED: [(&str, &[&str]); 3] = [
    ("stop", &["done"]),
    ("abort", &["cancelled", "expired", "displaced", "draining"]),
    ("error", &["failed", "rejected", "unavailable", "lost"]),
];

/// The aliases as metrics text.
///
/// * `rendered`: docket's own metrics, rendered.
/// * `model`: the served name, for the label by which dashboards choose.
pub(super) fn aliases(rendered: &str, snapshot: &Snapshot, caps: &Caps, model: &str) -> String {
    let model = format!("model_name=\"{}\"", escaped(model));
    let mut text = Text { model: &model, out: String::new() };
    text.gauges(snapshot, caps);
    text.adapters(rendered);
    for (alias, name) in HISTOGRAMS {
        text.histogram(alias, &samples(rendered, name));
    }
    for (alias, name) in COUNTERS {
        text.head(alias, "counter");
        text.sample(alias, "", total(&samples(rendered, name), |_| true));
    }
    text.by_reason(rendered);
    text.out
}

/// One sample of rendered metrics: what stands behind the family's name, its labels, its value.
struct Sample<'a> {
    suffix: &'a str,
    labels: &'a str,
    value: f64,
}

impl<'a> Sample<'a> {
    /// Of a line of the family `name`.
    fn of(line: &'a str, name: &str) -> Option<Self> {
        let rest = line.strip_prefix(name)?;
        let (series, value) = rest.rsplit_once(' ')?;
        let (suffix, labels) = series.split_once('{').unwrap_or((series, ""));
        let is_family = matches!(suffix, "" | "_bucket" | "_sum" | "_count");
        let labels = labels.strip_suffix('}').unwrap_or(labels);
        is_family.then_some(Self { suffix, labels, value: value.parse().ok()? })
    }

    /// The value of a label of docket's own, none of which has a quote or a comma in it.
    fn label(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self.labels.split(',').filter_map(|pair| pair.split_once("=\""));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        value.strip_suffix('"')
    }
}

fn samples<'a>(rendered: &'a str, name: &str) -> Vec<Sample<'a>> {
    rendered.lines().filter_map(|line| Sample::of(line, name)).collect()
}

fn total(samples: &[Sample<'_>], is_counted: impl Fn(&Sample<'_>) -> bool) -> f64 {
    let counted = samples.iter().filter(|sample| is_counted(sample));
    // A sum of nothing is -0.
    counted.map(|sample| sample.value).sum::<f64>() + 0.0
}

/// Metrics text as it grows.
struct Text<'a> {
    model: &'a str,
    out: String,
}

impl Text<'_> {
    fn gauges(&mut self, snapshot: &Snapshot, caps: &Caps) {
        let (load, residency) = (&snapshot.load, &snapshot.residency);
        let share = residency.used as f64 / residency.budget.max(1) as f64;
        for (alias, value) in [
            ("num_requests_waiting", load.waiting() as f64),
            ("num_requests_running", load.reads_in_flight as f64),
            ("kv_cache_usage_perc", share.min(1.0)),
        ] {
            self.head(alias, "gauge");
            self.sample(alias, "", value);
        }
        let block_bytes = (u64::from(PAGE_TOKENS) * caps.kv_bytes_per_token).max(1);
        let blocks = residency.budget / block_bytes;
        let labels = format!(",block_size=\"{PAGE_TOKENS}\",num_gpu_blocks=\"{blocks}\"");
        self.head("cache_config_info", "gauge");
        self.sample("cache_config_info", &labels, 1.0);
    }

    /// That there are no adapters, since the start: gateways that look for some miss the family else.
    fn adapters(&mut self, rendered: &str) {
        let since = total(&samples(rendered, "docket_start_time_seconds"), |_| true);
        let labels = ",max_lora=\"0\",running_lora_adapters=\"\",waiting_lora_adapters=\"\"";
        self.head("lora_requests_info", "gauge");
        self.sample("lora_requests_info", labels, since);
    }

    /// The sum of all series of a histogram; nothing where it has none.
    fn histogram(&mut self, alias: &str, samples: &[Sample<'_>]) {
        let mut bounds: Vec<(&str, f64)> = Vec::new();
        for sample in samples.iter().filter(|sample| sample.suffix == "_bucket") {
            let Some(bound) = sample.label("le") else { continue };
            match bounds.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, count)) => *count += sample.value,
                None => bounds.push((bound, sample.value)),
            }
        }
        if bounds.is_empty() {
            return;
        }
        self.head(alias, "histogram");
        for (bound, count) in bounds {
            self.sample(&format!("{alias}_bucket"), &format!(",le=\"{bound}\""), count);
        }
        for suffix in ["_sum", "_count"] {
            let value = total(samples, |sample| sample.suffix == suffix);
            self.sample(&format!("{alias}{suffix}"), "", value);
        }
    }

    fn by_reason(&mut self, rendered: &str) {
        let ended = samples(rendered, "docket_reads_total");
        self.head("request_success_total", "counter");
        for (reason, outcomes) in FINISHED {
            let is_one = |sample: &Sample<'_>| {
                sample.label("outcome").is_some_and(|outcome| outcomes.contains(&outcome))
            };
            let labels = format!(",finished_reason=\"{reason}\"");
            self.sample("request_success_total", &labels, total(&ended, is_one));
        }
        self.head("admission_rejections_total", "counter");
        for refused in samples(rendered, "docket_admission_rejections_total") {
            let labels = format!(",{}", refused.labels);
            self.sample("admission_rejections_total", &labels, refused.value);
        }
    }

    fn head(&mut self, alias: &str, kind: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "# TYPE vllm:{alias} {kind}");
    }

    /// * `labels`: further ones, each with a comma before it.
    fn sample(&mut self, alias: &str, labels: &str, value: f64) {
        let model = self.model;
        let _ = writeln!(self.out, "vllm:{alias}{{{model}{labels}}} {value}");
    }
}

/// A label value as metrics text has it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENDERED: &str = "\
# TYPE docket_queue_wait_seconds histogram
docket_queue_wait_seconds_bucket{lane=\"urgent\",le=\"0.5\"} 1
docket_queue_wait_seconds_bucket{lane=\"urgent\",le=\"+Inf\"} 2
docket_queue_wait_seconds_sum{lane=\"urgent\"} 3.5
docket_queue_wait_seconds_count{lane=\"urgent\"} 2
docket_queue_wait_seconds_bucket{lane=\"batch\",le=\"0.5\"} 4
docket_queue_wait_seconds_bucket{lane=\"batch\",le=\"+Inf\"} 4
docket_queue_wait_seconds_sum{lane=\"batch\"} 0.25
docket_queue_wait_seconds_count{lane=\"batch\"} 4
docket_reads_total{outcome=\"done\"} 7
docket_reads_total{outcome=\"expired\"} 2
docket_reads_total{outcome=\"cancelled\"} 1
docket_prompt_tokens_total 30
docket_prompt_tokens_totally_other 31
docket_admission_rejections_total{reason=\"wait\"} 5
";

    fn text(write: impl FnOnce(&mut Text<'_>)) -> String {
        let mut text = Text { model: "model_name=\"m\"", out: String::new() };
        write(&mut text);
        text.out
    }

    #[test]
    fn a_histogram_is_summed_over_its_series() {
        let samples = samples(RENDERED, "docket_queue_wait_seconds");
        let text = text(|text| text.histogram("q", &samples));
        let expected = "\
# TYPE vllm:q histogram
vllm:q_bucket{model_name=\"m\",le=\"0.5\"} 5
vllm:q_bucket{model_name=\"m\",le=\"+Inf\"} 6
vllm:q_sum{model_name=\"m\"} 3.75
vllm:q_count{model_name=\"m\"} 6
";
        assert_eq!(text, expected);
    }

    #[test]
    fn ends_and_refusals_keep_their_reasons() {
        let text = text(|text| text.by_reason(RENDERED));
        for line in [
            "vllm:request_success_total{model_name=\"m\",finished_reason=\"stop\"} 7",
            "vllm:request_success_total{model_name=\"m\",finished_reason=\"abort\"} 3",
            "vllm:request_success_total{model_name=\"m\",finished_reason=\"error\"} 0",
            "vllm:admission_rejections_total{model_name=\"m\",reason=\"wait\"} 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{text}");
        }
    }

    #[test]
    fn there_are_no_adapters_since_the_start() {
        let text = text(|text| text.adapters("docket_start_time_seconds 1800000000.5\n"));
        let labels = "max_lora=\"0\",running_lora_adapters=\"\",waiting_lora_adapters=\"\"";
        let sample = format!("vllm:lora_requests_info{{model_name=\"m\",{labels}}} 1800000000.5\n");
        assert_eq!(text, format!("# TYPE vllm:lora_requests_info gauge\n{sample}"));
    }

    #[test]
    fn a_family_is_told_from_one_whose_name_begins_alike() {
        let found = samples(RENDERED, "docket_prompt_tokens_total");
        assert_eq!(found.len(), 1);
        assert!((total(&found, |_| true) - 30.0).abs() < 1e-9);
    }

    #[test]
    fn a_model_name_is_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
