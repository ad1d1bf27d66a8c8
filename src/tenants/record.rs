//! A key file as it stands: TOML text to tenants, with every fault and its place.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use actors::TenantId;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, Faults, shown};
use super::key::{Key, KeyHash, KeyId, NOTE_CHARS_MAX, holds_key};
use super::settings::{self, Settings, wanted};
use super::{FILE_BYTES_MAX, TENANT_KEYS_MAX, TENANTS_MAX, Tenant, is_tenant_name};

/// Most faults of TOML that are told: each is looked for from the file's beginning.
const SYNTAX_FAULTS_MAX: usize = 20;

/// Longest text of which more than the first fault of TOML is told. To find another the parser makes
/// good of the first, and of a text that is no TOML at all it so keeps a fault for every byte.
const RECOVERED_BYTES_MAX: usize = 128 << 10;

/// Reads all tenants of a file.
///
/// # Errors
/// All faults, up to a hundred.
pub(super) fn tenants(text: &str) -> Result<Vec<Tenant>, Vec<Fault>> {
    if text.len() > FILE_BYTES_MAX {
        let message = format!("{} bytes, at most {FILE_BYTES_MAX} are read", text.len());
        return Err(vec![Fault::new("the file", message)]);
    }
    // One that is being written in place is empty for a moment: that must not lock everybody out.
    if text.trim().is_empty() {
        let message = "it is empty; a file without tenants has at least the line `[tenants]`";
        return Err(vec![Fault::new("the file", message)]);
    }
    let document = parse_toml(text)?;
    let mut faults = Faults::default();
    let tenants = Reader { faults: &mut faults, seen: BTreeMap::new() }.file(document.get_ref());
    faults.or(tenants)
}

/// Reads a text as TOML.
///
/// # Errors
/// Its faults, each with its line, and without the line's text, which may be a secret; of a text over
/// [`RECOVERED_BYTES_MAX`] the first.
pub(crate) fn parse_toml(text: &str) -> Result<Spanned<DeTable<'_>>, Vec<Fault>> {
    let fault = |error: &toml::de::Error| {
        let place = error.span().map_or_else(|| "the file".to_owned(), |at| line(text, at.start));
        Fault::new(place, shown(error.message()))
    };
    if text.len() > RECOVERED_BYTES_MAX {
        return DeTable::parse(text).map_err(|error| vec![fault(&error)]);
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    // What was made good of a broken text would give faults that are none.
    if errors.is_empty() {
        return Ok(document);
    }
    Err(errors.iter().take(SYNTAX_FAULTS_MAX).map(fault).collect())
}

fn line(text: &str, at: usize) -> String {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    let lines = before.split(|byte| *byte == b'\n');
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    format!("line {}, byte {}", lines.count(), column + 1)
}

struct Reader<'f> {
    faults: &'f mut Faults,
    /// Ids and heads of hashes, and where they were.
    seen: BTreeMap<String, String>,
}

