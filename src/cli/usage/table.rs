//! Usage as a table: a line for each tenant, or for each day of one.

use std::io::{self, Write};

use serde_json::Value;

use crate::usage::Counts;

/// Cells, line by line; the first line is the head.
pub(super) type Table = Vec<Vec<String>>;

/// Heads of the counts, in the order of [`Counts::NAMES`].
const HEADS: [&str; 9] = [
    "REQUESTS",
    "ANSWERED",
    "REFUSED",
    "FAILED",
    "QUESTIONS",
    "READS",
    "COMPUTED",
    "CACHED",
    "IMAGES",
];

/// Most characters of a name.
const NAME_CHARS_MAX: usize = 140;

/// All tenants, each ahead of its sub-tenants, and their sum; `shown` is `total` or `recent`.
///
/// # Errors
/// What is missing.
pub(super) fn of_all(usage: &Value, shown: &str) -> Result<Table, String> {
    let mut table = vec![head("TENANT")];
    let tenants = usage["tenants"].as_array().ok_or("`tenants` is missing")?;
    for tenant in tenants {
        table.push(tenant_line(tenant, shown)?);
    }
    table.push(line("all", &usage[shown], ["", ""])?);
    Ok(table)
}

/// The days of one tenant, their sum or that of all days, and its sub-tenants.
///
/// # Errors
/// What is missing.
pub(super) fn of_one(usage: &Value, shown: &str) -> Result<Table, String> {
    let mut table = vec![head("DAY")];
    for day in usage["days"].as_array().ok_or("`days` is missing")? {
        table.push(line(&name(&day["day"])?, day, ["", ""])?);
    }
    table.push(tenant_line(usage, shown)?);
    for sub_tenant in usage["sub_tenants"].as_array().into_iter().flatten() {
        table.push(tenant_line(sub_tenant, shown)?);
    }
    Ok(table)
}

/// Writes a table: the first column to the left, numbers to the right, the last as it is.
///
/// # Errors
/// The writer's.
pub(super) fn write(table: &Table, out: &mut impl Write) -> io::Result<()> {
    let width = |column: usize| {
        table.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
    };
    // The name, the counts and the hash.
    let widths: Vec<usize> = (0..HEADS.len() + 2).map_while(width).collect();
    for cells in table {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let padded = match (column, widths.get(column)) {
                (0, Some(width)) => format!("{cell:width$}"),
                (_, Some(width)) => format!("  {cell:>width$}"),
                (_, None) => format!("  {cell}"),
            };
            line.push_str(&padded);
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn head(first: &str) -> Vec<String> {
    [first].into_iter().chain(HEADS).chain(["HASH", "SINCE"]).map(str::to_owned).collect()
}

fn tenant_line(usage: &Value, shown: &str) -> Result<Vec<String>, String> {
    let since = usage["since"].as_str().unwrap_or("never");
    // A server of an older version gives none.
    let hash = usage["hash"].as_str().unwrap_or_default();
    let since = since.get(..10).unwrap_or(since);
    line(&name(&usage["tenant"])?, &usage[shown], [hash, since])
}

fn line(first: &str, counts: &Value, last: [&str; 2]) -> Result<Vec<String>, String> {
    let mut cells = vec![first.to_owned()];
    for name in Counts::NAMES {
        let count = counts[name].as_u64();
        cells.push(count.ok_or_else(|| format!("`{name}` is missing"))?.to_string());
    }
    cells.extend(last.map(shown));
    Ok(cells)
}

fn name(value: &Value) -> Result<String, String> {
    value.as_str().map(shown).ok_or_else(|| "a name is missing".to_owned())
}

/// A text of the network on one line, without what a terminal would act upon.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() { c } else { '?' };
    text.chars().take(NAME_CHARS_MAX).map(plain).collect()
}
