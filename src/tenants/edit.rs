//! Changes of a key file's text: what is not changed stays as it is, comments and order too.
//!
//! What comes out is read again before it is written: it must be a key file in which one tenant
//! differs and no other.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value};

use super::fault::{Fault, listed};
use super::key::{Key, KeyId};
use super::moment;
use super::ring::Keyring;

/// What a new file begins with.
const HEAD: &str = "\
# Tenants and keys of a docket server: docs/OPERATIONS.md, \"Keys and tenants\".
# `docket keys new|list|revoke` edits it and keeps what is written by hand.
";

/// A field of a tenant's and its new value.
pub type Change = (&'static str, Value);

/// Why a file was not changed.
#[derive(Debug, Error)]
pub enum EditError {
    /// It, or its folder, cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// It is no key file.
    #[error("{} cannot be used:\n{}", path.display(), listed(faults))]
    Faults {
        /// Which.
        path: PathBuf,
        /// All faults.
        faults: Vec<Fault>,
    },
    /// It would be no key file any more.
    #[error("{} is not changed; it could not be used then:\n{}", path.display(), listed(faults))]
    Refused {
        /// Which.
        path: PathBuf,
        /// All faults that it would have.
        faults: Vec<Fault>,
    },
    /// It has no such key.
    #[error("{} has no key {id}", path.display())]
    NoSuchKey {
        /// Which file.
        path: PathBuf,
        /// Which key.
        id: KeyId,
    },
    /// It is written in a way that is read but not edited.
    #[error(
        "{}: {place} is written inline; `docket keys` edits only what is written as \
         [tenants.NAME] and [[tenants.NAME.keys]]",
        path.display()
    )]
    Inline {
        /// Which file.
        path: PathBuf,
        /// What.
        place: String,
    },
    /// No key could be made.
    #[error("{0}")]
    NoRandomness(String),
}

/// Why a text was not changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hindrance {
    Faults(Vec<Fault>),
    Inline(String),
}

/// The text with a key more and a tenant's fields set. An empty text is a new file.
pub(super) fn add(
    text: &str,
    tenant: &str,
    changes: &[Change],
    key: &Key,
) -> Result<(String, Keyring), Hindrance> {
    let text = if text.trim().is_empty() { HEAD } else { text };
    let mut document = document(text)?;
    let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
    document.set_trailing("");
    let old = document.to_string();
    let tenants = table(document.as_table_mut(), "tenants", "tenants", true)?;
    let place = format!("tenants.{tenant}");
    let fields = table(tenants, tenant, &place, false)?;
    for (field, value) in changes {
        set(fields, field, value.clone());
    }
    let keys = fields.entry("keys").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let keys = keys.as_array_of_tables_mut();
    keys.ok_or_else(|| Hindrance::Inline(format!("{place}.keys")))?.push(written(key));
    let new = document.to_string();
    // Comments that the file ends with are about what is above them: what is added comes after.
    let new = match new.strip_prefix(&old) {
        Some(added) if !trailing.is_empty() => {
            let trailing = trailing.trim_end();
            format!("{old}{trailing}\n\n{}", added.trim_start())
        }
        _ => new + &trailing,
    };
    checked(text, new, tenant)
}

/// The text without a key that it has.
pub(super) fn remove(text: &str, tenant: &str, id: &KeyId) -> Result<(String, Keyring), Hindrance> {
    let mut document = document(text)?;
    let place = format!("tenants.{tenant}");
    let tenants = table(document.as_table_mut(), "tenants", "tenants", true)?;
    let fields = table(tenants, tenant, &place, true)?;
    let keys = fields.get_mut("keys").and_then(Item::as_array_of_tables_mut);
    let keys = keys.ok_or_else(|| Hindrance::Inline(format!("{place}.keys")))?;
    let is_it = |key: &Table| key.get("id").and_then(Item::as_str) == Some(id.as_str());
    let at = keys.iter().position(is_it);
    let removed = at.map(|at| keys.remove(at));
    if keys.is_empty() {
        fields.remove("keys");
        // Else a tenant of whom nothing else is written would go with its last key.
        fields.set_implicit(false);
    }
    if let Some(removed) = removed {
        leave_comments(&mut document, &removed);
    }
    checked(text, document.to_string(), tenant)
}

fn document(text: &str) -> Result<DocumentMut, Hindrance> {
    // The same text has just been parsed as a key file, which tells of faults in its own words.
    text.parse::<DocumentMut>().map_err(|_| Hindrance::Faults(told(text)))
}

