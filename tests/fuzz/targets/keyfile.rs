//! Key files: whatever one says, it is refused with all faults and no key in them, or it is edited and
//! read again with nothing else changed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use docket::config::keys::ApiKey;
use docket::tenants::{EditError, Fault, Found, KeyFile, Keyring, Tenant, listed, moment};
use tempfile::tempdir;

/// A time at which keys are made: the second 1,800,000,000.
const NOW_S: u64 = 1_800_000_000;

/// Faults that are told, and the line that says how many more there are.
const FAULTS_MAX: usize = 101;

/// See the module.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let now = UNIX_EPOCH + Duration::from_secs(NOW_S);
    if let Ok(end) = moment::parse_end(text, now) {
        assert!(end > now, "{text:?} ends before it begins");
    }
    if let Err(message) = ApiKey::parse(text) {
        assert!(!has_key(&message), "{message}");
    }
    match Keyring::parse(text) {
        Ok(ring) => {
            assert_eq!(ring.find(b"", now), Found::Unknown);
            edited(text, &ring, now);
        }
        Err(faults) => told(&faults),
    }
}

/// Faults show no key, and are lines.
fn told(faults: &[Fault]) {
    assert!((1..=FAULTS_MAX).contains(&faults.len()), "{} faults", faults.len());
    for fault in faults {
        let line = fault.to_string();
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(line.len() < 4_000, "{} bytes", line.len());
        assert!(!has_key(&line), "{line}");
    }
    assert_eq!(listed(faults).lines().count(), faults.len());
}

/// Whether a text has what a key has ahead of its secret, and something of that.
fn has_key(text: &str) -> bool {
    text.split("dk_").skip(1).any(|rest| {
        let rest = rest.as_bytes();
        rest.len() > 9 && rest[..8].iter().all(u8::is_ascii_hexdigit) && rest[8] == b'_'
    })
}

fn others<'r>(ring: &'r Keyring, name: &str) -> Vec<&'r Tenant> {
    ring.tenants().map(AsRef::as_ref).filter(|tenant| *tenant.name.0 != *name).collect()
}

/// Adds a key to a new tenant and to the first there is, and takes both away again.
fn edited(text: &str, ring: &Keyring, now: SystemTime) {
    let folder = tempdir().expect("a folder can be made");
    let first = ring.tenants().next().map(|tenant| tenant.name.0.to_string());
    for name in ["another".to_owned()].into_iter().chain(first) {
        let file = KeyFile::new(folder.path().join("keys.toml"));
        std::fs::write(&file.path, text).expect("a file can be written");
        let note = Some("a \"note\" # of\\ é".to_owned());
        let added = match file.add(&name, &[("weight", 3.into())], (note, None), now) {
            Ok(added) => added,
            Err(error) => {
                hindered(&error);
                continue;
            }
        };
        let secret = added.text.reveal();
        assert!(
            matches!(added.keyring.find(secret.as_bytes(), now), Found::Valid(tenant, id) | Found::Expired(tenant, id) if *tenant.name.0 == *name && *id == added.id)
        );
        let (loaded, _) = file.load().expect("what was edited is read");
        assert_eq!(others(&loaded, &name), others(ring, &name));
        let weight = loaded.tenant(&name).map(|tenant| tenant.settings.weight);
        assert_eq!(weight, Some(3));
        let written = std::fs::read_to_string(&file.path).expect("it is there");
        assert!(!written.contains(secret), "the file has the key");
        comments(text, &written);
        match file.revoke(&added.id) {
            Ok(tenant) => assert_eq!(*tenant.0, *name),
            Err(error) => return hindered(&error),
        }
        let (last, _) = file.load().expect("what was edited is read");
        assert!(last.key(&added.id).is_none());
        assert_eq!(others(&last, &name), others(ring, &name));
    }
}

/// What stands in lines that are nothing but comments stays.
fn comments(before: &str, after: &str) {
    if before.contains("\"\"\"") || before.contains("'''") {
        return;
    }
    let count = |text: &str| text.lines().filter(|line| line.trim_start().starts_with('#')).count();
    assert!(count(after) >= count(before), "a comment is gone:\n{after}");
}

/// An edit that is not made is one of a file that is read but not edited, or has no room.
fn hindered(error: &EditError) {
    match error {
        EditError::Inline { .. } => {}
        EditError::Refused { faults, .. } => told(faults),
        EditError::Io { .. }
        | EditError::Faults { .. }
        | EditError::NoSuchKey { .. }
        | EditError::NoRandomness(_) => panic!("{error}"),
    }
}
