//! The settings of a server from where they are said: flags, environment, configuration file, defaults.
//!
//! What was typed is first taken as text, then what the environment and the file say is put under it,
//! and each value is asked of its flag's own parser. So all faults of all values are known before
//! anything is refused, and every flag is a setting of the file without code of its own.

mod environment;
mod file;
mod known;
mod shown;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser as _};

use self::file::FileSettings;
use self::known::{Checker, FILE_FLAG, Known, assigned, loose, plain};
use super::Cli;
use super::serve::ServeArgs;
use crate::config::profiles::Profiles;
use crate::config::{self, Config};
use crate::tenants::Fault;

pub use self::shown::{Shown, example};

/// The argument without a flag that is a setting all the same: it names the model.
const POSITIONAL: &str = "positional";

/// By what clap knows the flag that names the file.
const FILE_ID: &str = "config_file";

/// Most faults that are told at once; the last line says how many more there are.
const FAULTS_MAX: usize = 100;

/// What was typed, and for commands about a server its settings.
#[derive(Debug)]
pub struct Typed {
    /// The command and its arguments, those of the environment and the file among them.
    pub cli: Cli,
    /// Where the settings of a server come from; empty for other commands.
    pub settings: Settings,
}

/// The settings of a server, each with where it was said.
#[derive(Debug, Default)]
pub struct Settings {
    chosen: Vec<Chosen>,
    profiles: Profiles,
    faults: Vec<Fault>,
    /// Flags whose values are among the faults.
    failed: Vec<String>,
    /// The configuration file.
    path: Option<PathBuf>,
    /// What is to be said of the file's rights.
    warning: Option<String>,
    /// Variables that begin as docket's do and are none of them.
    unknown: Vec<Fault>,
}

/// One setting.
struct Chosen {
    known: Known,
    source: Source,
    /// As typed; none where the default holds.
    texts: Vec<OsString>,
}

/// Where a setting was said; what stands first wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Flag,
    Environment,
    File,
    Default,
}

/// Reads a command line.
///
/// # Errors
/// What is wrong with its form, or a call for help. Values of settings that cannot be are no error
/// here: they come with all other faults from [`Settings::config`].
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Typed, clap::Error> {
    let line: Vec<OsString> = line.into_iter().collect();
    let typed = loose(Cli::command()).try_get_matches_from(&line);
    // In the strict one's words, which knows what values may be.
    let typed = typed.map_err(|error| Cli::try_parse_from(&line).err().unwrap_or(error))?;
    let Some((words, typed)) = of_server(&typed) else {
        let cli = Cli::try_parse_from(&line)?;
        return Ok(Typed { cli, settings: Settings::default() });
    };
    let settings = Settings::of(typed);
    let line = settings.line(words, typed);
    let mut command = plain(Cli::command());
    let mut matches = command.try_get_matches_from_mut(line)?;
    let cli = Cli::from_arg_matches_mut(&mut matches);
    let cli = cli.map_err(|error| error.format(&mut command))?;
    Ok(Typed { cli, settings })
}

/// The words of a command that has the settings of a server, and what was typed behind them.
fn of_server(typed: &ArgMatches) -> Option<(Vec<&str>, &ArgMatches)> {
    match typed.subcommand()? {
        (serve @ "serve", typed) => Some((vec![serve], typed)),
        (config @ "config", typed) => match typed.subcommand()? {
            (command @ ("check" | "show"), typed) => Some((vec![config, command], typed)),
            _ => None,
        },
        _ => None,
    }
}

impl Settings {
    fn of(typed: &ArgMatches) -> Self {
        let known = known::all();
        let mut checker = Checker::new();
        let (path, from) = path_of(typed);
        let mut read = match &path {
            Some(path) => file::read((path, from), &known, &mut checker),
            None => FileSettings::default(),
        };
        let mut settings = Self {
            profiles: std::mem::take(&mut read.profiles),
            faults: std::mem::take(&mut read.faults),
            failed: std::mem::take(&mut read.failed),
            warning: read.warning.take(),
            unknown: environment::unknown(std::env::vars_os().map(|(name, _)| name)),
            path,
            chosen: Vec::new(),
        };
        for known in known {
            let mut chosen = Chosen::of(known, typed, &mut read);
            if matches!(chosen.source, Source::Flag | Source::Environment) {
                settings.take(&mut chosen, &mut checker);
            }
            settings.chosen.push(chosen);
        }
        settings
    }

