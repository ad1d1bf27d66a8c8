//! Headers of responses.

use serde_json::{Map, Value, json};

/// Costs: name of the component, header, pattern of its value, meaning; there with every decision.
const COSTS: [(&str, &str, &str, &str); 8] = [
    ("QueueMs", "x-docket-queue-ms", DECIMAL, "Waited for work on it to start and for its step"),
    ("StateMs", "x-docket-state-ms", DECIMAL, "Waited for its state to be resident"),
    ("EngineMs", "x-docket-engine-ms", DECIMAL, "The step that read it"),
    ("TotalMs", "x-docket-total-ms", DECIMAL, "First byte in to the response's encoding"),
    ("ComputedTokens", "x-docket-computed-tokens", COUNT, "Tokens computed on its account"),
    ("CachedTokens", "x-docket-cached-tokens", COUNT, "Tokens found resident or being read"),
    ("Lane", "x-docket-lane", "^(urgent|normal|batch|idle)$", "The lane it was served in"),
    ("ServerTiming", "server-timing", "total;dur=", "The same times by the standard's form"),
];

/// Headers of decisio's decisions.
const DECISIO: [(&str, &str, &str, &str); 3] = [
    ("DecisioServerMs", "x-decisio-server-ms", DECIMAL, "First byte in to the response's encoding"),
    ("DecisioRoute", "x-decisio-route", "^(text|image)$", "How it was read"),
    ("DecisioStages", "x-decisio-stages", "^prepare=", "Where the time went"),
];

/// Headers that are there where they have something to say.
const OPTIONAL: [(&str, &str, &str, &str); 10] = [
    (
        "StateKey",
        crate::state_key::HEADER,
        "^[0-9a-f]{16}$",
        "By what a router sends requests on this state to this server",
    ),
    ("WaitBehind", "x-docket-wait-behind", "^registration$", "What it waited behind"),
    ("Ignored", "x-docket-ignored", "^\\[.*\\]$", "Fields that were ignored, as a JSON array"),
    ("RetryAfter", "retry-after", COUNT, "Seconds until it may be sent again"),
    ("RetryAfterMs", "retry-after-ms", COUNT, "The same in milliseconds"),
    (
        "Downgrade",
        "x-docket-downgrade",
        "^(normal|batch)$",
        "A lower lane in which it would be let in now",
    ),
    ("DecisioTasks", "x-decisio-tasks", ".", "Ids of the tasks that match its questions"),
    ("DecisioWaitBehind", "x-decisio-wait-behind", "^registration$", "What it waited behind"),
    ("Location", "location", "/status$", "Where the registration's state is told"),
    ("PreferenceApplied", "preference-applied", "^respond-async$", "That it goes on alone"),
];

const DECIMAL: &str = "^[0-9]+\\.[0-9]$";
const COUNT: &str = "^[0-9]+$";

/// All of them, by the names of their components.
pub(super) fn all() -> Map<String, Value> {
    let always = COSTS.into_iter().chain(DECISIO).map(|header| component(header, true));
    let optional = OPTIONAL.into_iter().map(|header| component(header, false));
    let challenge = ("WwwAuthenticate", "www-authenticate", "^Bearer$", "How a key is sent");
    let id = (
        "RequestId",
        "x-typesafe-request-id",
        "^[0-9A-Za-z._:-]+$",
        "The id of the request: the client's x-request-id or a fresh one",
    );
    let fixed = [challenge, id].map(|header| component(header, true));
    always.chain(optional).chain(fixed).collect()
}

fn component(
    (name, _, pattern, description): (&str, &str, &str, &str),
    is_always: bool,
) -> (String, Value) {
    let schema = json!({"type": "string", "pattern": pattern});
    let header = json!({"description": description, "required": is_always, "schema": schema});
    (name.to_owned(), header)
}

/// The header of every response.
pub(super) fn request_id() -> Map<String, Value> {
    Map::from_iter([("x-typesafe-request-id".to_owned(), component_of("RequestId"))])
}

/// Headers of an answer whose cost is told.
pub(super) fn costs() -> Map<String, Value> {
    let named = COSTS.into_iter().map(|(name, header, ..)| (header.to_owned(), component_of(name)));
    request_id()
        .into_iter()
        .chain(named)
        .chain(optional(&["WaitBehind", "Ignored", "StateKey"]))
        .collect()
}

/// Those of decisio beside them.
pub(super) fn of_decisio() -> Map<String, Value> {
    let named =
        DECISIO.into_iter().map(|(name, header, ..)| (header.to_owned(), component_of(name)));
    named.chain(optional(&["DecisioTasks", "DecisioWaitBehind"])).collect()
}

/// Some of those that need not be there, by the names of their components.
pub(super) fn optional(names: &[&str]) -> Map<String, Value> {
    let named = OPTIONAL.into_iter().filter(|(name, ..)| names.contains(name));
    named.map(|(name, header, ..)| (header.to_owned(), component_of(name))).collect()
}

/// The header that asks for a key.
pub(super) fn challenge() -> Map<String, Value> {
    Map::from_iter([("www-authenticate".to_owned(), component_of("WwwAuthenticate"))])
}

fn component_of(name: &str) -> Value {
    json!({"$ref": format!("#/components/headers/{name}")})
}
