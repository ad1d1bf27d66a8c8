//! The keys in force: read at the start, and again when their file changes or a SIGHUP comes, or when
//! those of the shared store do.
//!
//! A file that is faulty when it is read again, or keys of a store that are, leave them as they are, and is told in the log and
//! by a metric: a mistake in it must neither lock everybody out nor let anybody in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use actors::{TenantId, TenantLimits};
use arc_swap::ArcSwap;
use futures_util::{FutureExt as _, future};

use super::StartError;
use super::reread::{self, Read};
use crate::config::{Fault, HttpConfig, KeysFrom, is_loopback};
use crate::http::AuthConfig;
use crate::store::{Follower, Key, Record, Version};
use crate::telemetry;
use crate::tenants::{self, Changes, KeyFile, Keyring, Settings, listed};
use crate::watched::Stamp;

/// The flag of keys that are typed.
const API_KEY: &str = "--api-key";

/// What is said where everybody is let in.
const OPEN: &str =
    "no keys: everybody who reaches this server may ask it; give --keys or --api-key";

/// Who is told of keys that are new in force.
pub(super) type OnChange = Arc<dyn Fn(&Keyring) + Send + Sync>;

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
    pub(super) fn load(
        config: &HttpConfig,
        stored: Option<&str>,
    ) -> Result<Option<Self>, StartError> {
        Self::read(config, stored).map_err(|faults| {
            let flag = faults.first().map_or("--keys", |fault| fault.flag);
            let line = |fault: &Fault| match fault {
                Fault { flag: same, message } if *same == flag => message.clone(),
                Fault { flag, message } => format!("{flag}: {message}"),
            };
            let lines: Vec<String> = faults.iter().map(line).collect();
            StartError::Setting { flag, message: lines.join("\n") }
        })
    }

    /// What a start would refuse; what is in a store is not looked at.
    pub(super) fn check(config: &HttpConfig) -> Vec<Fault> {
        if config.keys == Some(KeysFrom::Store) {
            return of_flags(config).err().unwrap_or_default();
        }
        Self::read(config, None).err().unwrap_or_default()
    }

    /// Reads the keys of the configuration; `None` where it has none, and everybody is let in.
    ///
    /// * `stored`: those of the shared store, if it has some.
    ///
    /// # Errors
    /// All faults of the file or the store and of the command line's keys.
    fn read(config: &HttpConfig, stored: Option<&str>) -> Result<Option<Self>, Vec<Fault>> {
        if config.keys.is_none() && config.api_keys.is_empty() {
            tracing::warn!("{OPEN}");
            return Ok(None);
        }
        let mut faults = Vec::new();
        let flags = of_flags(config).unwrap_or_else(|found| {
            faults.extend(found);
            Keyring::default()
        });
        let (file, read) = match &config.keys {
            None => (None, Ok((flags.clone(), None))),
            Some(KeysFrom::Store) => (None, parsed(stored, &flags).map(|ring| (ring, None))),
            Some(KeysFrom::File(path)) => {
                let file = KeyFile::new(path);
                let read = joined(&file, &flags).map(|(ring, stamp)| (ring, Some(stamp)));
                (Some(file), read)
            }
        };
        let (ring, seen) = read.unwrap_or_else(|found| {
            let fault =
                |found: &tenants::Fault| Fault { flag: "--keys", message: found.to_string() };
            faults.extend(found.iter().map(fault));
            (Keyring::default(), None)
        });
        if !faults.is_empty() {
            return Err(faults);
        }
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
    pub(super) fn watch(keys: Option<Self>, changed: OnChange) -> Result<(), StartError> {
        let file = keys.and_then(|keys| Some((keys.file.clone()?, keys)));
        let files: Vec<PathBuf> = file.iter().map(|(file, _)| file.path.clone()).collect();
        let seen = file.iter().map(|(_, keys)| keys.seen).collect();
        reread::follow(files, seen, move || {
            let read = file.as_ref().map(|(file, keys)| keys.read_again(file, &changed));
            future::ready(read.unwrap_or(Read::Settled)).boxed()
        })
    }

    fn read_again(&self, file: &KeyFile, changed: &OnChange) -> Read {
        // Of 4 MiB at most, and only this task waits for it.
        match tokio::task::block_in_place(|| joined(file, &self.flags)) {
            Ok((ring, _)) => {
                self.replace(ring, ("the file was read again", changed));
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

    fn replace(&self, ring: Keyring, (why, changed): (&str, &OnChange)) {
        let changes = Changes::between(&self.ring.load(), &ring);
        tracing::info!("--keys: {why}: {changes}");
        changed(&ring);
        in_force(&ring);
        self.ring.store(Arc::new(ring));
    }
}

/// The keys of a server that has those of the shared store.
pub(super) struct StoredKeys {
    keys: Keys,
    changed: OnChange,
}

impl StoredKeys {
    /// * `changed`: called with keys that are new in force.
    pub(super) fn new(keys: Keys, changed: OnChange) -> Self {
        Self { keys, changed }
    }
}

impl Follower for StoredKeys {
    /// The keys stay until others come: a store that was made anew must not lock everybody out.
    fn anew(&self) {}

    fn take(&self, record: Record) {
        if record.key != Key::of_keys() {
            return;
        }
        let Some(body) = &record.body else {
            telemetry::keys_failed();
            tracing::error!("--keys store: there are none any more, the keys stay as they were");
            return;
        };
        match parsed(Some(body), &self.keys.flags) {
            Ok(ring) => {
                let why = format!("those of the store are version {} now", record.version);
                self.keys.replace(ring, (&why, &self.changed));
            }
            Err(faults) => {
                telemetry::keys_failed();
                let told = listed(&faults);
                tracing::error!(
                    "--keys store: they cannot be used, the keys stay as they were:\n{told}"
                );
            }
        }
    }

    fn seen(&self, _: Version) {}
}

/// The keys of the command line.
fn of_flags(config: &HttpConfig) -> Result<Keyring, Vec<Fault>> {
    Keyring::from_api_keys(&config.api_keys).map_err(|found| {
        let fault = |found: tenants::Fault| Fault { flag: API_KEY, message: found.message };
        found.into_iter().map(fault).collect()
    })
}

/// The keys of a store, of which one without any is as a file without tenants, with those of the
/// command line.
fn parsed(stored: Option<&str>, flags: &Keyring) -> Result<Keyring, Vec<tenants::Fault>> {
    let ring = stored.map(Keyring::parse).transpose()?;
    ring.unwrap_or_default().join(flags)
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
        HttpConfig { keys: Some(KeysFrom::File(path)), api_keys, ..HttpConfig::default() }
    }

    fn is_valid(keys: &Keys, key: &str) -> bool {
        let ring = keys.ring();
        matches!(ring.find(key.as_bytes(), SystemTime::now()), Found::Valid(..))
    }

    #[test]
    fn without_keys_there_are_none() {
        assert!(Keys::load(&HttpConfig::default(), None).unwrap().is_none());
    }

    #[test]
    fn a_faulty_file_stops_the_start_with_all_its_faults() {
        let folder = tempfile::TempDir::new().unwrap();
        let text = "[tenants.a]\nweight = 0\n[tenants.b]\nlane = \"fast\"\n";
        let told = Keys::load(&config(&folder, text, &[]), None).unwrap_err().to_string();
        assert!(told.starts_with("--keys: "), "{told}");
        assert!(told.contains("tenants.a.weight") && told.contains("tenants.b.lane"), "{told}");
    }

    #[test]
    fn faults_of_typed_keys_and_of_the_file_come_together() {
        let folder = tempfile::TempDir::new().unwrap();
        let config = config(&folder, "[tenants.a]\nweight = 0\n", &["b=key", "c=key"]);
        let faults = Keys::read(&config, None).unwrap_err();
        let flags: Vec<&str> = faults.iter().map(|fault| fault.flag).collect();
        assert_eq!(flags, ["--api-key", "--keys"]);
        let told = Keys::load(&config, None).unwrap_err().to_string();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], "--api-key: b and c have the same key");
        assert!(lines[1].starts_with("--keys: tenants.a.weight: 0 is not"), "{told}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_file_that_is_read_again_is_in_force_unless_it_is_faulty() {
        let folder = tempfile::TempDir::new().unwrap();
        let config = config(&folder, "[tenants.a]\n", &["b=flag-key"]);
        let keys = Keys::load(&config, None).unwrap().unwrap();
        assert!(is_valid(&keys, "flag-key"));
        let file = keys.file.clone().unwrap();
        let added = file.add("a", &[], (None, None), SystemTime::now()).unwrap();
        assert!(!is_valid(&keys, added.text.reveal()));
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let own = Arc::clone(&told);
        let changed: OnChange =
            Arc::new(move |ring: &Keyring| own.lock().unwrap().push(ring.tenants().count()));
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
        let keys = Keys::load(&config, None).unwrap().unwrap();
        let file = keys.file.clone().unwrap();
        let changed: OnChange = Arc::new(|_: &Keyring| ());
        let later = || matches!(keys.read_again(&file, &changed), Read::Later(_));
        fs::remove_file(&file.path).unwrap();
        assert!(later(), "gone");
        std::os::unix::fs::symlink(&file.path, &file.path).unwrap();
        assert!(later(), "a ring of links");
        fs::remove_file(&file.path).unwrap();
        fs::create_dir(&file.path).unwrap();
        assert!(!later(), "a folder stays one until it changes");
    }

    #[test]
    fn keys_of_a_store_are_in_force_unless_they_are_faulty_or_gone() {
        let config = HttpConfig { keys: Some(KeysFrom::Store), ..HttpConfig::default() };
        let keys = Keys::load(&config, None).unwrap().unwrap();
        assert!(keys.ring().is_empty(), "nobody is let in before there are some");
        let (text, added) = tenants::with_key(
            (std::path::Path::new("the store"), None),
            ("a", &[]),
            (None, None),
            SystemTime::now(),
        )
        .unwrap();
        let counted = Arc::new(std::sync::Mutex::new(Vec::new()));
        let own = Arc::clone(&counted);
        let changed: OnChange =
            Arc::new(move |ring: &Keyring| own.lock().unwrap().push(ring.tenants().count()));
        let stored = StoredKeys::new(keys.clone(), changed);
        let take = |version: u64, body: Option<&str>| {
            let (key, version) = (Key::of_keys(), Version(version));
            stored.take(Record { key, version, body: body.map(Arc::from) });
        };
        take(1, Some(&text));
        assert!(is_valid(&keys, added.text.reveal()));
        take(2, Some("[tenants.a]\nweight = -1\n"));
        take(3, None);
        stored.anew();
        assert!(is_valid(&keys, added.text.reveal()), "what cannot be is not in force");
        take(4, Some("[tenants.a]\n"));
        assert!(!is_valid(&keys, added.text.reveal()), "revoked");
        assert_eq!(*counted.lock().unwrap(), [1, 1]);
        let config = HttpConfig { api_keys: vec![], ..config };
        assert_eq!(Keys::check(&config), [], "a check asks no store");
    }
}
