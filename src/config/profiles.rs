//! Profiles of the operator's: named settings for showing and reading questions, which a request asks
//! for by name. They stand in the configuration file as `[profiles.NAME]`.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::prompt::layout::{self, PerKind, Profile};
use crate::tenants::shown;

/// Most profiles.
pub const PROFILES_MAX: usize = 64;

/// Longest name of one, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Greatest temperature.
const TEMPERATURE_MAX: f64 = 100.0;

/// Most orders.
const SAMPLES_MAX: u32 = 255;

/// The settings of a profile, for who has mistaken one.
const FIELDS: &str = "layout, temperature and samples";

/// All profiles by name.
pub type Profiles = BTreeMap<String, ProfileSettings>;

/// What a profile sets; what it does not is as in the model's own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileSettings {
    /// Id of the layout.
    pub layout: Option<String>,
    /// Divisor of the log-probabilities: one for all kinds, or one for each. Above 0, at most 100.
    pub temperature: Option<OneOrEach<f64>>,
    /// Orders of each question where a request leaves them to us; 1 to 255.
    pub samples: Option<OneOrEach<u32>>,
}

/// One value for all kinds of question, or a table of values by kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OneOrEach<T> {
    /// For all.
    One(T),
    /// By kind; what is left out is as in the model's own profile.
    Each(Each<T>),
}

/// Values by kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Each<T> {
    /// For nouls.
    pub noul: Option<T>,
    /// For choices.
    pub choice: Option<T>,
    /// For scores.
    pub score: Option<T>,
}

impl<T: Copy> OneOrEach<T> {
    /// The values that are set.
    pub fn values(&self) -> Vec<T> {
        match self {
            Self::One(value) => vec![*value],
            Self::Each(each) => {
                [each.noul, each.choice, each.score].into_iter().flatten().collect()
            }
        }
    }

    fn over(&self, own: PerKind<T>) -> PerKind<T> {
        match self {
            Self::One(value) => PerKind { noul: *value, choice: *value, score: *value },
            Self::Each(each) => PerKind {
                noul: each.noul.unwrap_or(own.noul),
                choice: each.choice.unwrap_or(own.choice),
                score: each.score.unwrap_or(own.score),
            },
        }
    }
}

impl ProfileSettings {
    /// Reads the table of one profile.
    ///
    /// # Errors
    /// All that cannot be in it.
    fn read(value: Value) -> Result<Self, Vec<String>> {
        let Value::Table(table) = value else {
            return Err(vec![wanted("a table of settings", &value)]);
        };
        let mut read = Self::default();
        let mut faults = Vec::new();
        for (field, value) in table {
            let outcome = match field.as_str() {
                "layout" => text(&value).map(|id| read.layout = Some(id)),
                "temperature" => {
                    one_or_each(&value, number).map(|set| read.temperature = Some(set))
                }
                "samples" => one_or_each(&value, count).map(|set| read.samples = Some(set)),
                _ => Err(format!("there is no such setting; there are {FIELDS}")),
            };
            faults.extend(outcome.err().map(|fault| format!("{}: {fault}", shown(&field))));
        }
        if faults.is_empty() { Ok(read) } else { Err(faults) }
    }

    /// The model's own profile with what is set here.
    pub fn over(&self, own: Profile) -> Profile {
        Profile {
            name: "configured",
            layout: self.layout.as_deref().and_then(layout::layout).unwrap_or(own.layout),
            temperature: self.temperature.map_or(own.temperature, |set| set.over(own.temperature)),
            samples: self.samples.map_or(own.samples, |set| set.over(own.samples)),
        }
    }

    fn fault(&self) -> Option<String> {
        if let Some(id) = self.layout.as_deref().filter(|id| layout::layout(id).is_none()) {
            let known = layout::named::LAYOUTS.map(|layout| layout.id).join(", ");
            return Some(format!("layout {id:?} is none of {known}"));
        }
        let is_hot = |value: &f64| !(*value > 0.0 && *value <= TEMPERATURE_MAX);
        let temperatures = self.temperature.map(|set| set.values()).unwrap_or_default();
        if let Some(value) = temperatures.into_iter().find(is_hot) {
            return Some(format!(
                "temperature {value} is not above 0 and at most {TEMPERATURE_MAX}"
            ));
        }
        let samples = self.samples.map(|set| set.values()).unwrap_or_default();
        let count = samples.into_iter().find(|count| !(1..=SAMPLES_MAX).contains(count))?;
        Some(format!("samples {count} is not within 1 to {SAMPLES_MAX}"))
    }
}

fn wanted(what: &str, value: &Value) -> String {
    format!("{what} is wanted, this is of type {}", value.type_str())
}

fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| wanted("a text", value))
}

fn number(value: &Value) -> Result<f64, String> {
    let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    number.ok_or_else(|| wanted("a number, or a table of numbers by kind,", value))
}

fn count(value: &Value) -> Result<u32, String> {
    let whole = value.as_integer();
    let whole =
        whole.ok_or_else(|| wanted("a whole number, or a table of these by kind,", value))?;
    u32::try_from(whole).map_err(|_| format!("{whole} is not within 1 to {SAMPLES_MAX}"))
}

