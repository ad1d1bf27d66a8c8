//! Criteria of questions whose answer is found in the state.

use crate::dialect::ECHO_CHARS_MAX;
use crate::json::Json;
use crate::question::{Finds, NumberCriteria};

use super::fields::Findings;

/// Reads the criteria of a number: an object with `min`, `max` and `precision`, each of which may be
/// missing; or nothing.
pub(in crate::dialect) fn number(criteria: Option<Json>, findings: &mut Findings) -> Option<Finds> {
    let members = match criteria {
        None => Vec::new(),
        Some(Json::Object(members)) => members,
        Some(other) => {
            let expected = "null or an object with min, max and precision for a number";
            findings.wrong_type("criteria", expected, &other);
            return None;
        }
    };
    let before = findings.faults.len();
    let mut read = NumberCriteria::default();
    findings.inside("criteria".into(), |findings| {
        for (field, value) in members.iter().filter(|(_, value)| *value != Json::Null) {
            match field.as_str() {
                "min" => read.min = finite(field, value, findings),
                "max" => read.max = finite(field, value, findings),
                "precision" => read.precision = precision(value, findings),
                _ => findings.ignore(field),
            }
        }
        if let (Some(min), Some(max)) = (read.min, read.max)
            && min > max
        {
            let message = format!("min must not be above max, {min} is above {max}");
            findings.fault(vec!["min".into()], "range_empty", message);
        }
    });
    (findings.faults.len() == before).then_some(Finds::Number(read))
}

/// An excerpt has no criteria.
pub(in crate::dialect) fn excerpt(
    criteria: Option<Json>,
    findings: &mut Findings,
) -> Option<Finds> {
    let Some(found) = criteria else { return Some(Finds::Excerpt) };
    findings.wrong_type("criteria", "null or left out for an excerpt", &found);
    None
}

fn precision(value: &Json, findings: &mut Findings) -> Option<f64> {
    let step = finite("precision", value, findings)?;
    if step < 0.0 {
        let message = format!("precision must be 0 (no rounding) or a positive step, not {step}");
        findings.fault(vec!["precision".into()], "precision_negative", message);
        return None;
    }
    Some(step)
}

fn finite(field: &str, value: &Json, findings: &mut Findings) -> Option<f64> {
    let Some(spelling) = value.as_number() else {
        findings.wrong_type(field, "a number", value);
        return None;
    };
    let number = spelling.parse::<f64>().ok().filter(|number| number.is_finite());
    if number.is_none() {
        let message =
            format!("{field} must be a finite number, not {}", value.excerpt(ECHO_CHARS_MAX));
        findings.fault(vec![field.into()], "number_invalid", message);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    fn read(text: &str) -> (Option<Finds>, Vec<&'static str>) {
        let json = Json::parse(text.as_bytes(), Limits::default()).unwrap();
        let mut findings = Findings::new();
        let found = number(Some(json).filter(|json| *json != Json::Null), &mut findings);
        (found, findings.faults.iter().map(|fault| fault.code).collect())
    }

    #[test]
    fn limits_and_step_are_read() {
        let criteria =
            |min, max, precision| Some(Finds::Number(NumberCriteria { min, max, precision }));
        assert_eq!(read("null").0, criteria(None, None, None));
        assert_eq!(read("{}").0, criteria(None, None, None));
        assert_eq!(
            read(r#"{"min": -1, "max": 1e3, "precision": 0.01}"#).0,
            criteria(Some(-1.0), Some(1e3), Some(0.01))
        );
        assert_eq!(
            read(r#"{"min": 2, "max": 2, "precision": 0}"#).0,
            criteria(Some(2.0), Some(2.0), Some(0.0))
        );
    }

    #[test]
    fn what_admits_no_number_is_refused() {
        for (text, code) in [
            (r#"{"min": 2, "max": 1}"#, "range_empty"),
            (r#"{"precision": -0.5}"#, "precision_negative"),
            (r#"{"min": "1"}"#, "wrong_type"),
            (r#"{"max": 1e999}"#, "number_invalid"),
            ("[1]", "wrong_type"),
        ] {
            assert_eq!(read(text), (None, vec![code]), "{text}");
        }
    }
}
