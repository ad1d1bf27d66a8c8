//! A key file's text with a key more or less, wherever the text is kept.

use std::path::Path;
use std::time::SystemTime;

use actors::TenantId;

use super::edit::{self, Change, EditError, Hindrance};
use super::key::{Key, KeyHash, KeyId, KeyText};
use super::ring::{Found, Keyring};

/// What was done to add a key.
#[derive(Debug)]
pub struct Added {
    /// The key. It is not in the text and cannot be had again.
    pub text: KeyText,
    /// Its id.
    pub id: KeyId,
    /// Whose it is, with its settings as they now are.
    pub keyring: Keyring,
    /// Whether there was no text before.
    pub new_file: bool,
    /// Whether there was no such tenant before.
    pub new_tenant: bool,
}

/// The text with a key of a tenant more, and with fields of the tenant set; a new text where there is
/// none.
///
/// * `place`: what the text is called where something is wrong with it.
///
/// # Errors
/// [`EditError`] but of disks.
pub fn with_key(
    (place, old): (&Path, Option<&str>),
    (tenant, changes): (&str, &[Change]),
    (note, expires): (Option<String>, Option<SystemTime>),
    now: SystemTime,
) -> Result<(String, Added), EditError> {
    let before = match old.filter(|text| !text.trim().is_empty()) {
        Some(text) => parsed(place, text)?,
        None => Keyring::default(),
    };
    let is_taken = |id: &KeyId| before.key(id).is_some();
    let (id, text) = KeyText::draw(is_taken).map_err(EditError::NoRandomness)?;
    let hash = KeyHash::of(text.reveal().as_bytes());
    let key = Key { id: id.clone(), hash, created: Some(now), expires, note };
    let edited = edit::add(old.unwrap_or_default(), tenant, changes, &key);
    let (new, keyring) = edited.map_err(|hindrance| hindered(place, hindrance))?;
    // What is shown must be what will be let in.
    if keyring.find(text.reveal().as_bytes(), now) == Found::Unknown {
        return Err(hindered(place, Hindrance::Inline(format!("tenants.{tenant}"))));
    }
    let new_tenant = before.tenant(tenant).is_none();
    Ok((new, Added { text, id, keyring, new_file: old.is_none(), new_tenant }))
}

/// The text without a key, and whose it was.
///
/// # Errors
/// [`EditError`] but of disks.
pub fn without_key(
    (place, old): (&Path, &str),
    id: &KeyId,
) -> Result<(String, TenantId), EditError> {
    let before = parsed(place, old)?;
    let no_such = || EditError::NoSuchKey { path: place.to_owned(), id: id.clone() };
    let tenant = before.key(id).ok_or_else(no_such)?.0.name.clone();
    let edited = edit::remove(old, &tenant.0, id);
    let (new, keyring) = edited.map_err(|hindrance| hindered(place, hindrance))?;
    if keyring.key(id).is_some() {
        return Err(hindered(place, Hindrance::Inline(format!("tenants.{}", tenant.0))));
    }
    Ok((new, tenant))
}

fn parsed(place: &Path, text: &str) -> Result<Keyring, EditError> {
    Keyring::parse(text).map_err(|faults| EditError::Faults { path: place.to_owned(), faults })
}

fn hindered(place: &Path, hindrance: Hindrance) -> EditError {
    let path = place.to_owned();
    match hindrance {
        Hindrance::Faults(faults) => EditError::Refused { path, faults },
        Hindrance::Inline(place) => EditError::Inline { path, place },
    }
}
