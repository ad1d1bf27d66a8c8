//! `docket gateway`: its flags, and the configuration they mean.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::listed::Listed;
use super::serve::set;
use crate::config::quantity::{parse_bytes, parse_duration};
use crate::config::{BackendConfig, DialectChoice, Faults, GatewayConfig, TlsFiles};

/// What stands behind a gateway, and how it is asked.
#[derive(Debug, Default, Args)]
pub struct GatewayArgs {
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, env = "DOCKET_LISTEN", value_name = "HOST:PORT")]
    listen: Option<String>,

    /// A server behind it, and how much it takes beside the others; repeatable, and split at commas in the
    /// environment variable
    #[arg(long, env = "DOCKET_BACKEND", value_name = "URL[=WEIGHT]")]
    backend: Vec<Listed>,

    /// Address of the metrics, in place of the one that clients have [default: none]
    #[arg(long, env = "DOCKET_METRICS_LISTEN", value_name = "HOST:PORT")]
    metrics_listen: Option<String>,

    /// File of the secret that keys of states are made with, 16 to 4,096 bytes: gateways with the same
    /// one send a state to the same server [default: none, a random secret at each start]
    #[arg(long, env = "DOCKET_STATE_KEY_SECRET", value_name = "FILE")]
    state_key_secret: Option<PathBuf>,

    /// In whose words it fails where a request names no dialect [default: systemone]
    #[arg(long, env = "DOCKET_DIALECT", value_enum, hide_possible_values = true)]
    dialect: Option<DialectChoice>,

    #[command(flatten)]
    choice: ChoiceArgs,

    #[command(flatten)]
    retries: RetryArgs,

    #[command(flatten)]
    bounds: BoundArgs,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Which server")]
struct ChoiceArgs {
    /// Most requests under way at a server, in means of all by weight [default: 1.25]
    #[arg(long, env = "DOCKET_LOAD_FACTOR", value_name = "FACTOR")]
    load_factor: Option<f64>,

    /// Requests under way that a server may have in any case [default: 4]
    #[arg(long, env = "DOCKET_LOAD_MIN", value_name = "COUNT")]
    load_min: Option<u32>,

    /// From the end of one probe of a server to the next [default: 2s]
    #[arg(long, env = "DOCKET_PROBE_INTERVAL", value_name = "TIME", value_parser = parse_duration)]
    probe_interval: Option<Duration>,

    /// Longest time for the answer to a probe [default: 2s]
    #[arg(long, env = "DOCKET_PROBE_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    probe_timeout: Option<Duration>,

    /// So many probes in a row that fail take a server out [default: 2]
    #[arg(long, env = "DOCKET_PROBE_FAILURES", value_name = "COUNT")]
    probe_failures: Option<u32>,

    /// So many in a row that succeed take it in [default: 1]
    #[arg(long, env = "DOCKET_PROBE_SUCCESSES", value_name = "COUNT")]
    probe_successes: Option<u32>,

    /// So many requests in a row that cannot be sent, or are broken off, have a server left alone for a
    /// while [default: 3]
    #[arg(long, env = "DOCKET_EJECT_AFTER", value_name = "COUNT")]
    eject_after: Option<u32>,

    /// For how long; twice as long each time [default: 5s]
    #[arg(long, env = "DOCKET_EJECT_TIME", value_name = "TIME", value_parser = parse_duration)]
    eject_time: Option<Duration>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sending once more")]
struct RetryArgs {
    /// How often a request is sent once more at most [default: 2]
    #[arg(long, env = "DOCKET_RETRIES_MAX", value_name = "COUNT")]
    retries_max: Option<u32>,

    /// Longest Retry-After that is waited for, where it is not passed on [default: 1s]
    #[arg(long, env = "DOCKET_RETRY_WAIT_MAX", value_name = "TIME", value_parser = parse_duration)]
    retry_wait_max: Option<Duration>,

    /// Most requests that wait or are sent once more at one time [default: 256]
    #[arg(long, env = "DOCKET_RETRIES_AT_ONCE", value_name = "COUNT")]
    retries_at_once: Option<u32>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Bounds")]
struct BoundArgs {
    /// Most requests under way; more are refused [default: 1024]
    #[arg(long, env = "DOCKET_REQUESTS_MAX", value_name = "COUNT")]
    requests_max: Option<u32>,

    /// Most bytes of a request's body, after decompression [default: 32MiB]
    #[arg(long, env = "DOCKET_BODY_LIMIT", value_name = "SIZE", value_parser = parse_bytes)]
    body_limit: Option<u64>,

    /// Longest time to connect to a server [default: 1s]
    #[arg(long, env = "DOCKET_CONNECT_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    connect_timeout: Option<Duration>,

    /// Longest time for a server's answer to begin, and between two pieces of it [default: 660s]
    #[arg(long, env = "DOCKET_ANSWER_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    answer_timeout: Option<Duration>,

    /// Most open connections of clients [default: 1024]
    #[arg(long, env = "DOCKET_CONNECTIONS_MAX", value_name = "COUNT")]
    connections_max: Option<u32>,

    /// Of these, most from one address; 0 is no limit [default: half of --connections-max]
    #[arg(long, env = "DOCKET_CONNECTIONS_PER_ADDRESS", value_name = "COUNT")]
    connections_per_address: Option<u32>,

