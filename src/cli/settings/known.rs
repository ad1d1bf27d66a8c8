//! Every setting that `serve` has: its flag, and its table and name in the configuration file.
//!
//! They are read off the command line's own description, so that a new flag is a setting of the file
//! at once, with the same parser.

use std::any::TypeId;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::{Error, ErrorKind};
use clap::{Arg, ArgAction, Command, CommandFactory as _};

use crate::cli::listed::Listed;
use crate::cli::{Cli, causes};
use crate::config::keys::Secret;
use crate::tenants::shown;

/// The flag that names the file, which is the only one that cannot stand in it.
pub(super) const FILE_FLAG: &str = "config";

/// Longest value that a parser's own words may repeat, in bytes.
const ECHO_BYTES_MAX: usize = 200;

/// The table of flags without a heading.
const MODEL: &str = "model";

/// The tables of the file by the headings of the help, in their order in what is shown. A heading that
/// is not here is its own table, in lower case with `_`.
pub(super) const TABLES: [(&str, &str); 10] = [
    ("", MODEL),
    ("The wire", "http"),
    ("The shared store", "store"),
    ("Images, for models that see them", "images"),
    ("Decisions", "decisions"),
    ("The decisio dialect, and tasks", "letters"),
    ("The engine", "engine"),
    ("Scheduling and memory", "scheduler"),
    ("Traces and logs", "telemetry"),
    ("Logs", "telemetry"),
];

/// One setting.
#[derive(Debug, Clone)]
pub(super) struct Known {
    arg: Arg,
    /// The flag without its dashes.
    pub(super) long: String,
    /// Its environment variable.
    pub(super) variable: String,
    /// Its table in the file.
    pub(super) table: String,
    /// Its name there.
    pub(super) name: String,
}

/// All settings, table by table.
pub(super) fn all() -> Vec<Known> {
    let command = Cli::command();
    let serve = command.find_subcommand("serve").into_iter();
    let args = serve.flat_map(Command::get_arguments).chain(command.get_arguments());
    let mut known: Vec<Known> = args.filter_map(Known::of).collect();
    let rank = |table: &str| TABLES.iter().position(|(_, known)| *known == table);
    // Stable: within a table they stay in the order of the help.
    known.sort_by_key(|known| (rank(&known.table).unwrap_or(TABLES.len()), known.table.clone()));
    known
}

fn table(heading: &str) -> String {
    let found = TABLES.iter().find(|(known, _)| *known == heading);
    found.map_or_else(
        || {
            let words = heading.split(|c: char| !c.is_ascii_alphanumeric());
            let words = words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase);
            words.collect::<Vec<_>>().join("_")
        },
        |(_, table)| (*table).to_owned(),
    )
}

impl Known {
    /// `None` of what is no setting.
    fn of(arg: &Arg) -> Option<Self> {
        let long = arg.get_long().filter(|long| *long != FILE_FLAG)?;
        Some(Self {
            arg: arg.clone(),
            long: long.to_owned(),
            variable: arg.get_env()?.to_string_lossy().into_owned(),
            table: table(arg.get_help_heading().unwrap_or_default()),
            name: long.replace('-', "_"),
        })
    }

    /// Where it stands in the file.
    pub(super) fn place(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    /// By what clap knows it.
    pub(super) fn id(&self) -> &str {
        self.arg.get_id().as_str()
    }

    /// Whether it may be given several times.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.arg.get_action(), ArgAction::Append)
    }

    /// Whether its flag has no value.
    pub(super) fn is_switch(&self) -> bool {
        matches!(self.arg.get_action(), ArgAction::SetTrue)
    }

    /// Whether it is said with `on` and `off`.
    pub(super) fn is_on_off(&self) -> bool {
        let values = self.arg.get_possible_values();
        !values.is_empty() && values.iter().all(|value| ["on", "off"].contains(&value.get_name()))
    }

    /// Whether it is never shown: the help does not show its variable's value either.
    pub(super) fn is_secret(&self) -> bool {
        self.arg.is_hide_env_values_set()
    }

    /// Whether every text can be its value, so that none of them is a number.
    pub(super) fn is_text(&self) -> bool {
        let parsed = self.arg.get_value_parser().type_id();
        let texts = [
            TypeId::of::<String>(),
            TypeId::of::<PathBuf>(),
            TypeId::of::<Listed>(),
            TypeId::of::<Secret>(),
        ];
        texts.into_iter().any(|text| parsed == text)
    }

    /// Whether its value is a floating-point number.
    pub(super) fn is_float(&self) -> bool {
        self.arg.get_value_parser().type_id() == TypeId::of::<f64>()
    }

    /// How its value is called in the help.
    pub(super) fn value_name(&self) -> String {
        let named = self.arg.get_value_names().and_then(|names| names.first());
        named.map_or_else(|| self.name.to_uppercase(), ToString::to_string)
    }

    /// What the help says of it, and what it says of its default.
    pub(super) fn help(&self) -> (String, Option<String>) {
        let help = self.arg.get_help().map(ToString::to_string).unwrap_or_default();
        let split = help.rsplit_once("[default: ").and_then(|(meaning, default)| {
            Some((meaning.trim_end().to_owned(), default.trim_end().strip_suffix(']')?.to_owned()))
        });
        let own = self.arg.get_default_values().first();
        match (split, own) {
            (Some((meaning, default)), _) => (meaning, Some(default)),
            (None, Some(default)) => (help, Some(default.to_string_lossy().into_owned())),
            (None, None) if self.is_switch() => (help, Some("false".to_owned())),
            (None, None) => (help, None),
        }
    }
}

