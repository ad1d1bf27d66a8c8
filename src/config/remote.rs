//! Which servers run the model of a remote engine, and how they are asked.

use std::path::PathBuf;
use std::time::Duration;

use super::keys::Secret;
use super::{EngineKind, Faults};
use crate::engine::remote::Target;

/// Most servers.
const SERVERS_MAX: usize = 64;

/// Longest name of a model in bytes.
const MODEL_BYTES_MAX: usize = 200;

/// Longest key in bytes.
const KEY_BYTES_MAX: usize = 4096;

/// The servers of a remote engine.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteConfig {
    /// Their addresses, `http://HOST:PORT` each. 1 to 64, all different, for an engine `vllm`, `sglang`
    /// or `llama-server`; none for another one.
    pub urls: Vec<String>,
    /// The key that lets docket in. Default none; at most 4,096 bytes, of what a header may have.
    pub key: Option<Secret>,
    /// A file with that key. Default none.
    pub key_file: Option<PathBuf>,
    /// How requests name the model. Default: what each server calls it; 1 to 200 bytes.
    pub model: Option<String>,
    /// Certificates in PEM that are believed instead of the public ones. Default none.
    pub authorities: Option<PathBuf>,
    /// Requests to one server that may be under way. Default 32; 1 to 1,024. More is throughput where
    /// the server has room, and a longer wait for an urgent read where it has not.
    pub window: u32,
    /// Longest time of one request. Default 60 s; 100 ms to an hour.
    pub timeout: Duration,
    /// How long what was not executed is tried again, and an outage waited out. Default 5 s; up to
    /// 10 minutes.
    pub retry_for: Duration,
    /// How long a start waits for a server that answers. Default 60 s; up to a day.
    pub wait: Duration,
}

impl Default for RemoteConfig {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            key: None,
            key_file: None,
            model: None,
            authorities: None,
            window: 32,
            timeout: Duration::from_mins(1),
            retry_for: Duration::from_secs(5),
            wait: Duration::from_mins(1),
        }
    }
}

impl RemoteConfig {
    pub(super) fn check(&self, kind: EngineKind, faults: &mut Faults) {
        let hour = Duration::from_hours(1);
        faults.check_range("--engine-window", self.window, 1..=1024);
        let shortest = Duration::from_millis(100);
        faults.check_duration("--engine-timeout", self.timeout, shortest..=hour);
        let longest = Duration::from_mins(10);
        faults.check_duration("--engine-retry-for", self.retry_for, Duration::ZERO..=longest);
        let day = Duration::from_hours(24);
        faults.check_duration("--engine-wait", self.wait, Duration::ZERO..=day);
        self.check_urls(kind, faults);
        self.check_key(faults);
        if let Some(model) = &self.model
            && (model.trim().is_empty() || model.len() > MODEL_BYTES_MAX)
        {
            let message = format!("{model:?} is not 1 to {MODEL_BYTES_MAX} bytes");
            faults.add("--engine-model", message);
        }
    }

    fn check_urls(&self, kind: EngineKind, faults: &mut Faults) {
        let flag = "--engine-url";
        match (kind.protocol(), self.urls.len()) {
            (Some(_), 0) => {
                let name = kind.name();
                let message = format!("--engine {name} needs the address of a {name} server");
                faults.add(flag, message);
            }
            (None, 1..) => faults.add(flag, "it needs --engine vllm, sglang or llama-server"),
            (_, count) if count > SERVERS_MAX => {
                faults.add(flag, format!("{count} servers; at most {SERVERS_MAX} are asked"));
            }
            (Some(_) | None, _) => {}
        }
        let mut seen: Vec<Target> = Vec::new();
        for (number, url) in self.urls.iter().enumerate() {
            match Target::parse(url) {
                // What may have a password in it is told by its number only.
                Err(message) => faults.add(flag, format!("address {}: {message}", number + 1)),
                Ok(target) if seen.contains(&target) => {
                    faults.add(flag, format!("{target} is given twice"));
                }
                Ok(target) => seen.push(target),
            }
        }
    }

    fn check_key(&self, faults: &mut Faults) {
        if self.key.is_some() && self.key_file.is_some() {
            faults.add("--engine-key-file", "--engine-key is given too; one key is sent");
        }
        if let Some(key) = &self.key
            && let Err(message) = check_key(key.reveal())
        {
            faults.add("--engine-key", message);
        }
    }

    /// The addresses, without those that are faults.
    pub fn targets(&self) -> Vec<Target> {
        self.urls.iter().filter_map(|url| Target::parse(url).ok()).collect()
    }
}

/// Refuses what cannot stand in a header. The key is not repeated.
///
/// # Errors
/// What is the matter.
pub fn check_key(key: &str) -> Result<(), String> {
    let is_sendable = |byte: u8| byte.is_ascii_graphic();
    if key.is_empty() || key.len() > KEY_BYTES_MAX || !key.bytes().all(is_sendable) {
        return Err(format!("it is not 1 to {KEY_BYTES_MAX} visible characters of ASCII"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(kind: EngineKind, config: &RemoteConfig) -> Vec<(&'static str, String)> {
        let mut faults = Faults::default();
        config.check(kind, &mut faults);
        faults.0.into_iter().map(|fault| (fault.flag, fault.message)).collect()
    }

    fn with_urls(urls: &[&str]) -> RemoteConfig {
        let urls = urls.iter().map(|url| (*url).to_owned()).collect();
        RemoteConfig { urls, ..RemoteConfig::default() }
    }

    #[test]
    fn addresses_go_with_an_engine_that_has_servers() {
        let one = with_urls(&["http://a:8000"]);
        assert_eq!(faults(EngineKind::Vllm, &one), []);
        assert_eq!(faults(EngineKind::Auto, &with_urls(&[])), []);
        let told = faults(EngineKind::Sglang, &with_urls(&[]));
        assert_eq!((told.len(), told[0].0), (1, "--engine-url"));
        assert!(told[0].1.contains("a sglang server"), "{told:?}");
        let told = faults(EngineKind::Cpu, &one);
        assert!(told.len() == 1 && told[0].1.contains("--engine vllm"), "{told:?}");
    }

    #[test]
    fn addresses_are_told_by_number_and_once() {
        let told = faults(EngineKind::Vllm, &with_urls(&["http://a", "http://me:hidden@b"]));
        assert_eq!(told.len(), 1);
        assert!(told[0].1.starts_with("address 2: ") && !told[0].1.contains("hidden"), "{told:?}");
        let told = faults(EngineKind::Vllm, &with_urls(&["http://a", "http://a/"]));
        assert!(told[0].1.contains("given twice"), "{told:?}");
        let many: Vec<String> = (0..65).map(|number| format!("http://h{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(faults(EngineKind::Vllm, &with_urls(&many))[0].1.contains("at most 64"));
    }

    #[test]
    fn a_key_is_one_and_can_be_sent() {
        assert!(check_key("sk-1").is_ok());
        for key in ["", "two words", "line\n", "schl\u{fc}ssel"] {
            let told = check_key(key).unwrap_err();
            assert!(key.is_empty() || !told.contains(key), "{told}");
        }
    }
}