    /// Most requests at one time on a connection of HTTP/2 [default: 128]
    #[arg(long, env = "DOCKET_HTTP2_STREAMS", value_name = "COUNT")]
    http2_streams: Option<u32>,

    /// Certificate in PEM, those that vouch for it behind it: the port speaks TLS then
    #[arg(long, env = "DOCKET_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Key of --tls-cert in PEM, without a passphrase
    #[arg(long, env = "DOCKET_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// After a signal to stop: for how long it says that it is not ready, and answers all the same
    /// [default: 0s]
    #[arg(long, env = "DOCKET_DRAIN_DELAY", value_name = "TIME", value_parser = parse_duration)]
    drain_delay: Option<Duration>,

    /// Longest time to finish what is under way then [default: 30s]
    #[arg(long, env = "DOCKET_DRAIN_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    drain_timeout: Option<Duration>,
}

impl GatewayArgs {
    /// The validated configuration that was asked for.
    ///
    /// # Errors
    /// All faults, each with its flag.
    pub fn config(self) -> Result<GatewayConfig, Faults> {
        let mut faults = Faults::default();
        let mut config = GatewayConfig::default();
        set(&mut config.listen, self.listen);
        set(&mut config.dialect, self.dialect);
        config.metrics_listen = self.metrics_listen;
        config.state_key_secret = self.state_key_secret;
        for text in Listed::all(self.backend) {
            match BackendConfig::parse(&text) {
                Ok(backend) => config.backends.push(backend),
                Err(message) => faults.add("--backend", message),
            }
        }
        self.choice.fill(&mut config);
        self.retries.fill(&mut config);
        self.bounds.fill(&mut config);
        // What is wrong with one backend is told, and not that it is missing too.
        let is_told = !faults.0.is_empty();
        if let Err(found) = config.validate() {
            faults.0.extend(found.0.into_iter().filter(|f| !is_told || f.flag != "--backend"));
        }
        if faults.0.is_empty() { Ok(config) } else { Err(faults) }
    }
}

impl ChoiceArgs {
    fn fill(self, config: &mut GatewayConfig) {
        set(&mut config.load.factor, self.load_factor);
        set(&mut config.load.min, self.load_min);
        set(&mut config.probes.interval, self.probe_interval);
        set(&mut config.probes.timeout, self.probe_timeout);
        set(&mut config.probes.failures, self.probe_failures);
        set(&mut config.probes.successes, self.probe_successes);
        set(&mut config.ejection.after, self.eject_after);
        set(&mut config.ejection.time, self.eject_time);
    }
}

impl RetryArgs {
    fn fill(self, config: &mut GatewayConfig) {
        set(&mut config.retries.max, self.retries_max);
        set(&mut config.retries.wait_max, self.retry_wait_max);
        set(&mut config.retries.at_once, self.retries_at_once);
    }
}

impl BoundArgs {
    fn fill(self, config: &mut GatewayConfig) {
        set(&mut config.requests.max, self.requests_max);
        set(&mut config.requests.body_bytes_max, self.body_limit);
        set(&mut config.requests.connect_timeout, self.connect_timeout);
        set(&mut config.requests.answer_timeout, self.answer_timeout);
        set(&mut config.connections_max, self.connections_max);
        set(&mut config.drain_delay, self.drain_delay);
        set(&mut config.drain_timeout, self.drain_timeout);
        config.wire.connections_per_address = self.connections_per_address;
        set(&mut config.wire.http2_streams_max, self.http2_streams);
        let files = self.tls_cert.zip(self.tls_key);
        config.wire.tls = files.map(|(certificate, key)| TlsFiles { certificate, key });
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn typed(arguments: &[&str]) -> Result<GatewayConfig, Faults> {
        let cli = Cli::try_parse_from([&["docket", "gateway"], arguments].concat()).unwrap();
        let Command::Gateway(arguments) = cli.command else { panic!("another command") };
        arguments.config()
    }

    #[test]
    fn flags_become_a_configuration() {
        let config = typed(&[
            "--listen",
            "0.0.0.0:9000",
            "--backend",
            "http://a:8000",
            "--backend",
            "http://b:8000=2",
            "--load-factor",
            "1.5",
            "--retry-wait-max",
            "250ms",
        ])
        .unwrap();
        assert_eq!(config.listen, "0.0.0.0:9000");
        let backends: Vec<(&str, u32)> =
            config.backends.iter().map(|backend| (backend.name.as_str(), backend.weight)).collect();
        assert_eq!(backends, [("a:8000", 1), ("b:8000", 2)]);
        assert!((config.load.factor - 1.5).abs() < 1e-9);
        assert_eq!(config.retries.wait_max, Duration::from_millis(250));
        let defaults = GatewayConfig { backends: config.backends, ..GatewayConfig::default() };
        let plain = typed(&["--backend", "http://a:8000", "--backend", "http://b:8000=2"]);
        assert_eq!(plain, Ok(defaults), "what is not typed is the default");
    }

    #[test]
    fn a_bad_backend_is_told_once_with_everything_else() {
        let faults = typed(&["--backend", "https://a", "--retries-max", "11"]).unwrap_err();
        let flags: Vec<&str> = faults.0.iter().map(|fault| fault.flag).collect();
        assert_eq!(flags, ["--backend", "--retries-max"]);
        assert_eq!(typed(&[]).unwrap_err().0[0].flag, "--backend");
    }
}