    /// Asks the parser of a typed value, and leaves the default in place of one that it refuses.
    fn take(&mut self, chosen: &mut Chosen, checker: &mut Checker) {
        let refused = |text: &OsString| checker.check(&chosen.known, text).err();
        let messages: Vec<String> = chosen.texts.iter().filter_map(refused).collect();
        if messages.is_empty() {
            return;
        }
        let place = chosen.place();
        let fault = |message: String| Fault::new(place.clone(), message);
        self.faults.extend(messages.into_iter().map(fault));
        self.failed.push(chosen.known.long.clone());
        (chosen.source, chosen.texts) = (Source::Default, Vec::new());
    }

    /// A command line that says all of it by flags.
    fn line(&self, words: Vec<&str>, typed: &ArgMatches) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec!["docket".into()];
        line.extend(words.into_iter().map(OsString::from));
        if let Some(path) = &self.path {
            line.push(assigned(FILE_FLAG, path.as_os_str()));
        }
        for Chosen { known, texts, .. } in &self.chosen {
            line.extend(texts.iter().map(|text| assigned(&known.long, text)));
        }
        if is_named_twice(typed) {
            line.extend(["--".into()].into_iter().chain(raw(typed, POSITIONAL)));
        }
        line
    }

    /// The configuration that they mean, with the model store at `home`.
    ///
    /// # Errors
    /// All faults, each with its place: the name in the file, the variable, or the flag.
    pub fn config(&self, arguments: ServeArgs, home: PathBuf) -> Result<Config, Vec<Fault>> {
        let (config, found) = self.read(arguments, home);
        let faults = self.all(found);
        if faults.is_empty() { Ok(config) } else { Err(bounded(faults)) }
    }

    /// Whether a server could have them: what [`Settings::config`] tells, what `further` finds, and
    /// variables that set nothing.
    ///
    /// * `further`: looks at the configuration as far as it can be read, and is told whether that is
    ///   without a fault. What it finds of a flag that is a fault already is not told again.
    ///
    /// # Errors
    /// All faults, each with its place.
    pub fn check(
        &self,
        arguments: ServeArgs,
        home: PathBuf,
        further: impl FnOnce(&Config, bool) -> Vec<config::Fault>,
    ) -> Result<(), Vec<Fault>> {
        let (config, mut found) = self.read(arguments, home);
        let is_sound = found.is_empty() && self.faults.is_empty();
        let told: Vec<&str> = found.iter().map(|fault| fault.flag).collect();
        let is_new = |fault: &config::Fault| !told.contains(&fault.flag) && !self.follows(fault);
        let further: Vec<_> = further(&config, is_sound).into_iter().filter(is_new).collect();
        found.extend(further);
        let mut faults = self.all(found);
        faults.extend(self.unknown.iter().cloned());
        if faults.is_empty() { Ok(()) } else { Err(bounded(faults)) }
    }

    /// The configuration as far as it can be read, and what is wrong beside single values.
    fn read(&self, arguments: ServeArgs, home: PathBuf) -> (Config, Vec<config::Fault>) {
        let (mut config, config::Faults(mut found)) = arguments.read(home);
        config.decision.profiles = self.profiles.clone();
        found.retain(|fault| !self.follows(fault));
        (config, found)
    }

    /// The faults of single values with these, each with its place.
    fn all(&self, found: Vec<config::Fault>) -> Vec<Fault> {
        let found = found.into_iter().map(|fault| self.placed(fault));
        self.faults.iter().cloned().chain(found).collect()
    }

    /// What an operator should know before a server starts: rights of the file, and variables that set
    /// nothing.
    pub fn warnings(&self, with_variables: bool) -> Vec<String> {
        let unknown = self.unknown.iter().filter(|_| with_variables).map(Fault::to_string);
        self.warning.iter().cloned().chain(unknown).collect()
    }

    /// Whether a fault is of a default that stands in for a value which cannot be read, or of another
    /// setting beside it: nobody asked for that.
    fn follows(&self, fault: &config::Fault) -> bool {
        let flags = self.failed.iter().map(|long| format!("--{long}"));
        let mut words = fault.message.split([' ', ',', ';']).chain([fault.flag]);
        let flags: Vec<String> = flags.collect();
        words.any(|word| flags.iter().any(|flag| flag == word))
    }

    fn placed(&self, fault: config::Fault) -> Fault {
        let long = fault.flag.trim_start_matches('-');
        let chosen = self.chosen.iter().find(|chosen| chosen.known.long == long);
        let place = chosen.map_or_else(|| fault.flag.to_owned(), Chosen::place);
        Fault::new(place, fault.message)
    }

    /// How many of them come from where, in a line.
    pub fn summary(&self) -> String {
        let count = |source: Source| self.chosen.iter().filter(|c| c.source == source).count();
        let file = self.path.as_deref().map_or_else(
            || "there is no file".to_owned(),
            |path| format!("{} from {}", count(Source::File), path.display()),
        );
        format!(
            "these settings can be: {} by flag, {} from the environment, {file}, {} by default",
            count(Source::Flag),
            count(Source::Environment),
            count(Source::Default),
        )
    }
}

