//! JSON Schema 2020-12, as far as our document uses it; a keyword that is not known here is a fault of
//! the document, so that nothing in it goes unchecked.

use regex::Regex;
use serde_json::{Map, Value};

/// Keywords that say nothing about a value.
const NOTES: [&str; 2] = ["description", "$ref"];

/// What is wrong with `value` by the schema at `place` of `root`; nothing where it is as it should be.
pub(crate) fn faults(root: &Value, place: &str, value: &Value) -> Vec<String> {
    let schema = root.pointer(place).unwrap_or_else(|| panic!("there is no {place}"));
    let mut told = Vec::new();
    check(root, schema, (value, "$"), &mut told);
    told
}

/// Whether `value` is as `schema` says, which stands for itself.
pub(crate) fn is_valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let mut told = Vec::new();
    check(root, schema, (value, "$"), &mut told);
    told.is_empty()
}

fn check(root: &Value, schema: &Value, (value, at): (&Value, &str), told: &mut Vec<String>) {
    let Value::Object(schema) = schema else { panic!("{schema} is no schema") };
    if let Some(place) = schema.get("$ref").and_then(Value::as_str) {
        let place = place.strip_prefix('#').unwrap_or(place);
        let named = root.pointer(place).unwrap_or_else(|| panic!("there is no {place}"));
        check(root, named, (value, at), told);
    }
    for (keyword, wanted) in schema.iter().filter(|(name, _)| !NOTES.contains(&name.as_str())) {
        let is_so = match keyword.as_str() {
            "properties" | "additionalProperties" => {
                // Both at once, and told where they are wrong.
                if keyword == "properties" || !schema.contains_key("properties") {
                    members(root, schema, (value, at), told);
                }
                true
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, (item, &format!("{at}[{index}]")), told);
                }
                true
            }
            "allOf" => list(wanted).iter().all(|schema| is_valid(root, schema, value)),
            "anyOf" => list(wanted).iter().any(|schema| is_valid(root, schema, value)),
            "oneOf" => list(wanted).iter().filter(|s| is_valid(root, s, value)).count() == 1,
            "not" => !is_valid(root, wanted, value),
            "propertyNames" => {
                let mut names = value.as_object().into_iter().flat_map(Map::keys);
                names.all(|name| is_valid(root, wanted, &Value::from(name.as_str())))
            }
            keyword => is_as_wanted(keyword, wanted, value),
        };
        if !is_so {
            told.push(format!("{at} is {value}, and {keyword} {wanted}"));
        }
    }
}

fn members(
    root: &Value,
    schema: &Map<String, Value>,
    (value, at): (&Value, &str),
    told: &mut Vec<String>,
) {
    let none = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    for (name, member) in value.as_object().unwrap_or(&none) {
        let at = format!("{at}.{name}");
        match (known.get(name), schema.get("additionalProperties")) {
            (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                check(root, schema, (member, &at), told);
            }
            (None, None | Some(Value::Bool(true))) => {}
            (None, Some(Value::Bool(false))) => told.push(format!("{at} is not described")),
            (None, Some(other)) => panic!("{other} is no schema"),
        }
    }
}

