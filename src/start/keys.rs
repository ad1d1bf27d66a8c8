//! The keys in force: read at the start, and again when their file changes or a SIGHUP comes.
//!
//! A file that is faulty when it is read again leaves the keys as they are, and is told in the log and
//! by a metric: a mistake in it must neither lock everybody out nor let anybody in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use actors::{TenantId, TenantLimits};
use arc_swap::ArcSwap;
use futures_util::{FutureExt as _, future};

use super::StartError;
use super::reread::{self, Read};
use crate::config::{Fault, HttpConfig, is_loopback};
use crate::http::AuthConfig;
use crate::telemetry;
use crate::tenants::{self, Changes, KeyFile, Keyring, Settings, listed};
use crate::watched::Stamp;

/// The flag of keys that are typed.
const API_KEY: &str = "--api-key";

/// What is said where everybody is let in.
const OPEN: &str =
    "no keys: everybody who reaches this server may ask it; give --keys or --api-key";

/// The keys of a server that has some.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    ring: Arc<ArcSwap<Keyring>>,
    /// Those of the command line.
    flags: Arc<Keyring>,
    file: Option<KeyFile>,
    /// What the file was when it was read.
    seen: Option<Stamp>,
}

impl Keys {
    /// [`Keys::read`] for a server that starts.
    ///
    /// # Errors
    /// [`StartError::Setting`] with all faults.
    pub(super) fn load(config: &HttpConfig) -> Result<Option<Self>, StartError> {
        Self::read(config).map_err(|faults| {
            let flag = faults.first().map_or("--keys", |fault| fault.flag);
            let line = |fault: &Fault| match fault {
                Fault { flag: same, message } if *same == flag => message.clone(),
                Fault { flag, message } => format!("{flag}: {message}"),
            };
            let lines: Vec<String> = faults.iter().map(line).collect();
            StartError::Setting { flag, message: lines.join("\n") }
        })
    }

    /// Reads the keys of the configuration; `None` where it has none, and everybody is let in.
    ///
    /// # Errors
    /// All faults of the file and of the command line's keys.
    pub(super) fn read(config: &HttpConfig) -> Result<Option<Self>, Vec<Fault>> {
        if config.keys.is_none() && config.api_keys.is_empty() {
            tracing::warn!("{OPEN}");
            return Ok(None);
        }
        let mut faults = Vec::new();
        let flags = Keyring::from_api_keys(&config.api_keys).unwrap_or_else(|found| {
            let fault = |found: tenants::Fault| Fault { flag: API_KEY, message: found.message };
            faults.extend(found.into_iter().map(fault));
            Keyring::default()
        });
        let file = config.keys.as_ref().map(KeyFile::new);
        let read = file.as_ref().map(|file| joined(file, &flags)).transpose();
        let read = read.unwrap_or_else(|found| {
            let fault =
                |found: &tenants::Fault| Fault { flag: "--keys", message: found.to_string() };
            faults.extend(found.iter().map(fault));
            None
        });
        if !faults.is_empty() {
            return Err(faults);
        }
        let (ring, seen) = match read {
            Some((ring, stamp)) => (ring, Some(stamp)),
            None => (flags.clone(), None),
        };
        in_force(&ring);
        warn_of_flags(config);
        let ring = Arc::new(ArcSwap::from_pointee(ring));
        Ok(Some(Self { ring, flags: Arc::new(flags), file, seen }))
    }

    /// Who is let in by them, now and when they have changed.
    pub(super) fn auth(&self) -> AuthConfig {
        AuthConfig::of(Arc::clone(&self.ring))
    }

    /// The keys now.
    pub(super) fn ring(&self) -> Arc<Keyring> {
        self.ring.load_full()
    }

    /// Reads the file again whenever that is called for, for ever.
    ///
    /// * `changed`: called with keys that are new in force.
    ///
    /// # Errors
    /// [`StartError::System`] when the system gives no handler for the signal.
    pub(super) fn watch(
        keys: Option<Self>,
        changed: impl Fn(&Keyring) + Send + Sync + 'static,
    ) -> Result<(), StartError> {
        let file = keys.and_then(|keys| Some((keys.file.clone()?, keys)));
        let files: Vec<PathBuf> = file.iter().map(|(file, _)| file.path.clone()).collect();
        let seen = file.iter().map(|(_, keys)| keys.seen).collect();
        reread::follow(files, seen, move || {
            let read = file.as_ref().map(|(file, keys)| keys.read_again(file, &changed));
            future::ready(read.unwrap_or(Read::Settled)).boxed()
        })
    }

    fn read_again(&self, file: &KeyFile, changed: &(impl Fn(&Keyring) + Sync)) -> Read {
        // Of 4 MiB at most, and only this task waits for it.
        match tokio::task::block_in_place(|| joined(file, &self.flags)) {
            Ok((ring, _)) => {
                let changes = Changes::between(&self.ring.load(), &ring);
                tracing::info!("--keys: the file was read again: {changes}");
                changed(&ring);
                in_force(&ring);
                self.ring.store(Arc::new(ring));
                Read::Settled
            }
            Err(faults) => {
                telemetry::keys_failed();
                let told = format!(
                    "--keys: the file cannot be used, the keys stay as they were:\n{}",
                    listed(&faults)
                );
                Read::failed(faults.iter().any(|fault| fault.passes), told)
            }
        }
    }
}

fn in_force(ring: &Keyring) {
    let count = ring.tenants().count();
    telemetry::keys_loaded(count);
    if count == 0 {
        tracing::warn!("there are no keys: nobody can ask anything");
        return;
    }
    tracing::info!("keys of {count} tenants are in force");
}