/// `--flag=value`, which takes every value as one.
pub(super) fn assigned(long: &str, value: &OsStr) -> OsString {
    let mut text = OsString::from(format!("--{long}="));
    text.push(value);
    text
}

/// The command line in which every value is only text: what was typed can be looked at before any of it
/// is refused.
pub(super) fn loose(command: Command) -> Command {
    command.mut_args(|arg| arg.value_parser(clap::value_parser!(OsString))).mut_subcommands(loose)
}

/// The command line without environment, in which flags without a value have one.
pub(super) fn plain(command: Command) -> Command {
    let plain_arg = |arg: Arg| {
        let arg = arg.env(None::<&'static str>);
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            return arg.action(ArgAction::Set).num_args(1).default_value("false");
        }
        arg
    };
    command.mut_args(plain_arg).mut_subcommands(plain)
}

/// Asks the flags' own parsers whether they take a text.
#[derive(Debug)]
pub(super) struct Checker(Command);

impl Checker {
    pub(super) fn new() -> Self {
        Self(plain(Cli::command()))
    }

    /// # Errors
    /// What is wrong with the text; a secret is not repeated.
    pub(super) fn check(&mut self, known: &Known, text: &OsStr) -> Result<(), String> {
        let typed = ["docket".into(), "serve".into(), assigned(&known.long, text)];
        match self.0.try_get_matches_from_mut(typed) {
            Err(error) if is_of_the_value(&error) => Err(reason(known, text, &error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// What flags say of each other is asked when all are there.
fn is_of_the_value(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument)
}

fn reason(known: &Known, text: &OsStr, error: &Error) -> String {
    if known.is_secret() {
        return "the value, which is not shown, cannot be read".to_owned();
    }
    let text = text.to_string_lossy();
    let values = known.arg.get_possible_values();
    if error.kind() == ErrorKind::InvalidValue && !values.is_empty() {
        let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        return format!("{:?} is none of {}", shown(&text), names.join(", "));
    }
    let told = match error.source() {
        Some(source) => {
            causes::number(source).map_or_else(|| causes::range(&source.to_string()), str::to_owned)
        }
        None => first_line(&error.to_string()).to_owned(),
    };
    if text.is_empty() || !told.contains(&*text) {
        return format!("{:?}: {told}", shown(&text));
    }
    if text.len() > ECHO_BYTES_MAX { shown(&told) } else { told }
}

fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(long: &str) -> Known {
        all().into_iter().find(|known| known.long == long).unwrap()
    }

    #[test]
    fn every_heading_of_the_map_is_one_of_the_help() {
        let known = all();
        for (heading, table) in TABLES {
            assert!(known.iter().any(|known| known.table == table), "{heading:?}: {table}");
        }
    }

    #[test]
    fn tables_follow_each_other_and_names_are_unique() {
        let known = all();
        let mut tables: Vec<&str> = known.iter().map(|known| known.table.as_str()).collect();
        tables.dedup();
        let count = tables.len();
        tables.sort_unstable();
        tables.dedup();
        assert_eq!((tables.len(), known.len() > 60), (count, true));
        let mut names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), known.len());
    }

    #[test]
    fn a_new_heading_is_a_table_of_its_own() {
        assert_eq!(table("Metrics, and traces"), "metrics_and_traces");
        assert_eq!(table("The wire"), "http");
    }

    #[test]
    fn a_value_is_refused_in_the_words_of_its_parser() {
        let mut checker = Checker::new();
        let mut told = |long: &str, text: &str| checker.check(&named(long), text.as_ref());
        assert_eq!(told("port", "8000"), Ok(()));
        assert_eq!(told("offline", "yes"), Ok(()));
        assert_eq!(told("port", "x").unwrap_err(), "\"x\": a whole number is wanted");
        assert!(told("port", "70000").unwrap_err().contains("70000 is not within 0 to 65535"));
        assert!(told("body-limit", "big").unwrap_err().starts_with("\"big\" is no size; write"));
        assert!(told("engine", "gpu").unwrap_err().contains("is none of auto, cpu, reference"));
        assert!(told("offline", "maybe").unwrap_err().contains("neither true nor false"));
        assert!(told("keys", "").unwrap_err().contains("value is required"));
        let long = "x".repeat(10_000);
        assert!(told("body-limit", &long).unwrap_err().len() < 600);
    }

    #[test]
    fn a_secret_is_not_repeated_and_texts_are_no_numbers() {
        assert!(named("api-key").is_secret() && !named("keys").is_secret());
        for (long, is_text) in [("host", true), ("keys", true), ("served-name", true)] {
            assert_eq!(named(long).is_text(), is_text, "{long}");
        }
        assert!(!named("port").is_text() && !named("body-limit").is_text());
        assert!(named("tasks").is_on_off() && !named("engine").is_on_off());
    }

    #[test]
    fn the_default_is_split_from_the_help() {
        let told = |long: &str| named(long).help().1;
        assert_eq!(told("port").as_deref(), Some("8000"));
        assert_eq!(told("log").as_deref(), Some("text"));
        assert_eq!(told("offline").as_deref(), Some("false"));
        assert_eq!(told("abstain-option"), None);
        assert!(!named("port").help().0.contains("default"));
    }
}