/// Whether a value is as a keyword without schemas in it wants it; what is of no type that the keyword is
/// about is.
fn is_as_wanted(keyword: &str, wanted: &Value, value: &Value) -> bool {
    let number = || Some((value.as_f64()?, wanted.as_f64()?));
    let size = wanted.as_u64().and_then(|size| usize::try_from(size).ok());
    let chars = || value.as_str().map(|text| text.chars().count());
    let items = || value.as_array().map(Vec::len);
    let names = || value.as_object().map(Map::len);
    match keyword {
        "type" if wanted.is_array() => list(wanted).iter().any(|kind| is_of(kind, value)),
        "type" => is_of(wanted, value),
        "const" => is_same(wanted, value),
        "enum" => list(wanted).iter().any(|one| is_same(one, value)),
        "required" => value.as_object().is_none_or(|members| {
            list(wanted).iter().all(|name| members.contains_key(name.as_str().unwrap_or("")))
        }),
        "minimum" => number().is_none_or(|(found, least)| found >= least),
        "maximum" => number().is_none_or(|(found, most)| found <= most),
        "exclusiveMinimum" => number().is_none_or(|(found, least)| found > least),
        "exclusiveMaximum" => number().is_none_or(|(found, most)| found < most),
        "minLength" => chars() >= size.filter(|_| value.is_string()),
        "maxLength" => chars().is_none_or(|count| Some(count) <= size),
        "minItems" => items() >= size.filter(|_| value.is_array()),
        "maxItems" => items().is_none_or(|count| Some(count) <= size),
        "minProperties" => names() >= size.filter(|_| value.is_object()),
        "maxProperties" => names().is_none_or(|count| Some(count) <= size),
        "uniqueItems" => value.as_array().is_none_or(|items| {
            (1..items.len())
                .all(|place| !items[..place].iter().any(|one| is_same(one, &items[place])))
        }),
        "pattern" => {
            let pattern = Regex::new(wanted.as_str().unwrap_or_default());
            let pattern = pattern.unwrap_or_else(|e| panic!("{wanted}: {e}"));
            value.as_str().is_none_or(|text| pattern.is_match(text))
        }
        _ => panic!("the keyword {keyword} is not known here"),
    }
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("there is no type {other}"),
    }
}

/// Numbers are the same by value, whatever their spelling.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.total_cmp(&other).is_eq(),
        _ => one == other,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or_else(|| panic!("{value} is no list"), Vec::as_slice)
}

#[test]
fn keywords_allow_and_refuse_what_the_standard_says() {
    let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    for (schema, good, bad) in [
        (r#"{"type": "integer"}"#, "2.0", "2.5"),
        (r#"{"type": ["null", "string"]}"#, "null", "1"),
        (r#"{"const": 0}"#, "0.0", "1"),
        (r#"{"enum": [1, "a"]}"#, r#""a""#, r#""b""#),
        (r#"{"required": ["a"]}"#, r#"{"a": 1}"#, "{}"),
        (r#"{"minimum": 1}"#, "1", "0"),
        (r#"{"maximum": 1}"#, r#""x""#, "2"),
        (r#"{"exclusiveMinimum": 1}"#, "1.1", "1"),
        (r#"{"exclusiveMaximum": 1}"#, "0.9", "1"),
        (r#"{"minLength": 2}"#, r#""éé""#, r#""é""#),
        (r#"{"maxLength": 1}"#, r#""é""#, r#""ab""#),
        (r#"{"minItems": 1}"#, "{}", "[]"),
        (r#"{"maxItems": 1}"#, "[1]", "[1, 2]"),
        (r#"{"minProperties": 1}"#, r#"{"a": 1}"#, "{}"),
        (r#"{"maxProperties": 0}"#, "{}", r#"{"a": 1}"#),
        (r#"{"uniqueItems": true}"#, "[1, 2]", "[1, 1.0]"),
        (r#"{"pattern": "^a$"}"#, r#""a""#, r#""b""#),
        (r#"{"items": {"type": "null"}}"#, "[null]", "[1]"),
        (r#"{"propertyNames": {"minLength": 1}}"#, r#"{"a": 1}"#, r#"{"": 1}"#),
        (r#"{"allOf": [{"minimum": 1}, {"maximum": 2}]}"#, "2", "3"),
        (r#"{"anyOf": [{"const": 1}, {"const": 2}]}"#, "2", "3"),
        (r#"{"oneOf": [{"minimum": 1}, {"minimum": 2}]}"#, "1", "2"),
        (r#"{"not": {"const": 1}}"#, "2", "1"),
        (r#"{"properties": {"a": {"const": 1}}}"#, r#"{"a": 1, "b": 2}"#, r#"{"a": 2}"#),
        (r#"{"properties": {"a": {}}, "additionalProperties": false}"#, "{}", r#"{"b": 2}"#),
        (r#"{"additionalProperties": {"const": 1}}"#, r#"{"a": 1}"#, r#"{"a": 2}"#),
        (r##"{"$ref": "#/defs/one"}"##, "1", "2"),
    ] {
        let root = parsed(r#"{"defs": {"one": {"const": 1}}}"#);
        assert!(is_valid(&root, &parsed(schema), &parsed(good)), "{schema} {good}");
        assert!(!is_valid(&root, &parsed(schema), &parsed(bad)), "{schema} {bad}");
    }
}