fn told(text: &str) -> Vec<Fault> {
    let unknown = || vec![Fault::new("the file", "it cannot be edited")];
    Keyring::parse(text).err().unwrap_or_else(unknown)
}

/// A table of another's, made where there is none; `implicit` is one without a header of its own.
fn table<'t>(
    parent: &'t mut Table,
    name: &str,
    place: &str,
    implicit: bool,
) -> Result<&'t mut Table, Hindrance> {
    let made = || {
        let mut table = Table::new();
        table.set_implicit(implicit);
        Item::Table(table)
    };
    let found = parent.entry(name).or_insert_with(made).as_table_mut();
    found.ok_or_else(|| Hindrance::Inline(place.to_owned()))
}

/// Sets a field; what is written around its value, such as a comment behind it, stays.
fn set(table: &mut Table, field: &str, mut value: Value) {
    if let Some(old) = table.get_mut(field).and_then(Item::as_value_mut) {
        *value.decor_mut() = old.decor().clone();
        *old = value;
    } else {
        table.insert(field, Item::Value(value));
    }
    if table.is_implicit() {
        table.set_implicit(false);
    }
}

fn written(key: &Key) -> Table {
    let mut table = Table::new();
    let mut put = |field: &str, value: Value| table.insert(field, Item::Value(value));
    put("id", key.id.as_str().into());
    put("hash", key.hash.written().into());
    for (field, moment) in [("created", key.created), ("expires", key.expires)] {
        if let Some(moment) = moment {
            put(field, moment::value(moment));
        }
    }
    if let Some(note) = &key.note {
        put("note", note.as_str().into());
    }
    table
}

/// What stands above the header of a removed table, up to the last empty line, moves to what follows
/// it: it is about more than this key. What touches the header is about the key and goes with it.
fn leave_comments(document: &mut DocumentMut, removed: &Table) {
    let above = removed.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
    let end = above.rfind("\n\n").map_or(0, |at| at + 1);
    let kept = &above[..end];
    if !kept.contains('#') {
        return;
    }
    let position = removed.position().unwrap_or_default();
    let mut next = None;
    let root = document.as_table_mut();
    following(root, position, &mut next);
    if let Some(position) = next {
        put_above(root, position, kept);
        return;
    }
    let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
    document.set_trailing(format!("{kept}{trailing}"));
}

/// The first position after `position` of a table with a header.
fn following(table: &Table, position: isize, next: &mut Option<isize>) {
    for inner in inner(table) {
        let own = inner.position().filter(|own| *own > position && !inner.is_dotted());
        *next = match (*next, own) {
            (Some(known), Some(own)) => Some(known.min(own)),
            (known, own) => known.or(own),
        };
        following(inner, position, next);
    }
}

fn inner(table: &Table) -> impl Iterator<Item = &Table> {
    table.iter().flat_map(|(_, item)| {
        let one = item.as_table().into_iter();
        one.chain(item.as_array_of_tables().into_iter().flat_map(ArrayOfTables::iter))
    })
}

fn put_above(table: &mut Table, position: isize, kept: &str) {
    for (_, item) in table.iter_mut() {
        let tables: Vec<&mut Table> = match item {
            Item::Table(table) => vec![table],
            Item::ArrayOfTables(tables) => tables.iter_mut().collect(),
            Item::None | Item::Value(_) => Vec::new(),
        };
        for inner in tables {
            if inner.position() == Some(position) && !inner.is_dotted() {
                let own = inner.decor().prefix().and_then(|prefix| prefix.as_str());
                let prefix = format!("{kept}{}", own.unwrap_or("\n"));
                inner.decor_mut().set_prefix(prefix);
                return;
            }
            put_above(inner, position, kept);
        }
    }
}

/// The new text and what it says, where it is a key file in which only `tenant` differs.
fn checked(old: &str, new: String, tenant: &str) -> Result<(String, Keyring), Hindrance> {
    let before = Keyring::parse(old).map_err(Hindrance::Faults)?;
    let after = Keyring::parse(&new).map_err(Hindrance::Faults)?;
    let others = |ring: &Keyring| {
        let others = ring.tenants().filter(|other| &*other.name.0 != tenant);
        others.cloned().collect::<Vec<_>>()
    };
    if others(&before) != others(&after) {
        return Err(Hindrance::Inline(format!("what is around tenants.{tenant}")));
    }
    Ok((new, after))
}
