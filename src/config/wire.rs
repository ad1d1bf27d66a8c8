//! How connections are taken: TLS, HTTP/2, and how many.

use std::path::PathBuf;

use super::Faults;

/// How connections are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireConfig {
    /// TLS in front of everything. Default none: HTTP in clear.
    pub tls: Option<TlsFiles>,
    /// Most open connections from one address, but this machine's own. Default: half of all; 0 to
    /// 65,536, and 0 is no limit.
    pub connections_per_address: Option<u32>,
    /// Most requests at one time on a connection of HTTP/2. Default 128; 1 to 1,024.
    pub http2_streams_max: u32,
}

/// Where certificate and key are, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those that vouch for it behind it.
    pub certificate: PathBuf,
    /// Its key, without a passphrase.
    pub key: PathBuf,
}

impl Default for WireConfig {
    fn default() -> Self {
        Self {
            tls: None,
            connections_per_address: None,
            http2_streams_max: crate::http::serve::STREAMS_MAX,
        }
    }
}

impl WireConfig {
    pub(super) fn check(&self, faults: &mut Faults) {
        let flag = "--connections-per-address";
        faults.check_range(flag, self.connections_per_address.unwrap_or(0), 0..=65_536);
        faults.check_range("--http2-streams", self.http2_streams_max, 1..=1_024);
    }

    /// How many connections one address may have where all may have so many; 0 is no limit.
    pub(crate) fn per_address(&self, connections_max: u32) -> u32 {
        self.connections_per_address.unwrap_or(connections_max.div_ceil(2))
    }
}
