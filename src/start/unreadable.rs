//! The service over a model that no question can be read from: it starts, says so, and refuses.
//!
//! An encoder, or a vocabulary without labels, is served all the same, because whoever deploys a
//! list of models wants each of them up and telling why, not a process that ends.

use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;

use super::serving::{ModelFacts, entries, first_name};
use crate::error::DecideError;
use crate::question::Decision;
use crate::service::{
    Arrival, Caller, Decided, Estimate, Health, ModelEntry, Prewarm, Prewarmed, Service,
};

/// Refuses every question and every prewarm.
#[derive(Debug)]
pub(super) struct Unreadable {
    facts: ModelFacts,
    why: String,
    metrics: PrometheusHandle,
    started: Instant,
}

impl Unreadable {
    /// * `why`: what the model lacks, for callers and operators.
    pub(super) fn new(facts: ModelFacts, why: String, metrics: PrometheusHandle) -> Self {
        Self { facts, why, metrics, started: Instant::now() }
    }

    fn refused<T: Send + 'static>(&self) -> BoxFuture<'_, Result<T, DecideError>> {
        ready(Err(DecideError::NoReadStrategy(self.why.clone()))).boxed()
    }
}

impl Service for Unreadable {
    fn decide(
        &self,
        _: Caller,
        _: Decision,
        _: Arrival,
    ) -> BoxFuture<'_, Result<Decided, DecideError>> {
        self.refused()
    }

    fn estimate(
        &self,
        _: Caller,
        _: Decision,
        _: Arrival,
    ) -> BoxFuture<'_, Result<Estimate, DecideError>> {
        self.refused()
    }

    fn prewarm(
        &self,
        _: Caller,
        _: Prewarm,
        _: Arrival,
    ) -> BoxFuture<'_, Result<Prewarmed, DecideError>> {
        self.refused()
    }

    fn unpin(&self, _: Caller, _: String) -> BoxFuture<'_, Result<bool, DecideError>> {
        self.refused()
    }

    fn models(&self) -> Vec<ModelEntry> {
        entries(&self.facts, false)
    }

    fn served_name(&self) -> &str {
        first_name(&self.facts)
    }

    fn health(&self) -> Health {
        let details = json!({
            "served_names": self.facts.served_names,
            "model": self.facts.details,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": self.started.elapsed().as_secs(),
            "config": self.facts.settings,
        });
        let reason = format!("the model answers no questions: {}", self.why);
        Health { ready: false, reason: Some(reason), dead: None, details }
    }

    fn dead(&self) -> Option<String> {
        None
    }

    fn metrics(&self) -> String {
        self.metrics.render()
    }
}
