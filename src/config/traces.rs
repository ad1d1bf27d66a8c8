//! What is told of requests, and where: traces to a collector, lines to the log.

use url::Url;

use super::Faults;

/// The path of a collector for traces in protobuf, by OTLP over HTTP.
const TRACES_PATH: &str = "/v1/traces";

/// What is told of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct TracesConfig {
    /// Address of a collector that takes OTLP over HTTP; traces go to `v1/traces` below it, unless it
    /// ends in that. Default none: no traces are made.
    pub endpoint: Option<String>,
    /// Share of the requests without a caller's decision that are traced. Default 1; 0 to 1.
    pub sample: f64,
    /// Whether each request has a line in the log. Default no.
    pub access_log: bool,
}

impl Default for TracesConfig {
    fn default() -> Self {
        Self { endpoint: None, sample: 1.0, access_log: false }
    }
}

impl TracesConfig {
    pub(super) fn check(&self, faults: &mut Faults) {
        if let Some(Err(message)) = self.endpoint.as_deref().map(traces_url) {
            faults.add("--otlp-endpoint", message);
        }
        // Neither is a NaN within the range.
        if !(0.0..=1.0).contains(&self.sample) {
            faults.add("--trace-sample", format!("{} is not within 0 to 1", self.sample));
        }
    }

    /// Where traces are sent, if anywhere; a fault is that of [`TracesConfig::check`].
    pub fn url(&self) -> Option<String> {
        traces_url(self.endpoint.as_deref()?).ok()
    }
}

/// The whole address that traces are sent to.
fn traces_url(endpoint: &str) -> Result<String, String> {
    let is_wanted = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let url = Url::parse(endpoint).ok().filter(is_wanted).ok_or_else(|| {
        // What may have a password in it is not repeated, whatever else is wrong with it.
        "it is no address of a collector; write http://HOST:4318 or https://HOST".to_owned()
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        // It is not repeated: the log and the help of a fault are no place for a password.
        return Err(
            "its address has a user or password in it, which the header `authorization` is \
                    for: set OTEL_EXPORTER_OTLP_HEADERS"
                .to_owned(),
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        // Nor what follows a `?`, which may be a key.
        return Err("it has a query or fragment, which a collector has not".to_owned());
    }
    let base = url.as_str().trim_end_matches('/');
    if url.path().trim_end_matches('/').ends_with(TRACES_PATH) {
        return Ok(base.to_owned());
    }
    Ok(format!("{base}{TRACES_PATH}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(endpoint: &str) -> (Option<String>, Faults) {
        let config =
            TracesConfig { endpoint: Some(endpoint.to_owned()), ..TracesConfig::default() };
        let mut faults = Faults::default();
        config.check(&mut faults);
        (config.url(), faults)
    }

    #[test]
    fn traces_go_to_their_path_below_the_endpoint() {
        for (endpoint, url) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("https://otel.example/at/", "https://otel.example/at/v1/traces"),
            ("http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"),
        ] {
            assert_eq!(of(endpoint), (Some(url.to_owned()), Faults::default()));
        }
    }

    #[test]
    fn what_is_no_collectors_address_is_a_fault_that_shows_no_password() {
        for endpoint in
            ["", "localhost:4318", "grpc://host:4317", "unix:/run/otel", "http://h/?a=1"]
        {
            let (url, faults) = of(endpoint);
            assert_eq!(url, None, "{endpoint}");
            assert_eq!(faults.0[0].flag, "--otlp-endpoint");
        }
        for endpoint in [
            "http://user:hidden@host",
            "htp://user:hidden@host:4318",
            "user:hidden@host:4318",
            "//user:hidden@host",
            "http://user:hidden@",
            "http://user:hidden@host:port",
            "http://user:hidden@two words",
            "http://user:hidden@[::1",
            "http://user:hidden",
            "http://host:4318/?key=hidden",
        ] {
            let (url, faults) = of(endpoint);
            assert_eq!((url, faults.0.len()), (None, 1), "{endpoint}");
            assert!(!faults.to_string().contains("hidden"), "{faults}");
        }
    }

    #[test]
    fn a_share_is_within_0_and_1() {
        let faults = |sample: f64| {
            let mut faults = Faults::default();
            TracesConfig { sample, ..TracesConfig::default() }.check(&mut faults);
            faults.0.len()
        };
        let counts = [0.0, 0.5, 1.0, -0.1, 1.1, f64::NAN, f64::INFINITY].map(faults);
        assert_eq!(counts, [0, 0, 0, 1, 1, 1, 1]);
    }
}
