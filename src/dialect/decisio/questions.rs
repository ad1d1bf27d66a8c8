//! One question of a `decisio` request.

use crate::dialect::systemone::fields::Findings;
use crate::dialect::{ECHO_CHARS_MAX, echo};
use crate::error::{Fact, Step};
use crate::json::Json;
use crate::question::{ChoiceOption, Kind, OPTIONS_MAX, Question};

use super::decode::{Faults, Size, below};

/// The types of question, as pydantic lists them.
const TAGS: &str = "'noul', 'choice', 'score'";

/// Reads the question `id`; unknown fields are noted.
pub(super) fn question(
    id: String,
    value: Json,
    faults: &mut Faults,
    notes: &mut Findings,
) -> Option<Question> {
    let path = vec![Step::from("questions"), Step::Key(id.clone())];
    let Json::Object(members) = value else {
        let message = "Input should be a valid dictionary or object to extract fields from";
        faults.add(path, "model_attributes_type", message);
        return None;
    };
    let (mut tag, mut instructions, mut criteria) = (None, None, None);
    notes.inside(Step::Key(id.clone()), |notes| {
        for (field, value) in members {
            match field.as_str() {
                "type" => tag = Some(value),
                "instructions" => instructions = Some(value),
                "criteria" => criteria = Some(value),
                _ => notes.ignore(&field),
            }
        }
    });
    let tag = read_tag(tag, &path, faults)?;
    let path = below(&path, &tag);
    let instructions = check_instructions(instructions, &path, faults);
    let kind = match tag.as_str() {
        "noul" => noul(criteria, &path, faults),
        "choice" => choice(criteria, &path, faults),
        _ => score(criteria, &path, faults),
    };
    Some(Question::new(id, kind?, instructions?))
}

/// The type that is named, if it is one.
fn read_tag(tag: Option<Json>, path: &[Step], faults: &mut Faults) -> Option<String> {
    let discriminator = ("discriminator", Fact::Text("'type'".to_owned()));
    let Some(tag) = tag else {
        let message = "Unable to extract tag using discriminator 'type'";
        faults.with(path.to_vec(), ("union_tag_not_found", message), vec![discriminator]);
        return None;
    };
    let name = match tag {
        Json::String(name) => name,
        Json::Null => "None".to_owned(),
        other @ (Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
            other.excerpt(ECHO_CHARS_MAX)
        }
    };
    if ["noul", "choice", "score"].contains(&name.as_str()) {
        return Some(name);
    }
    let name = echo(&name);
    let message = format!(
        "Input tag '{name}' found using 'type' does not match any of the expected tags: {TAGS}"
    );
    let facts = vec![
        discriminator,
        ("tag", Fact::Text(name)),
        ("expected_tags", Fact::Text(TAGS.to_owned())),
    ];
    faults.with(path.to_vec(), ("union_tag_invalid", &message), facts);
    None
}

#[expect(clippy::option_option, reason = "the outer one says whether it is sound")]
fn check_instructions(
    instructions: Option<Json>,
    path: &[Step],
    faults: &mut Faults,
) -> Option<Option<Json>> {
    match instructions {
        None | Some(Json::Null) => Some(None),
        Some(text @ (Json::String(_) | Json::Object(_) | Json::Array(_))) => Some(Some(text)),
        Some(Json::Bool(_) | Json::Number(_)) => {
            faults.no_text_or_container(&below(path, "instructions"));
            None
        }
    }
}

fn noul(criteria: Option<Json>, path: &[Step], faults: &mut Faults) -> Option<Kind> {
    let members = match criteria {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Object(members)) => members,
        Some(_) => {
            let class = "NoulCriteria";
            let message = format!("Input should be a valid dictionary or instance of {class}");
            let facts = vec![("class_name", Fact::Text(class.to_owned()))];
            faults.with(below(path, "criteria"), ("model_type", &message), facts);
            return None;
        }
    };
    let (mut when_true, mut when_false) = (None, None);
    for (key, value) in members {
        let value = Some(value).filter(|value| *value != Json::Null);
        match key.as_str() {
            "true" => when_true = value,
            "false" => when_false = value,
            _ => {}
        }
    }
    Some(Kind::Noul { when_true, when_false })
}

fn choice(criteria: Option<Json>, path: &[Step], faults: &mut Faults) -> Option<Kind> {
    let at = below(path, "criteria");
    let members = match criteria {
        Some(Json::Object(members)) => members,
        Some(_) => {
            faults.add(at, "dict_type", "Input should be a valid dictionary");
            return None;
        }
        None => {
            faults.missing(at);
            return None;
        }
    };
    check_size(members.len(), (at, "Dictionary"), faults)?;
    let option = |(key, value)| ChoiceOption {
        key,
        description: Some(value).filter(|value| *value != Json::Null),
    };
    Some(Kind::Choice { options: members.into_iter().map(option).collect() })
}

fn score(criteria: Option<Json>, path: &[Step], faults: &mut Faults) -> Option<Kind> {
    let at = below(path, "criteria");
    match criteria {
        Some(Json::Array(levels)) => {
            check_size(levels.len(), (at, "List"), faults)?;
            Some(Kind::Score { levels })
        }
        Some(_) => {
            faults.add(at, "list_type", "Input should be a valid list");
            None
        }
        None => {
            faults.missing(at);
            None
        }
    }
}

fn check_size(count: usize, (at, kind): (Vec<Step>, &str), faults: &mut Faults) -> Option<()> {
    let size = match count {
        0 => Size::TooShort { min: 1, actual: 0 },
        1..=OPTIONS_MAX => return Some(()),
        _ => Size::TooLong { max: OPTIONS_MAX },
    };
    faults.size(at, kind, size);
    None
}
