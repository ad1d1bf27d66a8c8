//! Where usage is kept, and what is shown of that.

use std::sync::Arc;
use std::time::Duration;

use super::StartError;
use crate::config::{Config, EngineKind, UsageDir};
use crate::telemetry;
use crate::usage::{FOLDER, Meter, UsageError};

/// Longest time for the last flush.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Opens the store of the configuration.
///
/// # Errors
/// [`StartError::Setting`] with what is wrong with a folder; of the usual one only where it is damaged
/// or cannot be written.
pub(super) fn open(config: &Config) -> Result<Arc<Meter>, StartError> {
    let setting = |error: UsageError| {
        let message = error.to_string();
        StartError::Setting { flag: "--usage-dir", message }
    };
    let meter = match &config.http.usage {
        UsageDir::Off => Meter::in_memory(),
        UsageDir::Folder(folder) => Meter::open(folder).map_err(setting)?,
        UsageDir::Usual if config.engine.kind == EngineKind::Fake => Meter::in_memory(),
        UsageDir::Usual => match Meter::open(&config.model.home.join(FOLDER)) {
            Ok(meter) => meter,
            Err(error @ UsageError::InUse(_)) => {
                tracing::warn!("{error}: usage is counted until this one ends, and not kept");
                Meter::in_memory()
            }
            Err(error) => return Err(setting(error)),
        },
    };
    Ok(Arc::new(meter))
}

/// Shows how far behind the store is.
pub(super) fn show(meter: &Meter) {
    let since = meter.status().failing_since;
    telemetry::usage_unwritten(since.map_or(Duration::ZERO, |since| since.elapsed()));
}

/// Writes what is left.
pub(super) fn close(meter: &Meter) {
    if let Err(error) = meter.close(CLOSE_TIMEOUT) {
        tracing::error!(%error, "the last usage was not kept");
    }
}
