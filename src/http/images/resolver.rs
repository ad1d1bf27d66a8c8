//! Names of hosts turned into addresses, of which only public ones come out.
//!
//! The client connects to what comes out of here and to nothing else, so a name that stands for
//! another address on the next asking (DNS rebinding) gains nothing by it.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use thiserror::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use super::address::is_public;

/// Most addresses of a host that are tried.
const ADDRESSES_MAX: usize = 4;

/// What turns names into addresses; tests have one of their own.
pub(super) trait Lookup: Debug + Send + Sync + 'static {
    /// The addresses of a host.
    ///
    /// # Errors
    /// There are none, or nobody can say.
    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The operating system's.
#[derive(Debug)]
pub(super) struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }
}

/// No address of a host may be connected to.
#[derive(Debug, Error)]
#[error("the host has no public address")]
pub(super) struct NoPublicAddress;

/// Lets public addresses through.
#[derive(Debug)]
pub(super) struct Guarded<L> {
    pub(super) lookup: L,
    pub(super) allow_private: bool,
}

impl<L: Lookup> Resolver for Guarded<L> {
    /// Asks in this thread: the fetch holds its place until the answer is there, so that lookups
    /// that hang are as few as fetches may be.
    fn resolve(
        &self,
        uri: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().ok_or(ureq::Error::HostNotFound)?;
        let https = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let found = self.addresses(host, port).map_err(|_| ureq::Error::HostNotFound)?;
        let let_in = |found: &SocketAddr| self.allow_private || is_public(found.ip());
        let mut addresses = self.empty();
        for address in found.into_iter().filter(let_in).take(ADDRESSES_MAX) {
            addresses.push(address);
        }
        if addresses.is_empty() {
            return Err(ureq::Error::Other(Box::new(NoPublicAddress)));
        }
        Ok(addresses)
    }
}

impl<L: Lookup> Guarded<L> {
    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match bare.parse::<IpAddr>() {
            Ok(address) => Ok(vec![SocketAddr::new(address, port)]),
            Err(_) => self.lookup.addresses(host, port),
        }
    }
}
