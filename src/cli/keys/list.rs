//! `docket keys list`: all tenants, their keys and their limits, as tables or as JSON.

use std::io::{self, Write};
use std::time::SystemTime;

use clap::Args;
use serde_json::{Value, json};

use super::KeysError;
use super::place::{Loaded, Place};
use crate::cli::switch::switch;
use crate::config::quantity::bytes_as_typed;
use crate::tenants::{Key, Keyring, Settings, Tenant, moment};

/// What stands where there is nothing: no limit of the tenant's own, no right, no key.
const NONE: &str = "-";

/// How the list is printed.
#[derive(Debug, Default, Args)]
pub struct ListArgs {
    /// Print JSON, with the names of the key file
    #[arg(long, env = "DOCKET_JSON", value_parser = switch)]
    pub json: bool,
}

/// Prints all tenants; a warning of the file's rights goes to `told`.
pub(super) fn run(
    place: &Place,
    arguments: &ListArgs,
    now: SystemTime,
    (out, told): (&mut impl Write, &mut impl Write),
) -> Result<(), KeysError> {
    let Loaded { keyring, warning } = place.load()?;
    if let Some(warning) = warning {
        writeln!(told, "warning: {}: {warning}", place.name().display())?;
    }
    if arguments.json {
        let tenants: Vec<Value> = keyring.tenants().map(|tenant| json_of(tenant, now)).collect();
        return Ok(writeln!(out, "{}", json!({ "tenants": tenants }))?);
    }
    write_table(&keys(&keyring, now), out)?;
    writeln!(out)?;
    Ok(write_table(&limits(&keyring), out)?)
}

fn keys(keyring: &Keyring, now: SystemTime) -> Vec<[String; 6]> {
    let mut rows = vec![["TENANT", "ID", "STATE", "CREATED", "EXPIRES", "NOTE"].map(String::from)];
    for tenant in keyring.tenants() {
        rows.extend(tenant.keys.iter().map(|key| key_row(tenant, key, now)));
        if tenant.keys.is_empty() {
            rows.push([&tenant.name.0, NONE, "no key", NONE, NONE, ""].map(String::from));
        }
    }
    rows
}

fn key_row(tenant: &Tenant, key: &Key, now: SystemTime) -> [String; 6] {
    let created = key.created.map_or_else(|| NONE.to_owned(), moment::written);
    let note = key.note.clone().unwrap_or_default();
    let state = state(tenant, key, now).to_owned();
    [tenant.name.0.to_string(), key.id.to_string(), state, created, key.end(), note]
}

fn state(tenant: &Tenant, key: &Key, now: SystemTime) -> &'static str {
    match (tenant.is_expired(now), key.is_expired(now)) {
        (false, false) => "valid",
        (false, true) => "expired",
        (true, _) => "tenant expired",
    }
}

/// A line for each tenant: its limits are those of all its keys.
fn limits(keyring: &Keyring) -> Vec<[String; 12]> {
    let head = [
        "TENANT",
        "WEIGHT",
        "LANE",
        "REQUESTS/MIN",
        "TOKENS/MIN",
        "READS",
        "QUEUE",
        "KV",
        "PINS",
        "EXPIRES",
        "MAY",
        "MODELS",
    ];
    let rows = keyring.tenants().map(|tenant| limits_row(tenant));
    std::iter::once(head.map(String::from)).chain(rows).collect()
}

fn limits_row(tenant: &Tenant) -> [String; 12] {
    let Settings { weight, lane, queue_share, act_for, operator, .. } = &tenant.settings;
    let settings = &tenant.settings;
    let number = |limit: Option<u64>| limit.map_or_else(|| NONE.to_owned(), |n| n.to_string());
    let bytes = |limit: Option<u64>| limit.map_or_else(|| NONE.to_owned(), bytes_as_typed);
    let rights = [(*operator, "operator"), (*act_for, "act_for")];
    let rights: Vec<&str> =
        rights.into_iter().filter(|(is_right, _)| *is_right).map(|(_, right)| right).collect();
    [
        tenant.name.0.to_string(),
        weight.to_string(),
        lane.to_string(),
        number(settings.requests_per_minute),
        number(settings.tokens_per_minute),
        number(settings.reads_max.map(u64::from)),
        queue_share.to_string(),
        bytes(settings.kv_bytes),
        bytes(settings.pin_bytes),
        settings.expires.map_or_else(|| "never".to_owned(), moment::written),
        if rights.is_empty() { NONE.to_owned() } else { rights.join(",") },
        settings.models.as_ref().map_or_else(|| "all".to_owned(), |models| models.join(",")),
    ]
}

/// A tenant with all that the file can say of it but hashes; what it does not say is null.
fn json_of(tenant: &Tenant, now: SystemTime) -> Value {
    let settings = &tenant.settings;
    let key = |key: &Key| {
        json!({
            "id": key.id.as_str(),
            "state": state(tenant, key, now),
            "created": key.created.map(moment::written),
            "expires": key.expires.map(moment::written),
            "note": key.note,
        })
    };
    json!({
        "tenant": &*tenant.name.0,
        "weight": settings.weight,
        "lane": settings.lane.as_str(),
        "requests_per_minute": settings.requests_per_minute,
        "tokens_per_minute": settings.tokens_per_minute,
        "reads_max": settings.reads_max,
        "queue_share": settings.queue_share,
        "kv_bytes": settings.kv_bytes,
        "pin_bytes": settings.pin_bytes,
        "models": settings.models,
        "act_for": settings.act_for,
        "operator": settings.operator,
        "expires": settings.expires.map(moment::written),
        "keys": tenant.keys.iter().map(key).collect::<Vec<_>>(),
    })
}

/// Writes cells in columns; the last one is as it is.
fn write_table<const COLUMNS: usize>(
    rows: &[[String; COLUMNS]],
    out: &mut impl Write,
) -> io::Result<()> {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row).take(COLUMNS.saturating_sub(1)) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}  "));
        writeln!(out, "{}", cells.collect::<String>().trim_end())?;
    }
    Ok(())
}
