//! The configuration file: TOML to one text or several for each setting, as they would be typed, with
//! every fault and its place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::Path;

use toml::{Table, Value};

use super::known::{Checker, Known};
use crate::config::profiles::{self, Profiles};
use crate::tenants::{Fault, parse_toml, shown};
use crate::watched::Stamp;

/// Longest configuration file in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;

/// The table of the profiles.
pub(super) const PROFILES: &str = "profiles";

/// Most differing characters for which a name is said to be near another.
const NEAR_CHARS_MAX: usize = 3;

/// What a file sets.
#[derive(Default)]
pub(super) struct FileSettings {
    /// By the flag without its dashes; as typed, each taken by the flag's parser.
    pub(super) texts: BTreeMap<String, Vec<OsString>>,
    pub(super) profiles: Profiles,
    pub(super) faults: Vec<Fault>,
    /// Flags whose value is a fault.
    pub(super) failed: Vec<String>,
    /// What is to be said of a file with secrets that others may read.
    pub(super) warning: Option<String>,
}

/// Reads a file.
///
/// * `from`: what named it, the place of the faults that it has as a whole.
pub(super) fn read(
    (path, from): (&Path, &str),
    known: &[Known],
    checker: &mut Checker,
) -> FileSettings {
    let mut file = FileSettings::default();
    let whole = |message: String| Fault::new(from, format!("{}: {message}", path.display()));
    let (text, metadata) = match text(path) {
        Ok(read) => read,
        Err(message) => {
            file.faults.push(whole(message));
            return file;
        }
    };
    let in_file = |fault: Fault| whole(fault.to_string());
    if let Err(faults) = parse_toml(&text) {
        file.faults.extend(faults.into_iter().map(in_file));
        return file;
    }
    match text.parse::<Table>() {
        Ok(table) => {
            let mut reader = Reader { known, checker, file };
            reader.tables(table);
            file = reader.file;
        }
        // The same parser has just taken it.
        Err(error) => file.faults.push(whole(shown(error.message()))),
    }
    let is_set = |known: &&Known| file.texts.contains_key(&known.long);
    if known.iter().filter(is_set).any(Known::is_secret) {
        let warning = Stamp::of(&metadata).warning();
        file.warning = warning.map(|warning| format!("{} has keys: {warning}", path.display()));
    }
    file
}

fn text(path: &Path) -> Result<(String, Metadata), String> {
    // To open a pipe would wait for whoever writes into it.
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("more than {FILE_BYTES_MAX} bytes, which is the most that are read"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        format!("it is not UTF-8 text: byte {} is not", error.utf8_error().valid_up_to())
    })?;
    Ok((text, metadata))
}

struct Reader<'a> {
    known: &'a [Known],
    checker: &'a mut Checker,
    file: FileSettings,
}

impl Reader<'_> {
    fn fault(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.file.faults.push(Fault::new(place, message));
    }

    fn tables(&mut self, tables: Table) {
        for (name, value) in tables {
            match value {
                Value::Table(table) if name == PROFILES => self.profiles(table),
                Value::Table(table) if self.known.iter().any(|known| known.table == name) => {
                    self.table(&name, table);
                }
                Value::Table(_) => {
                    let tables = self.known.iter().map(|known| known.table.as_str());
                    let near = nearest(&name, tables.chain([PROFILES]));
                    let near = near.map(|near| format!("; [{near}] is"));
                    let message =
                        format!("it is no table of this file{}", near.unwrap_or_default());
                    self.fault(shown(&name), message);
                }
                Value::String(_)
                | Value::Integer(_)
                | Value::Float(_)
                | Value::Boolean(_)
                | Value::Datetime(_)
                | Value::Array(_) => {
                    let message = self.unknown("", &name);
                    self.fault(shown(&name), message);
                }
            }
        }
    }

    fn profiles(&mut self, table: Table) {
        match profiles::read(table) {
            Ok(read) => self.file.profiles = read,
            Err(faults) => {
                for (place, message) in faults {
                    self.fault(shown(&place), message);
                }
            }
        }
    }

    fn table(&mut self, table: &str, settings: Table) {
        let all = self.known;
        for (name, value) in settings {
            let of_table = |known: &&Known| known.table == table && known.name == name;
            if let Some(known) = all.iter().find(of_table) {
                self.setting(known, value);
            } else {
                let message = self.unknown(table, &name);
                self.fault(format!("{table}.{}", shown(&name)), message);
            }
        }
    }

    /// What to say of a name that its table does not have.
    fn unknown(&self, table: &str, name: &str) -> String {
        let same = |known: &&Known| known.name == name;
        if let Some(known) = self.known.iter().find(same) {
            return format!("it belongs in [{}]", known.table);
        }
        let own = self.known.iter().filter(|known| known.table == table);
        let own = own.map(|known| known.name.as_str());
        let all = self.known.iter().map(|known| known.name.as_str());
        match nearest(name, own).or_else(|| nearest(name, all)) {
            Some(near) => {
                format!("there is no such setting; {} is one", self.where_is(near, table))
            }
            None => "there is no such setting".to_owned(),
        }
    }

    /// The name, with its table where that is another one.
    fn where_is(&self, name: &str, table: &str) -> String {
        let other = |known: &&Known| known.name == name && known.table != table;
        self.known.iter().find(other).map_or_else(|| name.to_owned(), Known::place)
    }

    fn setting(&mut self, known: &Known, value: Value) {
        let listed = value.as_array().filter(|_| known.is_list()).cloned();
        let values = listed.unwrap_or_else(|| vec![value]);
        let mut texts = Vec::new();
        for value in values {
            let text = text_of(known, &value).map(OsString::from);
            match text.and_then(|text| self.checker.check(known, &text).map(|()| text)) {
                Ok(text) => texts.push(text),
                Err(message) => {
                    self.fault(known.place(), message);
                    self.file.failed.push(known.long.clone());
                }
            }
        }
        if !self.file.failed.contains(&known.long) && !texts.is_empty() {
            self.file.texts.insert(known.long.clone(), texts);
        }
    }
}

