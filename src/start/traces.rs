//! The traces of the server's requests, from the configuration.

use super::StartError;
use crate::config::TracesConfig;
use crate::traces::Traces;

/// Begins to send traces, where there is a collector.
pub(super) fn start(config: &TracesConfig) -> Result<Option<Traces>, StartError> {
    let Some(url) = config.url() else { return Ok(None) };
    let refused = |message| StartError::Setting { flag: "--otlp-endpoint", message };
    let traces = Traces::start(&url, config.sample).map_err(refused)?;
    tracing::info!("traces go to {url}, {} of the requests", config.sample);
    Ok(Some(traces))
}
