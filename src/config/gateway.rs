//! What a gateway runs with: its backends, how it chooses among them, and the bounds of all of it.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::{DialectChoice, Faults, WireConfig};

/// Most backends.
const BACKENDS_MAX: usize = 256;

/// Largest weight of a backend.
const WEIGHT_MAX: u32 = 1_000;

/// Everything a gateway runs with.
#[derive(Debug, Clone, PartialEq)]
pub struct GatewayConfig {
    /// Host and port to listen on. Default `127.0.0.1:8080`; port 0 takes a free one.
    pub listen: String,
    /// Where `/metrics` and `/health` are instead of there. Default none.
    pub metrics_listen: Option<String>,
    /// TLS and connections.
    pub wire: WireConfig,
    /// Most open connections of clients. Default 1,024; 1 to 65,536.
    pub connections_max: u32,
    /// The servers behind it: 1 to 256, all different.
    pub backends: Vec<BackendConfig>,
    /// In whose words it fails where a request names no dialect. Default `systemone`, as the servers'.
    pub dialect: DialectChoice,
    /// File of the secret that states' keys are made with. Default none: a random one at each start.
    pub state_key_secret: Option<PathBuf>,
    /// How much more than others a backend may have.
    pub load: LoadConfig,
    /// How backends are asked whether they are ready.
    pub probes: ProbeConfig,
    /// When a backend is left alone for what became of its requests.
    pub ejection: EjectionConfig,
    /// When a request is sent once more.
    pub retries: RetryConfig,
    /// Bounds of requests.
    pub requests: RequestConfig,
    /// After a signal to stop: how long it says that it is not ready before it takes no more. Default
    /// 0 s; to 10 min.
    pub drain_delay: Duration,
    /// Longest time to finish what is under way then. Default 30 s; 0 to 1 h.
    pub drain_timeout: Duration,
}

/// A server behind a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendConfig {
    /// Host and port. It is what a key's preference is drawn by, so a backend that moves to another
    /// address under the same name keeps its keys.
    pub name: String,
    /// How much it takes beside the others. Default 1; 1 to 1,000.
    pub weight: u32,
}

/// How much more than others a backend may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadConfig {
    /// Most requests under way at a backend, in means of all by weight. Default 1.25; 1 to 100.
    pub factor: f64,
    /// So many it may have in any case. Default 4; 0 to 65,536. Requests on one state cost a docket
    /// less together than two dockets apart.
    pub min: u32,
}

/// How backends are asked whether they are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeConfig {
    /// From the end of one probe to the next. Default 2 s; 10 ms to 10 min.
    pub interval: Duration,
    /// Longest time for an answer. Default 2 s; 1 ms to 1 min.
    pub timeout: Duration,
    /// So many in a row that fail take a backend out. Default 2; 1 to 100.
    pub failures: u32,
    /// So many in a row that succeed take it in. Default 1; 1 to 100.
    pub successes: u32,
}

/// When a backend is left alone for what became of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EjectionConfig {
    /// So many requests in a row that could not be sent or were broken off. Default 3; 1 to 1,000.
    pub after: u32,
    /// For how long; twice as long each time, up to 32 times. Default 5 s; 10 ms to 1 h.
    pub time: Duration,
}

/// When a request is sent once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryConfig {
    /// How often at most. Default 2; 0 to 10.
    pub max: u32,
    /// Longest `Retry-After` that is waited for instead of being passed on. Default 1 s; 0 to 1 min.
    pub wait_max: Duration,
    /// Most requests that wait or are sent once more at one time. Default 256; 0 to 65,536.
    pub at_once: u32,
}