/// A value as it would be typed.
fn text_of(known: &Known, value: &Value) -> Result<String, String> {
    let what = match value {
        Value::String(text) => return Ok(text.clone()),
        Value::Integer(number) => return Ok(number.to_string()),
        Value::Float(number) => return Ok(number.to_string()),
        Value::Boolean(is_on) if known.is_on_off() => {
            return Ok(if *is_on { "on" } else { "off" }.to_owned());
        }
        Value::Boolean(is_on) => return Ok(is_on.to_string()),
        Value::Datetime(_) => "a date",
        Value::Array(_) if known.is_list() => "an array within one",
        Value::Array(_) => "an array",
        Value::Table(_) => "a table",
    };
    let list = if known.is_list() { ", or an array of these" } else { "" };
    Err(format!("{what}; a text, a number, true or false is wanted{list}"))
}

/// The name that differs least, where it differs little.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.replace('-', "_");
    let most = NEAR_CHARS_MAX.min(name.chars().count() / 2);
    // Longer texts are near to none, and comparing them takes long.
    let alike = |known: &&str| name.len().abs_diff(known.len()) <= most;
    let distances =
        known.filter(alike).map(|known| (strsim::damerau_levenshtein(&name, known), known));
    distances.filter(|(distance, _)| *distance <= most).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::super::known;
    use super::*;

    fn file(text: &str) -> FileSettings {
        let mut written = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut written, text.as_bytes()).unwrap();
        read((written.path(), "--config"), &known::all(), &mut Checker::new())
    }

    fn faults(text: &str) -> Vec<String> {
        file(text).faults.iter().map(ToString::to_string).collect()
    }

    fn texts(text: &str) -> BTreeMap<String, Vec<OsString>> {
        let read = file(text);
        assert_eq!(read.faults, []);
        read.texts
    }

    #[test]
    fn values_of_every_type_are_as_typed() {
        let read = texts(
            "[http]\nport = 9_000\nbody_limit = \"1MiB\"\napi_key = [\"a=k,1\", \"k2\"]\n\
             [model]\noffline = true\nserved_name = \"one, two\"\n\
             [letters]\ntasks = false\nabstention = \"on\"\ntemperature = 1.5\n\
             [scheduler]\nstep_target = \"150ms\"\nage_max = 45\n",
        );
        let expected: [(&str, &[&str]); 10] = [
            ("abstention", &["on"]),
            ("age-max", &["45"]),
            ("api-key", &["a=k,1", "k2"]),
            ("body-limit", &["1MiB"]),
            ("offline", &["true"]),
            ("port", &["9000"]),
            ("served-name", &["one, two"]),
            ("step-target", &["150ms"]),
            ("tasks", &["off"]),
            ("temperature", &["1.5"]),
        ];
        let read: Vec<_> = read.iter().collect();
        assert_eq!(read.len(), expected.len());
        for ((long, texts), (expected_long, expected)) in read.into_iter().zip(expected) {
            assert_eq!((long.as_str(), texts.len()), (expected_long, expected.len()));
            assert!(texts.iter().eq(expected.iter()), "{long}: {texts:?}");
        }
    }

    #[test]
    fn unknown_names_are_told_with_the_nearest_known_one() {
        for (text, told) in [
            ("[htttp]\nport = 1", "htttp: it is no table of this file; [http] is"),
            ("[zebra]", "zebra: it is no table of this file"),
            ("[http]\nprot = 1", "http.prot: there is no such setting; port is one"),
            ("[http]\n\"body-limit\" = 1", "http.body-limit: there is no such setting; body_limit"),
            ("[http]\nstep_tokens = 1", "http.step_tokens: it belongs in [scheduler]"),
            ("[http]\nstep_token = 1", "no such setting; scheduler.step_tokens is one"),
            ("port = 1", "port: it belongs in [http]"),
            ("[http]\nelephants = 1", "http.elephants: there is no such setting"),
            ("[decisions]\nconfig = \"x\"", "decisions.config: there is no such setting"),
            ("[profile.a]", "profile: it is no table of this file; [profiles] is"),
        ] {
            let found = faults(text);
            assert!(found.len() == 1 && found[0].contains(told), "{text}: {found:?}");
        }
    }

    #[test]
    fn all_faults_of_a_file_are_told_at_once() {
        let found = faults(
            "[http]\nport = \"x\"\nbody_limit = [1]\ncolour = 1\n[engine]\nengine = \"gpu\"\n\
             [profiles.a]\nsamples = 0\n[profiles.b]\nlayot = 1\n[model]\noffline = 1979-05-27\n",
        );
        let places: Vec<&str> =
            found.iter().filter_map(|fault| Some(fault.split_once(": ")?.0)).collect();
        let expected = [
            "engine.engine",
            "http.body_limit",
            "http.colour",
            "http.port",
            "model.offline",
            "profiles.a",
            "profiles.b",
        ];
        assert_eq!(places, expected, "{found:?}");
    }

    #[test]
    fn what_is_no_toml_is_told_by_its_lines_and_not_shown() {
        let found = faults("[http]\napi_key = \"s3cret\nport = \n");
        assert!(found.len() >= 2, "{found:?}");
        assert!(found[0].starts_with("--config: /") && found[0].contains("line 2"), "{found:?}");
        assert!(!found.concat().contains("s3cret"), "{found:?}");
        let absent = read((Path::new("no/such"), "DOCKET_CONFIG"), &[], &mut Checker::new());
        assert!(absent.faults[0].to_string().starts_with("DOCKET_CONFIG: no/such: No such file"));
    }

    #[test]
    fn of_a_long_file_the_first_fault_is_told() {
        let found = faults(&"port = \n".repeat(100_000));
        assert!(found.len() == 1 && found[0].contains("line 1, byte"), "{found:?}");
    }

    #[test]
    fn a_pipe_is_refused_and_nobody_waits_for_its_writer() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        for path in [path.as_path(), folder.path()] {
            let found = read((path, "--config"), &known::all(), &mut Checker::new()).faults;
            let told = format!("--config: {}: it is no regular file", path.display());
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [told]);
        }
    }

    #[test]
    fn a_file_that_is_no_text_is_told_with_the_byte() {
        let written = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(written.path(), b"# \xff").unwrap();
        let found = read((written.path(), "--config"), &[], &mut Checker::new()).faults;
        assert!(found[0].message.ends_with("it is not UTF-8 text: byte 2 is not"), "{found:?}");
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read() {
        let found = faults(&"#".repeat(usize::try_from(FILE_BYTES_MAX).unwrap() + 1));
        assert!(found[0].contains("more than 1048576 bytes"), "{found:?}");
    }

    #[test]
    fn a_file_with_keys_that_others_may_read_is_warned_of() {
        use std::os::unix::fs::PermissionsExt as _;

        let warned = |text: &str, mode| {
            let written = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(written.path(), text).unwrap();
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(written.path(), rights).unwrap();
            read((written.path(), "--config"), &known::all(), &mut Checker::new()).warning
        };
        let keys = "[http]\napi_key = \"s3cret\"\n";
        assert!(warned(keys, 0o644).is_some_and(|warning| warning.contains("mode 644")));
        assert_eq!(warned(keys, 0o600), None);
        assert_eq!(warned("[http]\nport = 1\n", 0o644), None);
    }
}