/// The first faults, and how many more there are.
fn bounded(mut faults: Vec<Fault>) -> Vec<Fault> {
    let more = faults.len().saturating_sub(FAULTS_MAX);
    if more > 0 {
        faults.truncate(FAULTS_MAX);
        faults.push(Fault::new("and", format!("{more} more faults")));
    }
    faults
}

/// The configuration file that was named, and by what.
fn path_of(typed: &ArgMatches) -> (Option<PathBuf>, &'static str) {
    let is_flag = typed.value_source(FILE_ID) == Some(ValueSource::CommandLine);
    let from = if is_flag { "--config" } else { "DOCKET_CONFIG" };
    // A variable that is set to nothing names no file.
    let named = raw(typed, FILE_ID).into_iter().next().filter(|path| is_flag || !path.is_empty());
    (named.map(PathBuf::from), from)
}

/// Whether the model is named both ways, which is for `ServeArgs` to judge.
fn is_named_twice(typed: &ArgMatches) -> bool {
    let is_flag = typed.value_source("model") == Some(ValueSource::CommandLine);
    is_flag && typed.value_source(POSITIONAL).is_some()
}

fn raw(typed: &ArgMatches, id: &str) -> Vec<OsString> {
    typed.get_raw(id).into_iter().flatten().map(OsString::from).collect()
}

impl fmt::Debug for Chosen {
    /// Without its texts, which may be keys.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({:?})", self.known.long, self.source)
    }
}

impl Chosen {
    fn of(known: Known, typed: &ArgMatches, file: &mut FileSettings) -> Self {
        let mut source = match typed.value_source(known.id()) {
            Some(ValueSource::CommandLine) => Source::Flag,
            Some(ValueSource::EnvVariable) => Source::Environment,
            Some(_) | None => Source::Default,
        };
        let mut texts = Vec::new();
        let named = if known.long == "model" { raw(typed, POSITIONAL) } else { Vec::new() };
        if source != Source::Flag && !named.is_empty() {
            (source, texts) = (Source::Flag, named);
        } else if source != Source::Default {
            texts = raw(typed, known.id());
        } else if let Some(set) = file.texts.remove(&known.long) {
            (source, texts) = (Source::File, set);
        }
        if source == Source::Environment && known.is_list() {
            texts = texts.iter().flat_map(split).collect();
        }
        Self { known, source, texts }
    }

    fn place(&self) -> String {
        match self.source {
            Source::Flag | Source::Default => format!("--{}", self.known.long),
            Source::Environment => self.known.variable.clone(),
            Source::File => self.known.place(),
        }
    }
}

/// A variable cannot be repeated, so its text is split at commas.
fn split(text: &OsString) -> Vec<OsString> {
    text.to_str()
        .map_or_else(|| vec![text.clone()], |text| text.split(',').map(OsString::from).collect())
}

#[cfg(test)]
mod tests;
