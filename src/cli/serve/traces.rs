//! Flags of what is told of requests: traces and the access log.

use std::ffi::OsString;

use clap::Args;

use super::set;
use crate::cli::switch::switch;
use crate::config::Config;

/// OpenTelemetry's own variable for the address of a collector.
const OTEL_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// An endpoint that is none, also where [`OTEL_ENDPOINT`] names one.
const OFF: &str = "off";

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Traces and logs")]
pub(super) struct TracesArgs {
    /// Collector that traces of requests are sent to, by OTLP over HTTP in protobuf:
    /// `http://HOST:4318`; `off` sends none [default: what `OTEL_EXPORTER_OTLP_ENDPOINT` says, else off]
    #[arg(long, env = "DOCKET_OTLP_ENDPOINT", value_name = "URL|off")]
    otlp_endpoint: Option<String>,

    /// Share of the requests that are traced, of those whose caller does not decide it by
    /// `traceparent` [default: 1]
    #[arg(long, env = "DOCKET_TRACE_SAMPLE", value_name = "SHARE")]
    trace_sample: Option<f64>,

    /// Write a line to the log for each request, whatever the log level
    #[arg(long, env = "DOCKET_ACCESS_LOG", value_parser = switch)]
    access_log: bool,
}

impl TracesArgs {
    pub(super) fn fill(self, config: &mut Config) {
        let traces = &mut config.traces;
        traces.endpoint = endpoint(self.otlp_endpoint, std::env::var_os(OTEL_ENDPOINT));
        set(&mut traces.sample, self.trace_sample);
        traces.access_log = self.access_log;
    }
}

/// The endpoint that was typed, else that of OpenTelemetry's variable.
fn endpoint(typed: Option<String>, of_otel: Option<OsString>) -> Option<String> {
    let of_otel = of_otel.map(|text| text.to_string_lossy().into_owned());
    typed.or(of_otel).filter(|text| !text.is_empty() && text != OFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_wins_over_the_variable_of_opentelemetry() {
        let of = |typed: Option<&str>, otel: Option<&str>| {
            endpoint(typed.map(str::to_owned), otel.map(OsString::from))
        };
        let (a, b) = ("http://a", "http://b");
        assert_eq!(of(Some(a), Some(b)).as_deref(), Some(a));
        assert_eq!(of(None, Some(b)).as_deref(), Some(b));
        for (typed, otel) in
            [(Some("off"), Some(b)), (Some(""), Some(b)), (None, Some("")), (None, None)]
        {
            assert_eq!(of(typed, otel), None, "{typed:?} {otel:?}");
        }
    }
}
