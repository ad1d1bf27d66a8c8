//! The defaults of every setting, in one place.

use std::time::Duration;

use super::profiles::Profiles;
use super::{
    BoundaryRegistration, DecisionConfig, DeviceChoice, DialectChoice, EngineConfig, EngineKind,
    FakeConfig, FakeFaults, HttpConfig, KvBytes, LayoutChoice, PrecisionChoice, Readout,
    SamplesDefault, SchedulerConfig, UsageDir, WireConfig,
};
use crate::dialect::problem::FullStatus;

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8000,
            body_limit_bytes: 32 << 20,
            connections_max: 1024,
            drain_timeout: Duration::from_secs(30),
            queue_full_status: FullStatus::TooManyRequests,
            stall_after: Duration::from_mins(1),
            api_keys: Vec::new(),
            keys: None,
            insecure_open: false,
            open_metrics: false,
            state_key_secret: None,
            usage: UsageDir::Usual,
            wire: WireConfig::default(),
        }
    }
}

impl Default for DecisionConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(1),
            timeout_max: Duration::from_mins(10),
            questions_max: 64,
            samples_max: 32,
            samples: SamplesDefault::Profile,
            dialect: DialectChoice::SystemOne,
            layout: LayoutChoice::Profile,
            profiles: Profiles::new(),
        }
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            kind: EngineKind::Auto,
            device: DeviceChoice::Cpu,
            threads: threads_of_machine(),
            precision: PrecisionChoice::Auto,
            packed_bytes_max: 8 << 30,
            readout: Readout::Full,
            fake: FakeConfig { step_ms: 2, token_us: 20, faults: FakeFaults::default() },
        }
    }
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            kv_bytes: KvBytes::OfFreeMemory,
            chunk_tokens: 192,
            step_tokens: 512,
            rows_max: 64,
            reads_max: 1024,
            tenant_reads_max: 768,
            tenant_rate: 0,
            tenant_burst: 65_536,
            wait_urgent: Duration::from_secs(1),
            wait_normal: Duration::from_secs(8),
            wait_batch: Duration::from_mins(1),
            step_target: Duration::from_millis(200),
            raise_after: Duration::from_secs(30),
            age_max: Duration::from_secs(45),
            register_boundary: BoundaryRegistration::After,
        }
    }
}

/// Physical cores, or fewer where this process may use fewer: hyper-threads share the units that
/// the forward pass is limited by.
fn threads_of_machine() -> u32 {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(num_cpus::get_physical().clamp(1, allowed)).unwrap_or(1)
}

#[cfg(test)]
mod tests;
