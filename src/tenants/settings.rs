//! What a tenant may: the fields of `[tenants.NAME]` but its keys, each with its range.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::SystemTime;

use actors::Lane;
use toml::de::DeValue;

use super::fault::shown;
use super::moment;
use crate::config::quantity::parse_bytes;

/// The fields, for who has mistaken one.
const FIELDS: &str = "weight, lane, requests_per_minute, tokens_per_minute, reads_max, queue_share, \
                      kv_bytes, pin_bytes, models, act_for, operator, expires and keys";

const WEIGHTS: RangeInclusive<u32> = 1..=1_000;
const REQUESTS: RangeInclusive<u64> = 1..=1_000_000;
const TOKENS: RangeInclusive<u64> = 1..=60_000_000_000;
const READS: RangeInclusive<u32> = 1..=1_000_000;
const BYTES: RangeInclusive<u64> = 0..=1 << 43;

/// Most names in `models`, and the length of one in bytes: those of `--served-name`.
const MODELS_MAX: usize = 64;
const MODEL_BYTES_MAX: usize = 200;

/// What a tenant may. Limits of a tenant hold for all its sub-tenants together.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Its part of the engine where several wait, in relation to others' weights. Default 1; 1 to
    /// 1,000.
    pub weight: u32,
    /// The highest lane that it may ask for. Default urgent: any.
    pub lane: Lane,
    /// Requests a minute, of which a minute's may come at once. Default no limit; 1 to 1,000,000.
    pub requests_per_minute: Option<u64>,
    /// Tokens a minute. Default no limit; 1 to 60,000,000,000.
    pub tokens_per_minute: Option<u64>,
    /// Reads that may wait or run. Default the server's `--tenant-reads-max`; 1 to 1,000,000.
    pub reads_max: Option<u32>,
    /// Part of `--reads-max` that it may fill. Default 1; above 0 to 1.
    pub queue_share: f64,
    /// Bytes of kept states. Default no limit of its own; 0 to 8 TiB.
    pub kv_bytes: Option<u64>,
    /// Bytes of pinned states. Default the server's; 0 to 8 TiB.
    pub pin_bytes: Option<u64>,
    /// Names of models that it may ask for. Default all; 1 to 64 of 1 to 200 bytes.
    pub models: Option<Vec<String>>,
    /// Whether it may name sub-tenants.
    pub act_for: bool,
    /// Whether it sees what concerns all tenants.
    pub operator: bool,
    /// From when on its keys are unknown. Default never.
    pub expires: Option<SystemTime>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            weight: 1,
            lane: Lane::Urgent,
            requests_per_minute: None,
            tokens_per_minute: None,
            reads_max: None,
            queue_share: 1.0,
            kv_bytes: None,
            pin_bytes: None,
            models: None,
            act_for: false,
            operator: false,
            expires: None,
        }
    }
}

impl Settings {
    /// An operator without limits: what the keys of the command line are.
    pub(super) fn of_flag() -> Self {
        Self { operator: true, ..Self::default() }
    }

    /// Sets one field from the file.
    ///
    /// # Errors
    /// What is there and what may be.
    pub(super) fn set(&mut self, field: &str, value: &DeValue<'_>) -> Result<(), String> {
        match field {
            "weight" => self.weight = whole(value, &WEIGHTS)?,
            "lane" => self.lane = lane(value)?,
            "requests_per_minute" => self.requests_per_minute = Some(whole(value, &REQUESTS)?),
            "tokens_per_minute" => self.tokens_per_minute = Some(whole(value, &TOKENS)?),
            "reads_max" => self.reads_max = Some(whole(value, &READS)?),
            "queue_share" => self.queue_share = share(value)?,
            "kv_bytes" => self.kv_bytes = Some(bytes(value)?),
            "pin_bytes" => self.pin_bytes = Some(bytes(value)?),
            "models" => self.models = Some(models(value)?),
            "act_for" => self.act_for = truth(value)?,
            "operator" => self.operator = truth(value)?,
            "expires" => self.expires = Some(moment(value)?),
            _ => return Err(format!("there is no such field; there are {FIELDS}")),
        }
        Ok(())
    }
}

/// What is wanted instead of a value of another type.
pub(super) fn wanted(what: &str, value: &DeValue<'_>) -> String {
    format!("{what} is wanted, this is of type {}", value.type_str())
}

pub(super) fn text<'v>(value: &'v DeValue<'_>) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| wanted("a text", value))
}

pub(super) fn moment(value: &DeValue<'_>) -> Result<SystemTime, String> {
    let wanted = || wanted("a date-time, without quotes,", value);
    moment::of(value.as_datetime().ok_or_else(wanted)?)
}

fn truth(value: &DeValue<'_>) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| wanted("true or false", value))
}

fn whole<T>(value: &DeValue<'_>, range: &RangeInclusive<T>) -> Result<T, String>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    let integer = value.as_integer().ok_or_else(|| wanted("a whole number", value))?;
    let number = i128::from_str_radix(integer.as_str(), integer.radix()).ok();
    let number = number.and_then(|number| T::try_from(number).ok());
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let shown = shown(&integer.to_string());
        format!("{shown} is not within {} to {}", range.start(), range.end())
    })
}

fn lane(value: &DeValue<'_>) -> Result<Lane, String> {
    let known = || Lane::ALL.map(Lane::as_str).join(", ");
    text(value)?.parse().map_err(|()| format!("this is no lane; there are {}", known()))
}

fn share(value: &DeValue<'_>) -> Result<f64, String> {
    let number = match (value.as_float(), value.as_integer()) {
        (Some(float), _) => float.as_str().parse().ok(),
        (None, Some(integer)) if integer.radix() == 10 => integer.as_str().parse().ok(),
        (None, _) => return Err(wanted("a number", value)),
    };
    number.filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(|| {
        let shown = number.map_or_else(String::new, |number: f64| shown(&number.to_string()));
        format!("{shown} is not above 0 and at most 1")
    })
}

/// A number of bytes, or a text with a unit.
fn bytes(value: &DeValue<'_>) -> Result<u64, String> {
    let Some(typed) = value.as_str() else {
        let other = || wanted("a number of bytes or a text such as \"512MiB\"", value);
        return if value.is_integer() { whole(value, &BYTES) } else { Err(other()) };
    };
    let no_size = "this text is no size; write it as \"512MiB\" or \"4GiB\"";
    let bytes = parse_bytes(typed).map_err(|_| no_size.to_owned())?;
    if BYTES.contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("{bytes} is not within {} to {}", BYTES.start(), BYTES.end()))
}

fn models(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let array = value.as_array().ok_or_else(|| wanted("a list of names", value))?;
    if !(1..=MODELS_MAX).contains(&array.len()) {
        return Err(format!("{} names are not within 1 to {MODELS_MAX}", array.len()));
    }
    array.iter().map(|name| model(name.get_ref())).collect()
}

fn model(value: &DeValue<'_>) -> Result<String, String> {
    let name = text(value)?;
    let is_name =
        (1..=MODEL_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if is_name {
        return Ok(name.to_owned());
    }
    let bytes = name.len();
    Err(format!(
        "a name of {bytes} bytes; names of models have 1 to {MODEL_BYTES_MAX} and no control \
         characters"
    ))
}