fn one_or_each<T>(
    value: &Value,
    read: fn(&Value) -> Result<T, String>,
) -> Result<OneOrEach<T>, String> {
    let Value::Table(table) = value else { return read(value).map(OneOrEach::One) };
    let mut each = Each { noul: None, choice: None, score: None };
    for (kind, value) in table {
        let place = match kind.as_str() {
            "noul" => &mut each.noul,
            "choice" => &mut each.choice,
            "score" => &mut each.score,
            _ => {
                let kind = shown(kind);
                return Err(format!("{kind:?} is no kind; there are noul, choice and score"));
            }
        };
        *place = Some(read(value).map_err(|fault| format!("{kind}: {fault}"))?);
    }
    Ok(OneOrEach::Each(each))
}

/// Reads the profiles of a configuration file: its table `profiles`.
///
/// # Errors
/// What is wrong with them, each with its place.
pub fn read(table: Table) -> Result<Profiles, Vec<(String, String)>> {
    let mut faults = Vec::new();
    if table.len() > PROFILES_MAX {
        let message = format!("{} profiles; at most {PROFILES_MAX} are taken", table.len());
        return Err(vec![("profiles".to_owned(), message)]);
    }
    let mut profiles = Profiles::new();
    for (name, value) in table {
        let place = format!("profiles.{name}");
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
            && !name.chars().any(|c| c.is_control() || c.is_whitespace() || c == '@');
        if !is_name {
            let rule = format!("1 to {NAME_BYTES_MAX} bytes without white space and @");
            faults.push(("profiles".to_owned(), format!("{name:?} is no name: {rule}")));
        }
        match ProfileSettings::read(value) {
            Ok(settings) => {
                faults.extend(settings.fault().map(|fault| (place, fault)));
                profiles.insert(name, settings);
            }
            Err(found) => faults.extend(found.into_iter().map(|fault| (place.clone(), fault))),
        }
    }
    if faults.is_empty() { Ok(profiles) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::layout::profile_for;

    fn parse(text: &str) -> Result<Profiles, String> {
        let mut file: Table = text.parse().unwrap();
        let Some(Value::Table(table)) = file.remove("profiles") else { panic!("{text}") };
        read(table).map_err(|faults| {
            let lines = faults.into_iter().map(|(place, message)| format!("{place}: {message}\n"));
            lines.collect()
        })
    }

    #[test]
    fn what_a_profile_leaves_out_is_the_models_own() {
        let text = "[profiles.fast]\nlayout = \"bare\"\nsamples = 1\n\
                    [profiles.cool]\ntemperature = { noul = 1.5 }\n";
        let profiles = parse(text).unwrap();
        let own = profile_for("qwen2.5-coder", None);
        let fast = profiles["fast"].over(own);
        assert_eq!((fast.layout.id, fast.samples.choice), ("bare", 1));
        assert_eq!(fast.temperature, own.temperature);
        let cool = profiles["cool"].over(own);
        assert!((cool.temperature.noul - 1.5).abs() < 1e-12);
        assert_eq!(
            (cool.temperature.choice, cool.layout.id),
            (own.temperature.choice, own.layout.id)
        );
    }

    #[test]
    fn a_file_that_cannot_be_is_told_with_all_its_faults() {
        for (text, part) in [
            ("[profiles.a]\nlayot = 1", "profiles.a: layot: there is no such setting; there are"),
            ("[profiles.a]\nlayout = 1", "layout: a text is wanted, this is of type integer"),
            ("[profiles.a]\ntemperature = \"x\"", "temperature: a number, or a table of numbers"),
            ("[profiles.a]\nsamples = 1.5", "samples: a whole number, or a table of these by kind"),
            ("[profiles.a]\nsamples = -1", "samples: -1 is not within 1 to 255"),
            ("[profiles.a]\nsamples = { nouls = 1 }", "samples: \"nouls\" is no kind; there are"),
            ("[profiles.a]\nsamples = { noul = true }", "samples: noul: a whole number"),
            ("[profiles.a]\nlayout = \"none\"", "profiles.a: layout \"none\" is none of"),
            ("[profiles.a]\ntemperature = 0.0", "temperature 0 is not above 0"),
            ("[profiles.a]\nsamples = { choice = 0 }", "samples 0"),
            ("[profiles.\"a@b\"]", "\"a@b\" is no name"),
            ("[profiles]\na = 1", "profiles.a: a table of settings is wanted, this is of type"),
        ] {
            let fault = parse(text).unwrap_err();
            assert!(fault.contains(part), "{text}: {fault}");
        }
        let whole = parse("[profiles.a]\ntemperature = 2\n").unwrap();
        assert_eq!(whole["a"].temperature, Some(OneOrEach::One(2.0)));
        let two = parse("[profiles.a]\nsamples = 0\n[profiles.b]\nsamples = 999").unwrap_err();
        assert_eq!(two.lines().count(), 2, "{two}");
    }
}