/// Bounds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestConfig {
    /// Most that are under way. Default 1,024; 1 to 65,536.
    pub max: u32,
    /// Most bytes of a body. Default 32 MiB; 1 KiB to 1 GiB.
    pub body_bytes_max: u64,
    /// Longest time to connect to a backend. Default 1 s; 1 ms to 1 min.
    pub connect_timeout: Duration,
    /// Longest time for an answer's head, and between two pieces of its body. Default 660 s: more than
    /// the longest that a docket takes by default; 1 ms to 24 h.
    pub answer_timeout: Duration,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            metrics_listen: None,
            wire: WireConfig::default(),
            connections_max: 1_024,
            backends: Vec::new(),
            dialect: DialectChoice::SystemOne,
            state_key_secret: None,
            load: LoadConfig::default(),
            probes: ProbeConfig::default(),
            ejection: EjectionConfig::default(),
            retries: RetryConfig::default(),
            requests: RequestConfig::default(),
            drain_delay: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

impl Default for LoadConfig {
    fn default() -> Self {
        Self { factor: 1.25, min: 4 }
    }
}

impl Default for ProbeConfig {
    fn default() -> Self {
        let two_seconds = Duration::from_secs(2);
        Self { interval: two_seconds, timeout: two_seconds, failures: 2, successes: 1 }
    }
}

impl Default for EjectionConfig {
    fn default() -> Self {
        Self { after: 3, time: Duration::from_secs(5) }
    }
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { max: 2, wait_max: Duration::from_secs(1), at_once: 256 }
    }
}

impl Default for RequestConfig {
    fn default() -> Self {
        Self {
            max: 1_024,
            body_bytes_max: 32 << 20,
            connect_timeout: Duration::from_secs(1),
            answer_timeout: Duration::from_mins(11),
        }
    }
}

impl BackendConfig {
    /// Reads `URL[=WEIGHT]`.
    ///
    /// # Errors
    /// What it must be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (address, weight) = match text.rsplit_once('=') {
            Some((address, weight)) => (address, weight.parse().ok()),
            None => (text, Some(1)),
        };
        let weight = weight.filter(|weight| (1..=WEIGHT_MAX).contains(weight));
        let weight = weight.ok_or_else(|| {
            format!("{text:?} has no weight within 1 to {WEIGHT_MAX} behind its `=`")
        })?;
        let form = || format!("{text:?} is no address of a server; write http://HOST:PORT");
        let url = Url::parse(address).map_err(|_| form())?;
        if url.scheme() == "https" {
            return Err(format!(
                "{address:?}: servers behind a gateway are asked in clear, by http"
            ));
        }
        let has_more = url.path() != "/" || url.query().is_some() || url.fragment().is_some();
        let has_user = !url.username().is_empty() || url.password().is_some();
        if url.scheme() != "http" || has_more || has_user {
            return Err(form());
        }
        let host = url.host_str().ok_or_else(form)?;
        let port = url.port_or_known_default().ok_or_else(form)?;
        Ok(Self { name: format!("{host}:{port}"), weight })
    }
}

impl GatewayConfig {
    /// Checks every range and what settings say about each other.
    ///
    /// # Errors
    /// All faults found, none held back.
    pub fn validate(&self) -> Result<(), Faults> {
        let mut faults = Faults::default();
        self.check_backends(&mut faults);
        faults.check_range("--connections-max", self.connections_max, 1..=65_536);
        self.wire.check(&mut faults);
        // Neither is a NaN within the range.
        if !(1.0..=100.0).contains(&self.load.factor) {
            faults.add("--load-factor", format!("{} is not within 1 to 100", self.load.factor));
        }
        faults.check_range("--load-min", self.load.min, 0..=65_536);
        faults.check_range("--probe-failures", self.probes.failures, 1..=100);
        faults.check_range("--probe-successes", self.probes.successes, 1..=100);
        faults.check_range("--eject-after", self.ejection.after, 1..=1_000);
        faults.check_range("--retries-max", self.retries.max, 0..=10);
        faults.check_range("--retries-at-once", self.retries.at_once, 0..=65_536);
        faults.check_range("--requests-max", self.requests.max, 1..=65_536);
        faults.check_bytes("--body-limit", self.requests.body_bytes_max, 1 << 10..=1 << 30);
        self.check_times(&mut faults);
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }

