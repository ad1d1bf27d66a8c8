//! Settings in effect, as a file that can be given to a server, and as JSON for `/health`; and the file
//! in which each of them is explained. Secrets are in none of these.

use std::ffi::OsString;
use std::fmt::Write as _;

use serde_json::{Map, Value as Json};
use toml_edit::{Array, InlineTable, Key, Value};

use super::known::{self, Checker, Known};
use super::{Chosen, Settings, Source};
use crate::cli::switch::switch;
use crate::config::profiles::{OneOrEach, ProfileSettings, Profiles};
use crate::config::{Config, HttpConfig};
use crate::models::catalogue::DEFAULT_MODEL;

/// Longest line of the explained file, in characters.
const LINE_CHARS_MAX: usize = 100;

/// How the explained file begins.
const EXAMPLE_HEAD: &str = "\
# Every setting of `docket serve`, with what holds where nothing is said. A line that begins with #
# and a name is a setting: take the # away to set it. `docket config example` prints this file.
#
# A flag wins over its environment variable (--kv-bytes, DOCKET_KV_BYTES), that over this file, and
# this file over the default. A server reads it with --config FILE or DOCKET_CONFIG, and `docket config
# check --config FILE` tells all its faults at once.
";

/// How it ends.
const EXAMPLE_END: &str = "
# Profiles: settings that a request asks for by name; what one leaves out is the model's own.

#[profiles.fast]
#layout = \"bare\"
#temperature = { noul = 1.83 }
#samples = 1
";

/// Settings in effect, table by table.
#[derive(Debug)]
pub struct Shown {
    tables: Vec<(String, Vec<Line>)>,
    profiles: Profiles,
}

#[derive(Debug)]
struct Line {
    name: String,
    value: Told,
    source: String,
}

/// What is told of a value.
#[derive(Debug)]
enum Told {
    /// It.
    Value(Value),
    /// That it is none, and what then holds.
    Unset(String),
    /// That there are so many, and nothing of them.
    Secret(usize),
}

impl Settings {
    /// The settings as they are in effect in `config`, which is what they mean.
    pub fn shown(&self, config: &Config) -> Shown {
        let mut checker = Checker::new();
        let mut tables: Vec<(String, Vec<Line>)> = Vec::new();
        for chosen in &self.chosen {
            let line = chosen.line(config, &mut checker);
            match tables.last_mut() {
                Some((table, lines)) if *table == chosen.known.table => lines.push(line),
                Some(_) | None => tables.push((chosen.known.table.clone(), vec![line])),
            }
        }
        Shown { tables, profiles: config.decision.profiles.clone() }
    }
}

impl Chosen {
    fn line(&self, config: &Config, checker: &mut Checker) -> Line {
        let known = &self.known;
        let source = match self.source {
            Source::Flag => "flag",
            Source::Environment => &known.variable,
            Source::File => "file",
            Source::Default => "default",
        };
        let (name, source) = (known.name.clone(), source.to_owned());
        if known.is_secret() && !self.texts.is_empty() {
            return Line { name, value: Told::Secret(self.texts.len()), source };
        }
        let (texts, otherwise) = match self.source {
            Source::Default => {
                let prose = known.help().1.unwrap_or_else(|| "nothing".to_owned());
                (computed(config, known).or_else(|| default(known, checker)), prose)
            }
            Source::Flag | Source::Environment | Source::File => {
                (Some(self.texts.clone()), "a value that is no Unicode".to_owned())
            }
        };
        let value = texts.and_then(|texts| value(known, &texts));
        Line { name, value: value.map_or(Told::Unset(otherwise), Told::Value), source }
    }
}

/// Defaults that depend on other settings, on the machine or on what OpenTelemetry's variables say.
fn computed(config: &Config, known: &Known) -> Option<Vec<OsString>> {
    let model = &config.model;
    match known.long.as_str() {
        "home" => Some(vec![model.home.clone().into()]),
        "model" => Some(vec![model.model.to_string().into()]),
        "served-name" => Some(model.served_names.iter().map(OsString::from).collect()),
        "threads" => Some(vec![config.engine.threads.to_string().into()]),
        "chunk-tokens" => Some(vec![config.scheduler.chunk_tokens.to_string().into()]),
        "step-tokens" => Some(vec![config.scheduler.step_tokens.to_string().into()]),
        "rows-max" => Some(vec![config.scheduler.rows_max.to_string().into()]),
        "otlp-endpoint" => Some(vec![config.traces.endpoint.as_deref().unwrap_or("off").into()]),
        _ => default_of_text(known),
    }
}

/// Defaults that the help's words cannot be told from.
fn default_of_text(known: &Known) -> Option<Vec<OsString>> {
    match known.long.as_str() {
        "model" => Some(vec![DEFAULT_MODEL.into()]),
        "host" => Some(vec![HttpConfig::default().host.into()]),
        _ => None,
    }
}

/// The default that the help promises, where it is a value and no words about one.
fn default(known: &Known, checker: &mut Checker) -> Option<Vec<OsString>> {
    let prose = known.help().1.filter(|_| !known.is_text())?;
    let first = prose.split([',', ';']).next().unwrap_or_default();
    let is_value = |text: &&str| checker.check(known, text.as_ref()).is_ok();
    let text = [prose.as_str(), first].into_iter().find(is_value)?;
    Some(vec![text.into()])
}