/// Says what is easily overlooked of keys: whose those of the command line are, and who can read them.
fn warn_of_flags(config: &HttpConfig) {
    if !config.api_keys.is_empty() {
        tracing::info!(
            "keys of --api-key are those of operators: without limits, and they see all tenants"
        );
    }
    if config.wire.tls.is_none() && !is_loopback(&config.host) {
        tracing::warn!(
            "keys and states cross the network in clear: give --tls-cert and --tls-key, or let only a \
             proxy that has TLS reach {}",
            config.host
        );
    }
}

/// What the actors are to know of the tenants.
pub(super) fn limits(ring: &Keyring) -> BTreeMap<TenantId, TenantLimits> {
    let limits = |settings: &Settings| TenantLimits {
        weight: settings.weight,
        tokens_per_minute: settings.tokens_per_minute,
        reads_max: settings.reads_max.map(|reads| reads as usize),
        queue_share: settings.queue_share,
        kv_bytes_max: settings.kv_bytes,
        pin_bytes_max: settings.pin_bytes,
    };
    ring.tenants().map(|tenant| (tenant.name.clone(), limits(&tenant.settings))).collect()
}

/// The keys of the file with those of the command line.
fn joined(file: &KeyFile, flags: &Keyring) -> Result<(Keyring, Stamp), Vec<tenants::Fault>> {
    let (ring, stamp) = file.load()?;
    let ring = ring.join(flags)?;
    if let Some(warning) = stamp.warning() {
        tracing::warn!("--keys {}: {warning}", file.path.display());
    }
    Ok((ring, stamp))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;
    use crate::config::keys::ApiKey;
    use crate::tenants::Found;

    fn config(folder: &tempfile::TempDir, text: &str, api_keys: &[&str]) -> HttpConfig {
        let path = folder.path().join("keys.toml");
        fs::write(&path, text).unwrap();
        let api_keys = api_keys.iter().map(|key| ApiKey::parse(key).unwrap()).collect();
        HttpConfig { keys: Some(path), api_keys, ..HttpConfig::default() }
    }

    fn is_valid(keys: &Keys, key: &str) -> bool {
        let ring = keys.ring();
        matches!(ring.find(key.as_bytes(), SystemTime::now()), Found::Valid(..))
    }

    #[test]
    fn without_keys_there_are_none() {
        assert!(Keys::load(&HttpConfig::default()).unwrap().is_none());
    }

    #[test]
    fn a_faulty_file_stops_the_start_with_all_its_faults() {
        let folder = tempfile::TempDir::new().unwrap();
        let text = "[tenants.a]\nweight = 0\n[tenants.b]\nlane = \"fast\"\n";
        let told = Keys::load(&config(&folder, text, &[])).unwrap_err().to_string();
        assert!(told.starts_with("--keys: "), "{told}");
        assert!(told.contains("tenants.a.weight") && told.contains("tenants.b.lane"), "{told}");
    }

    #[test]
    fn faults_of_typed_keys_and_of_the_file_come_together() {
        let folder = tempfile::TempDir::new().unwrap();
        let config = config(&folder, "[tenants.a]\nweight = 0\n", &["b=key", "c=key"]);
        let faults = Keys::read(&config).unwrap_err();
        let flags: Vec<&str> = faults.iter().map(|fault| fault.flag).collect();
        assert_eq!(flags, ["--api-key", "--keys"]);
        let told = Keys::load(&config).unwrap_err().to_string();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], "--api-key: b and c have the same key");
        assert!(lines[1].starts_with("--keys: tenants.a.weight: 0 is not"), "{told}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_file_that_is_read_again_is_in_force_unless_it_is_faulty() {
        let folder = tempfile::TempDir::new().unwrap();
        let config = config(&folder, "[tenants.a]\n", &["b=flag-key"]);
        let keys = Keys::load(&config).unwrap().unwrap();
        assert!(is_valid(&keys, "flag-key"));
        let file = keys.file.clone().unwrap();
        let added = file.add("a", &[], (None, None), SystemTime::now()).unwrap();
        assert!(!is_valid(&keys, added.text.reveal()));
        let told = std::sync::Mutex::new(Vec::new());
        let changed = |ring: &Keyring| told.lock().unwrap().push(ring.tenants().count());
        keys.read_again(&file, &changed);
        assert!(is_valid(&keys, added.text.reveal()) && is_valid(&keys, "flag-key"));
        fs::write(&file.path, "[tenants.a]\nweight = -1\n").unwrap();
        assert_eq!(keys.read_again(&file, &changed), Read::Settled, "until it changes");
        assert!(is_valid(&keys, added.text.reveal()));
        fs::write(&file.path, "[tenants.a]\n").unwrap();
        keys.read_again(&file, &changed);
        assert!(!is_valid(&keys, added.text.reveal()), "revoked");
        assert_eq!(*told.lock().unwrap(), [2, 2]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_the_system_would_not_read_is_to_be_read_later() {
        let folder = tempfile::TempDir::new().unwrap();
        let config = config(&folder, "[tenants.a]\n", &[]);
        let keys = Keys::load(&config).unwrap().unwrap();
        let file = keys.file.clone().unwrap();
        let later = || matches!(keys.read_again(&file, &|_| ()), Read::Later(_));
        fs::remove_file(&file.path).unwrap();
        assert!(later(), "gone");
        std::os::unix::fs::symlink(&file.path, &file.path).unwrap();
        assert!(later(), "a ring of links");
        fs::remove_file(&file.path).unwrap();
        fs::create_dir(&file.path).unwrap();
        assert!(!later(), "a folder stays one until it changes");
    }
}
