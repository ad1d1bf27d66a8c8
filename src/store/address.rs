//! Where a shared store is, as it is typed: `postgres://USER@HOST:PORT/DATABASE`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr as _;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// What an address begins with.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The parameter that says whether TLS is spoken.
const SSL_MODE: &str = "sslmode=";

/// Its values of other clients that mean what `require` means here: the certificate is always checked.
const CHECKED: [&str; 2] = ["verify-full", "verify-ca"];

/// Where a database is and who asks it. What it shows of itself has no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    config: Config,
    shown: String,
}

impl Address {
    /// Reads an address. Where it says nothing of `sslmode` TLS is required, but not of this machine's
    /// own addresses.
    ///
    /// # Errors
    /// What is wrong with it; nothing of it is repeated, since any part may be one of a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            return Err("it does not begin with postgres://".to_owned());
        }
        let config = Config::from_str(&required(text)).map_err(|_| {
            "it cannot be read; write postgres://USER@HOST:PORT/DATABASE, and in names and passwords \
             %40 for @, %2F for /, %3A for :, %3F for ? and %25 for %"
                .to_owned()
        })?;
        if config.get_hosts().is_empty() {
            return Err("it names no host".to_owned());
        }
        if config.get_user().is_none() {
            return Err("it names no user".to_owned());
        }
        let mut address = Self { shown: shown(&config), config };
        let parameters = text.rsplit_once('?').map_or("", |(_, parameters)| parameters);
        if !parameters.split('&').any(|parameter| parameter.starts_with(SSL_MODE)) {
            let mode = if address.is_local() { SslMode::Disable } else { SslMode::Require };
            address.config.ssl_mode(mode);
        }
        Ok(address)
    }

    /// What a connection is made with, but for a password that is kept elsewhere.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Whether it has a password in it.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Whether what is said to the database may cross the network in clear.
    pub fn is_exposed(&self) -> bool {
        self.config.get_ssl_mode() != SslMode::Require && !self.is_local()
    }

    /// Whether all of its hosts are this machine.
    fn is_local(&self) -> bool {
        let is_own = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => {
                let is_loopback = |address: IpAddr| address.is_loopback();
                name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
            }
        };
        let elsewhere = self.config.get_hostaddrs().iter().any(|address| !address.is_loopback());
        !elsewhere && self.config.get_hosts().iter().all(is_own)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Address({})", self.shown)
    }
}

/// The text with `require` in place of what means the same.
fn required(text: &str) -> String {
    let Some((address, parameters)) = text.rsplit_once('?') else { return text.to_owned() };
    let known = |parameter: &str| {
        let mode = parameter.strip_prefix(SSL_MODE);
        mode.is_some_and(|mode| CHECKED.contains(&mode))
    };
    let of = |parameter: &str| {
        if known(parameter) { format!("{SSL_MODE}require") } else { parameter.to_owned() }
    };
    let parameters: Vec<String> = parameters.split('&').map(of).collect();
    format!("{address}?{}", parameters.join("&"))
}

/// `postgres://HOST:PORT,.../DATABASE`.
fn shown(config: &Config) -> String {
    let ports = config.get_ports();
    let host = |(at, host): (usize, &Host)| {
        let name = match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => folder.display().to_string(),
        };
        // One port may stand for all hosts.
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        format!("{name}:{port}")
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(text: &str) -> SslMode {
        Address::parse(text).unwrap().config().get_ssl_mode()
    }

    #[test]
    fn an_address_is_shown_without_user_and_password() {
        let text = "postgres://ann:s3c%40ret@db.example:5433/docket?connect_timeout=3";
        let address = Address::parse(text).unwrap();
        assert_eq!(address.to_string(), "postgres://db.example:5433/docket");
        assert!(address.has_password());
        assert!(!format!("{address:?}").contains("ret") && !format!("{address:?}").contains("ann"));
        let several = Address::parse("postgresql://ann@a,b:5433,[::1]/d").unwrap();
        assert_eq!(several.to_string(), "postgres://a:5432,b:5433,[::1]:5432/d");
        assert!(!several.has_password());
        let socket = Address::parse("postgres://ann@%2Frun%2Fpg/d").unwrap();
        assert_eq!(socket.to_string(), "postgres:///run/pg:5432/d");
    }

    #[test]
    fn what_is_wrong_is_told_without_any_part_of_it() {
        for text in [
            "mysql://ann:hunter2@h/d",
            "hunter2",
            "postgres://ann:hunter2@h:port/d",
            "postgres://ann:hunter2@h/d?sslmode=maybe",
            "postgres://ann:hunter2@/d",
            "postgres://h/d",
        ] {
            let message = Address::parse(text).unwrap_err();
            assert!(!message.contains("hunter2") && !message.contains("ann"), "{message}");
        }
    }

    #[test]
    fn tls_is_required_of_other_machines_unless_it_is_said_otherwise() {
        assert_eq!(mode("postgres://a@db/d"), SslMode::Require);
        assert_eq!(mode("postgres://a@10.0.0.7/d"), SslMode::Require);
        assert_eq!(mode("postgres://a@localhost/d"), SslMode::Disable);
        assert_eq!(mode("postgres://a@127.0.0.1,[::1]:5433/d"), SslMode::Disable);
        assert_eq!(mode("postgres://a@localhost,db/d"), SslMode::Require);
        assert_eq!(mode("postgres://a@%2Frun/d"), SslMode::Disable);
        assert_eq!(mode("postgres://a@localhost/d?hostaddr=10.0.0.7"), SslMode::Require);
        assert_eq!(mode("postgres://a@db/d?sslmode=verify-full"), SslMode::Require);
        assert_eq!(mode("postgres://a@db/d?sslmode=disable"), SslMode::Disable);
        assert!(Address::parse("postgres://a@db/d?sslmode=disable").unwrap().is_exposed());
        assert!(!Address::parse("postgres://a@db/d").unwrap().is_exposed());
        assert!(!Address::parse("postgres://a@localhost/d").unwrap().is_exposed());
    }
}
