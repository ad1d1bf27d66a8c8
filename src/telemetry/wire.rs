//! Metrics of connections: what they speak, and why the server ended them.

use std::sync::LazyLock;

use metrics::{Counter, Gauge, counter, gauge};

use super::Held;

pub(super) const ENDED: &str = "docket_http_connections_ended_total";
pub(super) const HTTP2_CONNECTIONS: &str = "docket_http2_connections";
pub(super) const HTTP2_STREAMS: &str = "docket_http2_streams";
pub(super) const TLS_FAILED: &str = "docket_tls_reload_failed";

static METERS: LazyLock<Meters> = LazyLock::new(|| Meters {
    ended: Ending::ALL.map(|ending| counter!(ENDED, "reason" => ending.name())),
    http2_connections: gauge!(HTTP2_CONNECTIONS),
    http2_streams: gauge!(HTTP2_STREAMS),
    tls_failed: gauge!(TLS_FAILED),
});

struct Meters {
    /// In the order of [`Ending::ALL`].
    ended: [Counter; 7],
    http2_connections: Gauge,
    http2_streams: Gauge,
    tls_failed: Gauge,
}

/// Why the server ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Too many from one address.
    Address,
    /// The TLS handshake failed, or took too long.
    Handshake,
    /// A request's head took too long.
    Head,
    /// Nothing was asked for a long time.
    Idle,
    /// Nothing was asked for a while, and others wanted in.
    Room,
    /// The client did not read its responses.
    Unread,
    /// The client gave up request after request.
    Cancels,
}

impl Ending {
    const ALL: [Self; 7] = [
        Self::Address,
        Self::Handshake,
        Self::Head,
        Self::Idle,
        Self::Room,
        Self::Unread,
        Self::Cancels,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Handshake => "handshake",
            Self::Head => "head",
            Self::Idle => "idle",
            Self::Room => "room",
            Self::Unread => "unread",
            Self::Cancels => "cancels",
        }
    }
}

/// Registers them.
pub(super) fn start() {
    LazyLock::force(&METERS);
}

/// The server ended a connection.
pub(crate) fn connection_ended(why: Ending) {
    METERS.ended[why as usize].increment(1);
}

/// A connection of HTTP/2 is open.
pub(crate) fn http2_connection() -> Held {
    Held::by(&METERS.http2_connections)
}

/// A request of HTTP/2 is being answered.
pub(crate) fn http2_stream() -> Held {
    Held::by(&METERS.http2_streams)
}

/// Whether the certificate could not be used when its files were last read again.
pub(crate) fn tls_reloaded(has_failed: bool) {
    METERS.tls_failed.set(f64::from(u8::from(has_failed)));
}
