//! Flags of the wire: where to listen, who is let in, and what a connection may.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::set;
use crate::cli::listed::Listed;
use crate::cli::named::one_of;
use crate::cli::switch::switch;
use crate::config::keys::ApiKey;
use crate::config::quantity::{parse_bytes, parse_duration};
use crate::config::{Config, Faults, TlsFiles, UsageDir};
use crate::dialect::problem::FullStatus;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "The wire")]
pub(super) struct HttpArgs {
    /// Host name or address to listen on [default: 127.0.0.1]
    #[arg(long, env = "DOCKET_HOST")]
    host: Option<String>,

    /// Port to listen on; 0 takes a free one [default: 8000]
    #[arg(long, env = "DOCKET_PORT")]
    port: Option<u16>,

    /// A key that is let in, of tenant `default` or of the one named; repeatable. The environment
    /// variable is split at commas: a key with a comma goes by the flag. A key that ends in `=` is
    /// written `default=KEY` [default: everybody]
    #[arg(long, env = "DOCKET_API_KEY", value_name = "[TENANT=]KEY", hide_env_values = true)]
    api_key: Vec<Listed>,

    /// File of tenants and their keys, which `docket keys` writes; read again when it changes or at a
    /// SIGHUP [default: none]
    #[arg(long, env = "DOCKET_KEYS", value_name = "FILE")]
    keys: Option<PathBuf>,

    /// Let everybody in, from other machines too, where there are no keys
    #[arg(long, env = "DOCKET_INSECURE_OPEN", value_parser = switch)]
    insecure_open: bool,

    /// Show /metrics without a key, where there are keys: for what asks without one, as the endpoint picker
    /// of a Kubernetes inference gateway does
    #[arg(long, env = "DOCKET_OPEN_METRICS", value_parser = switch)]
    open_metrics: bool,

    /// File of the secret that `x-docket-state-key` is made with, 16 to 4,096 bytes: servers with the same
    /// one give a state the same key [default: none, a random secret at each start]
    #[arg(long, env = "DOCKET_STATE_KEY_SECRET", value_name = "FILE")]
    state_key_secret: Option<PathBuf>,

    /// Folder in which it is kept what each tenant asked for; `off` keeps nothing [default: usage in
    /// the folder of the models]
    #[arg(long, env = "DOCKET_USAGE_DIR", value_name = "DIR|off")]
    usage_dir: Option<PathBuf>,

    /// Most bytes of a request's body, after decompression [default: 32MiB]
    #[arg(long, env = "DOCKET_BODY_LIMIT", value_name = "SIZE", value_parser = parse_bytes)]
    body_limit: Option<u64>,

    /// Most open connections [default: 1024]
    #[arg(long, env = "DOCKET_CONNECTIONS_MAX", value_name = "COUNT")]
    connections_max: Option<u32>,

    /// Of these, most from one address: an IPv4 address or a network of IPv6 (/64), but this machine's
    /// own; 0 is no limit, for servers behind a proxy [default: half of --connections-max]
    #[arg(long, env = "DOCKET_CONNECTIONS_PER_ADDRESS", value_name = "COUNT")]
    connections_per_address: Option<u32>,

    /// Most requests at one time on a connection of HTTP/2 [default: 128]
    #[arg(long, env = "DOCKET_HTTP2_STREAMS", value_name = "COUNT")]
    http2_streams: Option<u32>,

    /// Certificate in PEM, those that vouch for it behind it: the port speaks TLS then. It is read again
    /// when it changes or at a SIGHUP [default: none, HTTP in clear]
    #[arg(long, env = "DOCKET_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// Key of --tls-cert in PEM, without a passphrase
    #[arg(long, env = "DOCKET_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,

    /// Longest time to finish admitted work after a signal to stop [default: 30s]
    #[arg(long, env = "DOCKET_DRAIN_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    drain_timeout: Option<Duration>,

    /// Status of what is refused because too much waits: 429, or 503 for clients and proxies that
    /// expect that [default: 429]
    #[arg(long, env = "DOCKET_QUEUE_FULL_STATUS", value_name = "429|503")]
    #[arg(value_parser = one_of::<FullStatus>(&["429", "503"]), hide_possible_values = true)]
    queue_full_status: Option<FullStatus>,

    /// After what time without the end of a step, while reads wait, /health says not ready [default: 60s]
    #[arg(long, env = "DOCKET_STALL_AFTER", value_name = "TIME", value_parser = parse_duration)]
    stall_after: Option<Duration>,
}

impl HttpArgs {
    pub(super) fn fill(self, config: &mut Config, faults: &mut Faults) {
        let http = &mut config.http;
        set(&mut http.host, self.host);
        set(&mut http.port, self.port);
        http.keys = self.keys;
        http.usage = match self.usage_dir {
            None => UsageDir::Usual,
            Some(folder) if folder.as_os_str() == "off" => UsageDir::Off,
            Some(folder) => UsageDir::Folder(folder),
        };
        http.insecure_open = self.insecure_open;
        http.open_metrics = self.open_metrics;
        http.state_key_secret = self.state_key_secret;
        http.wire.connections_per_address = self.connections_per_address;
        set(&mut http.wire.http2_streams_max, self.http2_streams);
        http.wire.tls = match (self.tls_cert, self.tls_key) {
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            (None, None) => None,
            (Some(_), None) => {
                faults.add("--tls-cert", "it needs --tls-key");
                None
            }
            (None, Some(_)) => {
                faults.add("--tls-key", "it needs --tls-cert");
                None
            }
        };
        set(&mut http.body_limit_bytes, self.body_limit);
        set(&mut http.connections_max, self.connections_max);
        set(&mut http.drain_timeout, self.drain_timeout);
        set(&mut http.queue_full_status, self.queue_full_status);
        set(&mut http.stall_after, self.stall_after);
        for text in Listed::all(self.api_key) {
            match ApiKey::parse(&text) {
                Ok(key) => http.api_keys.push(key),
                Err(message) => faults.add("--api-key", message),
            }
        }
    }
}
