//! `docket models`: what is known by name, what is installed, and whether it is whole.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use indicatif::HumanBytes;
use thiserror::Error;

use super::switch::switch;
use crate::models::catalogue::CATALOGUE;
use crate::models::store::Record;
use crate::models::{ModelRef, PullError, Store, Thoroughness};

/// What to list.
#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// Hash every installed file and compare
    #[arg(long, env = "DOCKET_VERIFY", value_parser = switch)]
    pub verify: bool,
}

/// Why the list is not one to rely on.
#[derive(Debug, Error)]
pub enum ModelsError {
    /// Files are not what was installed.
    #[error("{0} of the installed models is damaged or unreadable; `docket pull NAME` replaces it")]
    Damaged(usize),
    /// The list could not be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

/// One line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    size: String,
    installed: String,
    licence: String,
    note: String,
}

/// Prints the catalogue and whatever else is installed.
///
/// # Errors
/// [`ModelsError::Damaged`] when an installed model is not whole.
pub fn run(arguments: &ModelsArgs, home: &Path, out: &mut impl Write) -> Result<(), ModelsError> {
    let store = Store::new(home);
    let thoroughness = if arguments.verify { Thoroughness::Full } else { Thoroughness::Quick };
    let (rows, damaged) = rows(&store, thoroughness);
    write_table(&rows, out)?;
    writeln!(out, "\nthe models are in {}", store.home().display())?;
    if damaged > 0 { Err(ModelsError::Damaged(damaged)) } else { Ok(()) }
}

fn rows(store: &Store, thoroughness: Thoroughness) -> (Vec<Row>, usize) {
    let mut damaged = 0;
    let mut installed = |slug: &str| {
        let text = state(&store.find(slug, thoroughness), thoroughness);
        damaged += usize::from(text == DAMAGED);
        text.to_owned()
    };
    let mut rows: Vec<Row> = CATALOGUE
        .iter()
        .map(|model| Row {
            name: model.name.to_owned(),
            size: HumanBytes(model.bytes).to_string(),
            installed: installed(&ModelRef::Catalogue(model).slug()),
            licence: model.licence.to_owned(),
            note: format!("{}; {}", model.title, model.note),
        })
        .collect();
    for (slug, record) in store.installed() {
        if !CATALOGUE.iter().any(|model| model.name == record.name) {
            rows.push(other_row(&record, installed(&slug)));
        }
    }
    (rows, damaged)
}

const DAMAGED: &str = "damaged";

fn state(
    found: &Result<Option<impl Sized>, PullError>,
    thoroughness: Thoroughness,
) -> &'static str {
    match (found, thoroughness) {
        (Ok(None), _) => "no",
        (Ok(Some(_)), Thoroughness::Quick) => "yes",
        (Ok(Some(_)), Thoroughness::Full) => "verified",
        (Err(_), _) => DAMAGED,
    }
}

/// A model that is installed from elsewhere.
fn other_row(record: &Record, installed: String) -> Row {
    let bytes = record.files.iter().map(|file| file.bytes).sum();
    Row {
        name: record.name.clone(),
        size: HumanBytes(bytes).to_string(),
        installed,
        licence: "see its page".to_owned(),
        note: "not of the catalogue".to_owned(),
    }
}

fn write_table(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let head = Row {
        name: "NAME".to_owned(),
        size: "SIZE".to_owned(),
        installed: "INSTALLED".to_owned(),
        licence: "LICENCE".to_owned(),
        note: "NOTE".to_owned(),
    };
    let lines = || std::iter::once(&head).chain(rows);
    let width = |cell: fn(&Row) -> &String| lines().map(|row| cell(row).len()).max().unwrap_or(0);
    let (name, size) = (width(|row| &row.name), width(|row| &row.size));
    let (installed, licence) = (width(|row| &row.installed), width(|row| &row.licence));
    for row in lines() {
        writeln!(
            out,
            "{:name$}  {:>size$}  {:installed$}  {:licence$}  {}",
            row.name, row.size, row.installed, row.licence, row.note
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn list(home: &Path, verify: bool) -> (String, Result<(), ModelsError>) {
        let mut out = Vec::new();
        let outcome = run(&ModelsArgs { verify }, home, &mut out);
        (String::from_utf8(out).unwrap(), outcome)
    }

    #[test]
    fn the_catalogue_is_listed_with_what_is_to_be_known() {
        let home = TempDir::new().unwrap();
        let (text, outcome) = list(home.path(), false);
        outcome.unwrap();
        let line =
            |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(line("smollm2:135m").contains("carry no information"), "{text}");
        assert!(line("qwen2.5-coder:1.5b").contains("1.04 GiB"), "{text}");
        assert!(line("qwen2.5-coder:0.5b").contains("Apache-2.0"), "{text}");
    }

    #[test]
    fn a_damaged_model_is_said_to_be_damaged() {
        let home = TempDir::new().unwrap();
        let folder = home.path().join("models/hf-a--b");
        std::fs::create_dir_all(&folder).unwrap();
        let record = r#"{"name":"hf:a/b","entry":"","files":[
            {"file":"config.json","bytes":3,"sha256":"0","changed_ns":0}]}"#;
        std::fs::write(folder.join("installed.json"), record).unwrap();
        let (text, outcome) = list(home.path(), true);
        assert!(text.contains("hf:a/b") && text.contains("damaged"), "{text}");
        assert!(matches!(outcome, Err(ModelsError::Damaged(1))));
    }
}