impl Reader<'_> {
    fn file(&mut self, file: &DeTable<'_>) -> Vec<Tenant> {
        let mut tenants = Vec::new();
        for (name, value) in file {
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("tenants", DeValue::Table(named)) => tenants = self.all(named),
                ("tenants", other) => self.faults.add("tenants", wanted("a table", other)),
                (other, _) => self.faults.add(shown(other), "only `tenants` is known here"),
            }
        }
        tenants
    }

    fn all(&mut self, named: &DeTable<'_>) -> Vec<Tenant> {
        if named.len() > TENANTS_MAX {
            let message = format!("{} tenants, at most {TENANTS_MAX} are taken", named.len());
            self.faults.add("tenants", message);
            return Vec::new();
        }
        let named = named.iter().map(|(name, value)| (name.get_ref().as_ref(), value.get_ref()));
        named.filter_map(|(name, value)| self.tenant(name, value)).collect()
    }

    fn tenant(&mut self, name: &str, value: &DeValue<'_>) -> Option<Tenant> {
        let place = format!("tenants.{}", shown(name));
        if !is_tenant_name(name) || holds_key(name) {
            let message = "a name has 1 to 64 letters, digits, `.`, `_` or `-`, and is no key";
            self.faults.add(&place, message);
        }
        let Some(fields) = value.as_table() else {
            self.faults.add(place, wanted("a table", value));
            return None;
        };
        let mut settings = Settings::default();
        let mut keys = Vec::new();
        for (field, value) in fields {
            let (field, value) = (field.get_ref().as_ref(), value.get_ref());
            if field == "keys" {
                keys = self.keys(&format!("{place}.keys"), value);
            } else if let Err(message) = settings.set(field, value) {
                self.faults.add(format!("{place}.{}", shown(field)), message);
            }
        }
        Some(Tenant { name: TenantId(Arc::from(name)), settings, keys })
    }

    fn keys(&mut self, place: &str, value: &DeValue<'_>) -> Vec<Key> {
        let Some(keys) = value.as_array() else {
            self.faults.add(place, wanted("a list of tables, `[[...keys]]`,", value));
            return Vec::new();
        };
        if keys.len() > TENANT_KEYS_MAX {
            let message = format!(
                "{} keys, at most {TENANT_KEYS_MAX} are taken; `docket keys revoke ID` removes one",
                keys.len()
            );
            self.faults.add(place, message);
        }
        let keys = keys.iter().enumerate();
        keys.filter_map(|(at, key)| self.key(&format!("{place}[{at}]"), key.get_ref())).collect()
    }

    fn key(&mut self, place: &str, value: &DeValue<'_>) -> Option<Key> {
        let Some(fields) = value.as_table() else {
            self.faults.add(place, wanted("a table", value));
            return None;
        };
        let (mut id, mut hash, mut created, mut expires, mut note) = (None, None, None, None, None);
        for (field, value) in fields {
            let (field, value) = (field.get_ref().as_ref(), value.get_ref());
            let at = format!("{place}.{}", shown(field));
            match field {
                "id" => id = self.faults.take(&at, settings::text(value).and_then(KeyId::parse)),
                "hash" => {
                    hash = self.faults.take(&at, settings::text(value).and_then(KeyHash::parse));
                }
                "created" => created = self.faults.take(&at, settings::moment(value)),
                "expires" => expires = self.faults.take(&at, settings::moment(value)),
                "note" => note = self.faults.take(&at, note_of(value)),
                _ => {
                    let known = "id, hash, created, expires and note";
                    self.faults.add(at, format!("there is no such field; there are {known}"));
                }
            }
        }
        for required in ["id", "hash", "created"] {
            if !fields.iter().any(|(field, _)| field.get_ref().as_ref() == required) {
                self.faults.add(format!("{place}.{required}"), "it is missing");
            }
        }
        let key = Key { id: id?, hash: hash?, created: Some(created?), expires, note };
        self.is_new("id", key.id.as_str().to_owned(), place);
        self.is_new("hash", key.hash.written(), place);
        Some(key)
    }

    /// Adds a fault where another key has the same.
    fn is_new(&mut self, field: &str, value: String, place: &str) {
        match self.seen.entry(value) {
            Entry::Occupied(other) => {
                let message = format!("it is that of {} too; each key has its own", other.get());
                self.faults.add(format!("{place}.{field}"), message);
            }
            Entry::Vacant(free) => {
                free.insert(place.to_owned());
            }
        }
    }
}

fn note_of(value: &DeValue<'_>) -> Result<String, String> {
    let note = settings::text(value)?;
    let length = note.chars().count();
    if length > NOTE_CHARS_MAX {
        return Err(format!("{length} characters, at most {NOTE_CHARS_MAX} are taken"));
    }
    if note.chars().any(char::is_control) {
        return Err("a note has no control characters and is of one line".to_owned());
    }
    Ok(note.to_owned())
}
