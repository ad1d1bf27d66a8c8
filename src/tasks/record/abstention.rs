//! Records of abstention tasks.

use serde_json::Value;

use super::{ABSTENTION, RECORD_BYTES_MAX};
use crate::tasks::order::{AbstainOption, ID_RULE, Match, is_id};

/// A registered abstention task.
#[derive(Debug, Clone, PartialEq)]
pub struct AbstentionTask {
    /// Its name among the tenant's.
    pub id: String,
    /// Under what it holds.
    pub fingerprint: String,
    /// Which questions it is for.
    pub matches: Match,
    /// What they are recognised by; empty with [`Match::ImajevExtension`].
    pub identity: String,
    /// The option: a key of the request's, or a text to append.
    pub option: AbstainOption,
    /// Above which probability of the option the question counts as unanswered; `None`: not applied.
    pub threshold: Option<f64>,
    /// All of it.
    pub record: Value,
}

impl AbstentionTask {
    /// Reads a record.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(record: &Value) -> Result<Self, String> {
        let text = |name: &str| {
            let text = record[name].as_str();
            text.map(str::to_owned).ok_or_else(|| format!("{name} is no text"))
        };
        let format = text("format")?;
        if !ABSTENTION.contains(&format.as_str()) {
            return Err(format!("the format {format:?} is none of {}", ABSTENTION.join(", ")));
        }
        let option = &record["option"];
        let option = match (option["key"].as_str(), option["append"].as_str()) {
            (Some(key), None) => AbstainOption::Key(key.to_owned()),
            (None, Some(text)) => AbstainOption::Append(text.to_owned()),
            _ => return Err("option has neither key nor append".to_owned()),
        };
        let matches = Match::named(&text("match")?).ok_or("match is unknown")?;
        let id = text("id")?;
        if !is_id(&id) {
            return Err(format!("id {ID_RULE}"));
        }
        let bytes = record.to_string().len();
        if bytes > RECORD_BYTES_MAX {
            return Err(format!("it has {bytes} bytes, at most {RECORD_BYTES_MAX}"));
        }
        Ok(Self {
            id,
            fingerprint: text("fingerprint")?,
            matches,
            identity: text("identity")?,
            option,
            threshold: record["threshold"].as_f64().filter(|_| record["applied"] == true),
            record: record.clone(),
        })
    }
}
