//! `docket keys`: the key file, or the keys of the shared store, from the command line.

mod list;
mod place;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use thiserror::Error;

use self::list::ListArgs;
use self::place::Place;
use super::causes::{share, whole};
use super::named::lane;
use super::serve::store::{located, secret};
use crate::config::KeysFrom;
use crate::config::keys::Secret;
use crate::tenants::{Added, Change, EditError, Fault, KeyFile, KeyId, Value, listed, moment};

/// Heading of the flags that describe a key or its tenant; no environment variable sets these, since
/// those of the same name are the server's.
pub(crate) const DESCRIBED: &str = "The key and its tenant";

/// What to do with which key file.
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// The key file: that of `docket serve --keys`; `store`, or nothing beside --store: the keys of
    /// --store
    #[arg(long, global = true, env = "DOCKET_KEYS", value_name = "FILE|store")]
    pub file: Option<PathBuf>,

    /// The shared store: that of `docket serve --store`
    #[arg(long, global = true, env = "DOCKET_STORE", value_name = "URL", hide_env_values = true)]
    #[arg(value_parser = secret)]
    pub store: Option<Secret>,

    /// File of its password: that of `docket serve`
    #[arg(long, global = true, env = "DOCKET_STORE_PASSWORD_FILE", value_name = "FILE")]
    pub store_password_file: Option<PathBuf>,

    /// Certificates of authorities for it: those of `docket serve`
    #[arg(long, global = true, env = "DOCKET_STORE_CA", value_name = "FILE")]
    pub store_ca: Option<PathBuf>,

    /// What to do
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// What to do with a key file.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key for a tenant and print it, this once; file and tenant are made where absent
    New(Box<NewArgs>),
    /// List all tenants, their keys and their limits
    List(ListArgs),
    /// Remove a key
    Revoke(RevokeArgs),
}

/// Which key to remove.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Its id: the 8 digits after `dk_`
    #[arg(value_name = "ID")]
    pub id: String,
}

/// What key to make, and what to set of its tenant.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = DESCRIBED)]
pub struct NewArgs {
    /// Whose the key is: 1 to 64 letters, digits, `.`, `_` and `-`
    #[arg(value_name = "TENANT")]
    pub tenant: String,

    /// What the key is for, at most 200 characters
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,

    /// When the key ends: 90d, 12h, or a time such as 2027-01-01T00:00:00Z [default: never]
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,

    /// The tenant's part of the engine where several wait, 1 to 1000
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = whole)]
    pub weight: Option<i64>,

    /// Highest lane that the tenant may ask for: urgent, normal, batch or idle
    #[arg(long, value_name = "LANE", value_parser = lane(), hide_possible_values = true)]
    pub lane: Option<String>,

    /// The tenant's requests a minute
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = whole)]
    pub requests_per_minute: Option<i64>,

    /// The tenant's tokens a minute
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = whole)]
    pub tokens_per_minute: Option<i64>,

    /// The tenant's reads that may wait or run
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = whole)]
    pub reads_max: Option<i64>,

    /// Part of the server's --reads-max that the tenant may fill, above 0 to 1
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = share)]
    pub queue_share: Option<f64>,

    /// Bytes of the tenant's kept states
    #[arg(long, value_name = "SIZE")]
    pub kv_bytes: Option<String>,

    /// Bytes of the tenant's pinned states
    #[arg(long, value_name = "SIZE")]
    pub pin_bytes: Option<String>,

    /// Names of the models that the tenant may ask for, separated by commas
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub models: Vec<String>,

    /// Whether the tenant may name sub-tenants
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true")]
    pub act_for: Option<bool>,

    /// Whether the tenant sees what concerns all tenants
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true")]
    pub operator: Option<bool>,

    /// When the tenant ends and all its keys with it, as --expires
    #[arg(long, value_name = "TIME")]
    pub tenant_expires: Option<String>,
}

