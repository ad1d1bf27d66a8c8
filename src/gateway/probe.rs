//! Probes: each backend is asked in turn whether it is ready.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::StatusCode;
use futures_util::future::join_all;
use http_body_util::{BodyExt as _, Full, Limited};
use tokio::time::{sleep, timeout};

use super::Gateway;

/// What is asked.
const PATH: &str = "/health?ready=1";

/// Most bytes of an answer, which nobody reads: the rest would keep its connection from being used again.
const ANSWER_BYTES_MAX: usize = 64 << 10;

impl Gateway {
    /// Asks all backends once, side by side.
    pub async fn probe(&self) {
        join_all((0..self.pool.len()).map(|index| self.probe_one(index))).await;
    }

    /// Asks each of them again and again, for ever.
    pub fn watch(self: &Arc<Self>) {
        let count = u32::try_from(self.pool.len()).unwrap_or(u32::MAX).max(1);
        for (turn, index) in (0..self.pool.len()).enumerate() {
            let gateway = Arc::clone(self);
            // Not all in one moment.
            let interval = self.config.probes.interval;
            let offset = interval / count * u32::try_from(turn).unwrap_or(0);
            tokio::spawn(async move {
                sleep(offset).await;
                loop {
                    sleep(interval).await;
                    gateway.probe_one(index).await;
                }
            });
        }
    }

    async fn probe_one(&self, index: usize) {
        let is_ready = timeout(self.config.probes.timeout, self.is_ready(index)).await;
        self.pool.probed(index, is_ready.unwrap_or(false));
    }

    async fn is_ready(&self, index: usize) -> bool {
        let address = format!("http://{}{PATH}", self.pool.name(index));
        let request = hyper::Request::get(address).body(Full::<Bytes>::default());
        let Ok(request) = request else { return false };
        let Ok(response) = self.client.request(request).await else { return false };
        let is_ready = response.status() == StatusCode::OK;
        let _ = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        is_ready
    }
}
