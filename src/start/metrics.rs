//! Metrics from the start on: where they are recorded, and what keeps them small.

use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::{StartError, usage};
use crate::usage::Meter;

/// How often old values of the metrics are folded together.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Installs the metrics recorder, with buckets for all histograms.
pub(super) fn recorder() -> Result<PrometheusHandle, StartError> {
    let refused = |error: metrics_exporter_prometheus::BuildError| {
        StartError::System(format!("metrics recorder: {error}"))
    };
    let mut builder = PrometheusBuilder::new();
    for (name, bounds) in crate::telemetry::buckets() {
        let named = Matcher::Full(name.to_owned());
        builder = builder.set_buckets_for_metric(named, bounds).map_err(refused)?;
    }
    let handle = builder.install_recorder().map_err(refused)?;
    crate::telemetry::describe();
    Ok(handle)
}

/// Keeps the histograms from growing while nobody scrapes, and shows what nobody else does.
pub(super) async fn upkeep(metrics: PrometheusHandle, meter: Arc<Meter>) {
    let mut tick = tokio::time::interval(METRICS_UPKEEP);
    loop {
        tick.tick().await;
        metrics.run_upkeep();
        usage::show(&meter);
    }
}
