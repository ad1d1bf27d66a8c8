//! What was counted for a tenant, or for all.

use serde_json::{Value, json};

use super::faults::Stage;
use super::fields::{count, nullable, object, reference, text};
use super::operation::{Operation, Place, parameter};
use super::schemas::Named;
use crate::usage::{Counts, DAYS_MAX};

pub(super) fn route(place: Place<'_>) -> Value {
    let summary = "What was counted for the caller's tenant; for operators also for others";
    let parameters = ["days", "tenant", "all"].map(parameter).to_vec();
    let operation = Operation::new(place, "usage", summary).parameters(parameters);
    operation.stages(&[Stage::Query]).answering("used").value()
}

/// The parameters in its query.
pub(super) fn parameters() -> [(&'static str, Value); 3] {
    let named = |name: &'static str, description: &str, schema: Value| {
        let parameter = json!({
            "name": name, "in": "query", "required": false, "description": description, "schema": schema,
        });
        (name, parameter)
    };
    let (name, others) = ("[A-Za-z0-9._-]{1,64}", r"\(others\)");
    [
        named(
            "days",
            "The last days in UTC that are shown, today among them",
            json!({"type": "integer", "minimum": 0, "maximum": DAYS_MAX, "default": 30}),
        ),
        named(
            "tenant",
            "One of the caller's sub-tenants; for operators any tenant",
            json!({"type": "string", "pattern": format!("^({others}|{name}(/({name}|{others}))?)$")}),
        ),
        named(
            "all",
            "For operators: all tenants, unless one is named",
            json!({"type": "string", "enum": ["true", "false"]}),
        ),
    ]
}

pub(super) fn schemas() -> Named {
    let counts = Counts::NAMES.into_iter().map(|name| (name.to_owned(), count()));
    let counts = object(Value::Object(counts.collect()));
    let mut day = counts.clone();
    day["properties"]["day"] = json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"});
    let since = || nullable(&json!({"type": "string", "format": "date-time"}));
    let sums = json!({
        "tenant": text(),
        "hash": {"type": "string", "pattern": "^[0-9a-f]{8}$"},
        "since": since(),
        "total": reference("UsageCounts"),
        "recent": reference("UsageCounts"),
    });
    let mut own = sums.clone();
    own["days"] = json!({"type": "array", "items": day});
    own["sub_tenants"] = json!({"type": "array", "items": reference("UsageOfSub")});
    let all = json!({
        "days": count(),
        "total": reference("UsageCounts"),
        "recent": reference("UsageCounts"),
        "tenants": {"type": "array", "items": reference("UsageOfSub")},
    });
    vec![
        ("UsageCounts", counts),
        ("UsageOfSub", object(sums)),
        ("UsageOfTenant", object(own)),
        ("UsageOfAll", object(all)),
        ("Usage", json!({"oneOf": [reference("UsageOfTenant"), reference("UsageOfAll")]})),
    ]
}