    fn check_times(&self, faults: &mut Faults) {
        let (zero, ms, minute) = (Duration::ZERO, Duration::from_millis(1), Duration::from_mins(1));
        let (ten, hour, day) =
            (Duration::from_millis(10), Duration::from_hours(1), Duration::from_hours(24));
        for (flag, value, range) in [
            ("--probe-interval", self.probes.interval, ten..=10 * minute),
            ("--probe-timeout", self.probes.timeout, ms..=minute),
            ("--eject-time", self.ejection.time, ten..=hour),
            ("--retry-wait-max", self.retries.wait_max, zero..=minute),
            ("--connect-timeout", self.requests.connect_timeout, ms..=minute),
            ("--answer-timeout", self.requests.answer_timeout, ms..=day),
            ("--drain-delay", self.drain_delay, zero..=10 * minute),
            ("--drain-timeout", self.drain_timeout, zero..=hour),
        ] {
            faults.check_duration(flag, value, range);
        }
    }

    fn check_backends(&self, faults: &mut Faults) {
        let count = self.backends.len();
        if !(1..=BACKENDS_MAX).contains(&count) {
            faults.add("--backend", format!("{count} servers; 1 to {BACKENDS_MAX} are wanted"));
        }
        let mut names: Vec<&str> =
            self.backends.iter().map(|backend| backend.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            faults.add("--backend", format!("{} is given twice", pair[0]));
        }
        for (flag, address) in
            [("--listen", Some(&self.listen)), ("--metrics-listen", self.metrics_listen.as_ref())]
        {
            let port = address.map(|address| address.rsplit_once(':'));
            let is_address =
                |(host, port): (&str, &str)| !host.is_empty() && port.parse::<u16>().is_ok();
            if port.is_some_and(|parts| !parts.is_some_and(is_address)) {
                let address = address.map_or("", String::as_str);
                faults.add(flag, format!("{address:?} is not HOST:PORT"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_an_address_and_a_weight() {
        for (text, name, weight) in [
            ("http://a:8000", "a:8000", 1),
            ("http://a", "a:80", 1),
            ("http://10.0.0.1:8000/=3", "10.0.0.1:8000", 3),
            ("http://[::1]:8000=1000", "[::1]:8000", 1_000),
        ] {
            let name = name.to_owned();
            assert_eq!(BackendConfig::parse(text), Ok(BackendConfig { name, weight }), "{text}");
        }
        for text in [
            "",
            "a:8000",
            "https://a:8000",
            "http://a:8000/v1",
            "http://user@a:8000",
            "http://a:8000?x",
            "http://a:8000=0",
            "http://a:8000=1001",
            "http://a:8000=two",
        ] {
            assert!(BackendConfig::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let backend = BackendConfig { name: "a:1".to_owned(), weight: 1 };
        let sound = GatewayConfig { backends: vec![backend.clone()], ..GatewayConfig::default() };
        assert_eq!(sound.validate(), Ok(()));
        let config = GatewayConfig {
            listen: "8080".to_owned(),
            backends: vec![backend.clone(), backend],
            load: LoadConfig { factor: f64::NAN, min: 0 },
            probes: ProbeConfig { failures: 0, interval: Duration::ZERO, ..ProbeConfig::default() },
            ..GatewayConfig::default()
        };
        let faults = config.validate().unwrap_err();
        let flags: Vec<&str> = faults.0.iter().map(|fault| fault.flag).collect();
        let expected =
            ["--backend", "--listen", "--load-factor", "--probe-failures", "--probe-interval"];
        assert_eq!(flags, expected);
        let none = GatewayConfig::default().validate().unwrap_err();
        assert_eq!(none.0[0].flag, "--backend");
    }
}
