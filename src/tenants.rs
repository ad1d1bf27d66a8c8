//! Tenants and their keys: who may ask, and for how much.
//!
//! A file of the operator's (`--keys FILE`, docs/OPERATIONS.md, "Keys and tenants") names them. It is
//! parsed whole into a [`Keyring`], which never changes; a new one takes its place when the file
//! changes. Of a key only its hash is kept, here and in the file. Nothing here knows of HTTP or of
//! the model.

mod changes;
mod edit;
mod fault;
mod file;
mod key;
pub mod moment;
mod rate;
mod record;
mod ring;
mod settings;
mod text;

use actors::TenantId;

use crate::config::keys::TENANT_BYTES_MAX;
pub use crate::config::keys::tenant_hash;

pub use toml_edit::Value;

pub use self::changes::Changes;
pub use self::edit::{Change, EditError};
pub(crate) use self::fault::shown;
pub use self::fault::{Fault, listed};
pub use self::file::KeyFile;
pub use self::key::{Key, KeyId, KeyText};
pub use self::rate::{Quota, Rates};
pub(crate) use self::record::parse_toml;
pub use self::ring::{Found, Keyring};
pub use self::settings::Settings;
pub use self::text::{Added, with_key, without_key};

/// Most tenants of a file.
pub const TENANTS_MAX: usize = 4_096;

/// Most keys of a tenant.
pub const TENANT_KEYS_MAX: usize = 16;

/// Longest key file in bytes.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// A tenant of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenant {
    /// Its name.
    pub name: TenantId,
    /// What it may.
    pub settings: Settings,
    /// Its keys, valid or expired; at most [`TENANT_KEYS_MAX`].
    pub keys: Vec<Key>,
}

/// Whether a text can be the name of a tenant, or the part of a sub-tenant's after the `/`: 1 to 64
/// ASCII letters, digits, `.`, `_` and `-`.
pub fn is_tenant_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=TENANT_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests;