/// As the file has it; `None` of what is none, or is no Unicode and can be said by a flag only.
fn value(known: &Known, texts: &[OsString]) -> Option<Value> {
    let texts: Vec<&str> = texts.iter().map(|text| text.to_str()).collect::<Option<_>>()?;
    if known.is_list() {
        return Some(texts.into_iter().collect::<Array>().into());
    }
    texts.first().map(|text| scalar(known, text))
}

fn scalar(known: &Known, text: &str) -> Value {
    let is_on = switch(text).ok().filter(|_| known.is_switch());
    let whole = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    let number = text.parse::<f64>().ok().filter(|_| known.is_float());
    if let Some(is_on) = is_on {
        return is_on.into();
    }
    match (number, whole.filter(|_| !known.is_text())) {
        (Some(number), _) => number.into(),
        (None, Some(whole)) => whole.into(),
        (None, None) => text.into(),
    }
}

impl Shown {
    /// A configuration file that means the same, but for its secrets: each line says where its setting
    /// was said.
    pub fn to_toml(&self) -> String {
        let line = |Line { name, value, source }: &Line| match value {
            Told::Value(value) => format!("{name} = {value}  # {source}\n"),
            Told::Unset(prose) => format!("# {name} = {prose}  # {source}\n"),
            Told::Secret(count) => format!("# {name} = {count} that are not shown  # {source}\n"),
        };
        let mut text = "# Settings in effect, each with where it was said.\n".to_owned();
        for (table, lines) in &self.tables {
            text.extend(["\n[", table, "]\n"]);
            text.extend(lines.iter().map(line));
        }
        text.extend(self.profiles.iter().map(|(name, settings)| profile(name, settings)));
        text
    }

    /// An object of tables; what is not set is null, and secrets are left out.
    pub fn to_json(&self) -> Json {
        let member = |line: &Line| match &line.value {
            Told::Value(value) => Some((line.name.clone(), json(value))),
            Told::Unset(_) => Some((line.name.clone(), Json::Null)),
            Told::Secret(_) => None,
        };
        let table = |(name, lines): &(String, Vec<Line>)| {
            (name.clone(), lines.iter().filter_map(member).collect::<Map<_, _>>().into())
        };
        self.tables.iter().map(table).collect::<Map<_, _>>().into()
    }
}

fn json(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(is_on) => (*is_on.value()).into(),
        Value::Array(values) => values.iter().map(json).collect(),
        // No setting has one.
        Value::Datetime(_) | Value::InlineTable(_) => Json::Null,
    }
}

fn profile(name: &str, settings: &ProfileSettings) -> String {
    let mut text = format!("\n[profiles.{}]\n", Key::new(name));
    let fields = [
        ("layout", settings.layout.as_deref().map(Value::from)),
        ("temperature", settings.temperature.map(|set| each(set, Value::from))),
        ("samples", settings.samples.map(|set| each(set, |count| i64::from(count).into()))),
    ];
    for (field, value) in fields {
        // Writing to a text cannot fail.
        let _ = value.map(|value| writeln!(text, "{field} = {value}  # file"));
    }
    text
}

fn each<T: Copy>(set: OneOrEach<T>, value: impl Fn(T) -> Value) -> Value {
    match set {
        OneOrEach::One(one) => value(one),
        OneOrEach::Each(each) => {
            let kinds = [("noul", each.noul), ("choice", each.choice), ("score", each.score)];
            let set = kinds.into_iter().filter_map(|(kind, set)| Some((kind, value(set?))));
            set.collect::<InlineTable>().into()
        }
    }
}

/// A configuration file with every setting, explained, and none of them set.
pub fn example() -> String {
    let mut checker = Checker::new();
    let mut text = EXAMPLE_HEAD.to_owned();
    let mut table = String::new();
    for known in known::all() {
        if known.table != table {
            table.clone_from(&known.table);
            text.extend(["\n[", &table, "]\n"]);
        }
        text += &explained(&known, &mut checker);
    }
    text + EXAMPLE_END
}

fn explained(known: &Known, checker: &mut Checker) -> String {
    let (meaning, default_prose) = known.help();
    let (long, variable) = (&known.long, &known.variable);
    let head = if known.is_list() { "An array, or one. " } else { "" };
    let text = wrapped(&format!("{meaning}. {head}--{long}, {variable}"));
    let texts = default_of_text(known).or_else(|| default(known, checker));
    let value = texts.and_then(|texts| value(known, &texts));
    let setting = match (value, default_prose) {
        (Some(value), _) => format!("#{} = {value}\n", known.name),
        (None, prose) => {
            let prose = prose.unwrap_or_else(|| "none".to_owned());
            format!("# {} = {} (default: {prose})\n", known.name, known.value_name())
        }
    };
    text + &setting
}

/// A comment of lines that are not too long, after an empty one.
fn wrapped(text: &str) -> String {
    let mut lines = "\n".to_owned();
    let mut line = "#".to_owned();
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > LINE_CHARS_MAX {
            lines += &line;
            lines.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line += word;
    }
    lines + &line + "\n"
}