/// Why nothing was done.
#[derive(Debug, Error)]
pub enum KeysError {
    /// No file is named, and no store.
    #[error("no key file is named; give --file FILE or set DOCKET_KEYS, or give --store URL")]
    NoFile,
    /// A file is named and a store too.
    #[error("{} and a store are both named; give --file store for the store, or --store '' for the file", .0.display())]
    Both(PathBuf),
    /// The store cannot be used.
    #[error("{0}")]
    Store(String),
    /// A flag's value cannot be.
    #[error("{0}: {1}")]
    Flag(&'static str, String),
    /// The file cannot be read.
    #[error("{} cannot be used:\n{}", .0.display(), listed(.1))]
    Faults(PathBuf, Vec<Fault>),
    /// The file was not changed.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A key is in the file that nobody has seen.
    #[error("standard output: {1}; revoke key {0}, which nobody has seen")]
    Unseen(KeyId, io::Error),
    /// What was done could not be told.
    #[error("output: {0}")]
    Output(#[from] io::Error),
}

/// Does what was asked for. Standard output has a new key alone, so that it can be taken by a script.
///
/// # Errors
/// [`KeysError`]; but for the last two the keys are as they were.
pub fn run(
    arguments: &KeysArgs,
    now: SystemTime,
    (out, told): (&mut impl Write, &mut impl Write),
) -> Result<(), KeysError> {
    let place = arguments.place()?;
    match &arguments.command {
        KeysCommand::New(new) => {
            let added = add(&place, new, now)?;
            tell(&place, new, &added, told)?;
            let shown = writeln!(out, "{}", added.text.reveal()).and_then(|()| out.flush());
            shown.map_err(|error| KeysError::Unseen(added.id, error))
        }
        KeysCommand::List(arguments) => list::run(&place, arguments, now, (out, told)),
        KeysCommand::Revoke(revoked) => {
            let id = KeyId::parse(&revoked.id);
            let id = id.map_err(|message| KeysError::Flag("ID", message))?;
            let tenant = place.revoke(&id)?;
            Ok(writeln!(out, "key {id} of tenant {} is revoked", tenant.0)?)
        }
    }
}

fn add(place: &Place, new: &NewArgs, now: SystemTime) -> Result<Added, KeysError> {
    let end = |flag, text: &Option<String>| {
        let end = text.as_deref().map(|text| moment::parse_end(text, now));
        end.transpose().map_err(|message| KeysError::Flag(flag, message))
    };
    let expires = end("--expires", &new.expires)?;
    let tenant_expires = end("--tenant-expires", &new.tenant_expires)?;
    let mut changes = new.changes();
    changes.extend(tenant_expires.map(|end| ("expires", moment::value(end))));
    place.add(&new.tenant, &changes, (new.note.clone(), expires), now)
}

impl KeysArgs {
    /// Where the keys are. What names no file and what names no store are both as if absent.
    fn place(&self) -> Result<Place, KeysError> {
        let files = (self.store_password_file.clone(), self.store_ca.clone());
        let store = located(self.store.as_ref(), files);
        let store = store.map_err(|message| KeysError::Flag("--store", message))?;
        let file = self.file.clone().filter(|path| !path.as_os_str().is_empty());
        match (file.map(KeysFrom::from), &store.address) {
            (Some(KeysFrom::File(path)), None) => Ok(Place::File(KeyFile::new(path))),
            (Some(KeysFrom::File(path)), Some(_)) => Err(KeysError::Both(path)),
            (Some(KeysFrom::Store), None) => {
                Err(KeysError::Flag("--file", "store is the shared store; give --store".to_owned()))
            }
            (Some(KeysFrom::Store) | None, Some(address)) => Place::of_store(address, &store),
            (None, None) => Err(KeysError::NoFile),
        }
    }
}

impl NewArgs {
    /// The tenant's fields that were typed, as the file has them: what they may be is decided there.
    fn changes(&self) -> Vec<Change> {
        let number = |value: Option<i64>| value.map(Value::from);
        let text = |value: &Option<String>| value.as_deref().map(Value::from);
        let models = (!self.models.is_empty()).then(|| self.models.iter().collect::<Value>());
        let fields = [
            ("weight", number(self.weight)),
            ("lane", text(&self.lane)),
            ("requests_per_minute", number(self.requests_per_minute)),
            ("tokens_per_minute", number(self.tokens_per_minute)),
            ("reads_max", number(self.reads_max)),
            ("queue_share", self.queue_share.map(Value::from)),
            ("kv_bytes", text(&self.kv_bytes)),
            ("pin_bytes", text(&self.pin_bytes)),
            ("models", models),
            ("act_for", self.act_for.map(Value::from)),
            ("operator", self.operator.map(Value::from)),
        ];
        fields.into_iter().filter_map(|(field, value)| Some((field, value?))).collect()
    }
}

fn tell(
    place: &Place,
    new: &NewArgs,
    added: &Added,
    told: &mut impl Write,
) -> Result<(), KeysError> {
    let (name, tenant, id) = (place.name().display(), &new.tenant, &added.id);
    if added.new_file {
        writeln!(told, "made {name}; a server reads it with {}", place.flag())?;
    }
    if added.new_tenant {
        writeln!(told, "made tenant {tenant}")?;
    }
    let mut fields: Vec<&str> = new.changes().into_iter().map(|(field, _)| field).collect();
    fields.extend(new.tenant_expires.as_ref().map(|_| "expires"));
    if !fields.is_empty() {
        writeln!(told, "set {} of tenant {tenant}", fields.join(", "))?;
    }
    let end = added.keyring.key(id).map_or_else(String::new, |(_, key)| key.end());
    writeln!(told, "made key {id} of tenant {tenant}, which expires {end}; it is shown this once")?;
    Ok(())
}

#[cfg(test)]
mod tests;
