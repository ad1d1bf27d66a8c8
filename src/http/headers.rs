//! Headers of docket's own: names, parsing and formats.

use std::time::Duration;

use actors::{Bucket, Lane};
use axum::http::{HeaderMap, HeaderValue};

use crate::dialect::RequestLimits;
use crate::dialect::problem::RequestFault;
use crate::question::answer::Cost;
use crate::tenants::Quota;

use super::respond::excerpt;
use super::state_key;

pub(super) const API_KEY: &str = "x-api-key";
pub(super) const DIALECT: &str = "x-docket-dialect";
pub(super) const REQUEST_ID: &str = "x-typesafe-request-id";
/// The sub-tenant that a gateway acts for.
pub(super) const FAIRNESS_ID: &str = "x-gateway-inference-fairness-id";
pub(super) const REASON: &str = "x-docket-reason";
/// The lane in which a refused request would be let in at once.
pub(super) const DOWNGRADE: &str = "x-docket-downgrade";
/// The lane in which a request was served.
const LANE: &str = "x-docket-lane";
pub(super) const PRIORITY: &str = "x-docket-priority";
/// The same from a Kubernetes inference gateway.
pub(super) const OBJECTIVE: &str = "x-gateway-inference-objective";
pub(super) const TIMEOUT_MS: &str = "x-docket-timeout-ms";
pub(super) const SALT: &str = "x-docket-salt";
const IGNORED: &str = "x-docket-ignored";

/// Longest `x-docket-salt` in bytes.
const SALT_BYTES_MAX: usize = 256;
/// Most names in `x-docket-ignored`.
const IGNORED_NAMES_MAX: usize = 16;
/// Longest value of `x-docket-ignored` in bytes.
const IGNORED_BYTES_MAX: usize = 512;
/// Longest name in `x-docket-ignored` in bytes, as it is escaped; the rest of one is cut, so that
/// some of the others have room.
const IGNORED_NAME_BYTES_MAX: usize = 120;

/// What a request's headers ask for. A field of the body that says the same thing wins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wishes {
    pub(super) lane: Option<Lane>,
    pub(super) timeout: Option<Duration>,
    pub(super) salt: Option<String>,
}

impl Wishes {
    /// Of headers that say nothing in two ways ([`super::once::check`]).
    pub(super) fn read(headers: &HeaderMap, limits: &RequestLimits) -> Result<Self, RequestFault> {
        let lane = text(headers, PRIORITY)?.map(lane).transpose()?;
        // A gateway's objectives have names of their own: what is not a lane says nothing.
        let objective = headers.get(OBJECTIVE).and_then(|value| value.to_str().ok());
        let lane = lane.or_else(|| objective?.parse().ok());
        let timeout = text(headers, TIMEOUT_MS)?.map(|value| timeout(value, limits)).transpose()?;
        let salt = text(headers, SALT)?.map(salt).transpose()?;
        state_key::check(headers)?;
        Ok(Self { lane, timeout, salt })
    }
}

/// What is left of a tenant's requests and of its tokens, where it has limits of them.
pub(super) fn add_quotas(headers: &mut HeaderMap, requests: Option<Quota>, tokens: Option<Bucket>) {
    let mut policies = Vec::new();
    if let Some(Quota { limit, remaining, reset_s, .. }) = requests {
        policies.push(format!("{limit};w=60"));
        insert(headers, "ratelimit-limit", &limit.to_string());
        insert(headers, "ratelimit-remaining", &remaining.to_string());
        insert(headers, "ratelimit-reset", &reset_s.to_string());
    }
    if let Some(bucket) = tokens {
        let (limit, window) = (bucket.burst, rounded_up(bucket.window()));
        policies.push(format!("{limit};w={window};comment=\"tokens\""));
        insert(headers, "ratelimit-limit-tokens", &limit.to_string());
        insert(headers, "ratelimit-remaining-tokens", &bucket.remaining().to_string());
        insert(headers, "ratelimit-reset-tokens", &rounded_up(bucket.reset()).to_string());
    }
    if !policies.is_empty() {
        insert(headers, "ratelimit-policy", &policies.join(", "));
    }
}

/// In whole seconds.
fn rounded_up(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

pub(super) fn text<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> Result<Option<&'a str>, RequestFault> {
    match headers.get(name).map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(_)) => {
            let message = "must be visible ASCII characters".to_owned();
            Err(RequestFault::Header { name, message })
        }
    }
}

fn lane(value: &str) -> Result<Lane, RequestFault> {
    value.parse().map_err(|()| RequestFault::Header {
        name: PRIORITY,
        message: format!("must be urgent, normal, batch or idle, not {:?}", excerpt(value)),
    })
}

fn timeout(value: &str, limits: &RequestLimits) -> Result<Duration, RequestFault> {
    let limit_ms = limits.timeout_max.as_millis();
    // The parser would take a sign too.
    let digits = value.bytes().all(|byte| byte.is_ascii_digit()).then_some(value);
    match digits.unwrap_or_default().parse::<u64>() {
        Ok(wait_ms) if wait_ms >= 1 && u128::from(wait_ms) <= limit_ms => {
            Ok(Duration::from_millis(wait_ms))
        }
        _ => Err(RequestFault::Header {
            name: TIMEOUT_MS,
            message: format!("must be an integer from 1 to {limit_ms}, not {:?}", excerpt(value)),
        }),
    }
}

fn salt(value: &str) -> Result<String, RequestFault> {
    if value.len() > SALT_BYTES_MAX {
        let message = format!("is {} bytes, at most {SALT_BYTES_MAX} are allowed", value.len());
        return Err(RequestFault::Header { name: SALT, message });
    }
    Ok(value.to_owned())
}

/// The salt of a request that says one in a header, which has no line breaks, and one in its body: as
/// different as either. One that is said alone is the same in both places, so that a prewarm can have
/// the salt of a decision.
pub(super) fn joined(header: Option<String>, body: Option<String>) -> Option<String> {
    match (header, body) {
        (Some(header), Some(body)) => Some([&header, "\n", &*body].concat()),
        (header, body) => header.or(body),
    }
}

/// Adds what a decision or prewarm cost. `total` is from the request's first byte to now.
///
/// Source of the times' meaning: docs/OPERATIONS.md, "What a request waited for". The engine wait is
/// part of `x-docket-queue-ms` and has its own entry in `Server-Timing`.
pub(super) fn add_cost(headers: &mut HeaderMap, cost: &Cost, total: Duration) {
    let queue = cost.queue_wait + cost.engine_wait;
    let other = other(cost, total);
    for (name, time) in [
        ("x-docket-queue-ms", queue),
        ("x-docket-state-ms", cost.state_wait),
        ("x-docket-engine-ms", cost.engine_time),
        ("x-docket-total-ms", total),
    ] {
        insert(headers, name, &ms(time));
    }
    insert(headers, "x-docket-computed-tokens", &cost.computed_tokens.to_string());
    insert(headers, "x-docket-cached-tokens", &cost.cached_tokens.to_string());
    insert(headers, LANE, cost.lane.as_str());
    if cost.behind_registration {
        insert(headers, "x-docket-wait-behind", "registration");
    }
    let entries = [
        ("queue", cost.queue_wait),
        ("state", cost.state_wait),
        ("engine-wait", cost.engine_wait),
        ("engine", cost.engine_time),
        ("other", other),
        ("total", total),
    ];
    let entries = entries.map(|(name, time)| format!("{name};dur={}", ms(time)));
    insert(headers, "server-timing", &entries.join(", "));
}

/// The lane that [`add_cost`] has noted.
pub(super) fn served_lane(headers: &HeaderMap) -> Option<Lane> {
    headers.get(LANE)?.to_str().ok()?.parse().ok()
}

/// What of a decision's time is neither wait nor engine.
pub(super) fn other(cost: &Cost, total: Duration) -> Duration {
    let waits = cost.queue_wait + cost.state_wait + cost.engine_wait;
    total.saturating_sub(waits + cost.engine_time)
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

/// Lists the ignored fields as a JSON array in ASCII; nothing where there are none.
pub(super) fn add_ignored(headers: &mut HeaderMap, names: &[String]) {
    if let Some(value) = ignored(names) {
        insert(headers, IGNORED, &value);
    }
}

fn ignored(names: &[String]) -> Option<String> {
    let mut list = String::new();
    for name in names.iter().take(IGNORED_NAMES_MAX) {
        let quoted = ascii_json(name, IGNORED_NAME_BYTES_MAX);
        // The brackets and a comma count too. A shorter name may still have room.
        if list.len() + quoted.len() + 3 > IGNORED_BYTES_MAX {
            continue;
        }
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(&quoted);
    }
    (!names.is_empty()).then(|| format!("[{list}]"))
}

/// `text` as a JSON string in which everything but visible ASCII is escaped; cut with `...` where
/// there would be more than `bytes_max` bytes between the quotes.
fn ascii_json(text: &str, bytes_max: usize) -> String {
    let mut json = String::from("\"");
    for character in text.chars() {
        let piece = escaped(character);
        if json.len() + piece.len() > bytes_max + 1 {
            json.push_str("...");
            break;
        }
        json.push_str(&piece);
    }
    json.push('"');
    json
}

fn escaped(character: char) -> String {
    match character {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        ' '..='~' => character.to_string(),
        _ => {
            let mut units = [0; 2];
            let units: &[u16] = character.encode_utf16(&mut units);
            let units: Vec<String> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            units.concat()
        }
    }
}

/// Sets a header whose value is ASCII by construction; anything else is left out.
pub(super) fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_names_are_ascii_json_within_both_limits() {
        assert_eq!(ignored(&[]), None);
        let names = ["seed".to_owned(), "é\"\n😀".to_owned()];
        assert_eq!(ignored(&names).unwrap(), "[\"seed\",\"\\u00e9\\\"\\u000a\\ud83d\\ude00\"]");
        let read: Vec<String> = serde_json::from_str(&ignored(&names).unwrap()).unwrap();
        assert_eq!(read, names);
        for (count, length) in [(40, 1), (40, 100), (1, 600), (16, 29), (16, 30)] {
            let list = ignored(&vec!["é".repeat(length); count]).unwrap();
            let read: Vec<String> = serde_json::from_str(&list).unwrap();
            assert!(list.len() <= IGNORED_BYTES_MAX && read.len() <= IGNORED_NAMES_MAX);
        }
    }

    #[test]
    fn a_long_ignored_name_is_cut_and_the_next_ones_are_listed() {
        let long = "é".repeat(100);
        let list = |names: &[&str]| -> Vec<String> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            serde_json::from_str(&ignored(&names).unwrap()).unwrap()
        };
        assert_eq!(list(&[&long, "critera"]), [format!("{}...", "é".repeat(20)), "critera".into()]);
        // Where no more long ones have room a short one may.
        let read = list(&[&long, &long, &long, &"z".repeat(100), &long, "critera"]);
        assert_eq!((read.len(), read[4].as_str()), (5, "critera"));
        let just = "x".repeat(IGNORED_NAME_BYTES_MAX);
        assert_eq!(list(&[&just]).concat(), just);
    }

    #[test]
    fn times_add_up_to_the_total() {
        let millis = Duration::from_millis;
        let cost = Cost {
            lane: Lane::Batch,
            input_tokens: 1,
            prompt_tokens: 2,
            computed_tokens: 3,
            cached_tokens: 4,
            prepare: millis(1),
            queue_wait: millis(5),
            state_wait: millis(6),
            state_time: millis(6),
            engine_wait: millis(7),
            engine_time: Duration::from_micros(8_250),
            steps_time: Duration::from_micros(8_250),
            behind_registration: true,
            state_tokenisations: 1,
            rows: Vec::new(),
            prefix_tokens: 0,
            runs: 1,
        };
        let mut headers = HeaderMap::new();
        add_cost(&mut headers, &cost, millis(40));
        assert_eq!(headers["x-docket-queue-ms"], "12.0");
        assert_eq!(headers["x-docket-wait-behind"], "registration");
        assert_eq!(headers["x-docket-lane"], "batch");
        let timing = headers["server-timing"].to_str().unwrap();
        let entries: Vec<(&str, f64)> = timing
            .split(", ")
            .map(|entry| entry.split_once(";dur=").unwrap())
            .map(|(name, ms)| (name, ms.parse().unwrap()))
            .collect();
        let names: Vec<&str> = entries.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["queue", "state", "engine-wait", "engine", "other", "total"]);
        let sum: f64 = entries[..5].iter().map(|(_, ms)| ms).sum();
        assert!((sum - entries[5].1).abs() <= 1.0, "{timing}");
    }

    #[test]
    fn tokens_have_fields_beside_those_of_requests_and_share_the_policy() {
        let (allowed, retry_after) = (true, Duration::ZERO);
        let requests = Quota { limit: 600, remaining: 599, reset_s: 1, allowed, retry_after };
        let tokens = Bucket { held: -50.5, burst: 1_000, per_minute: 6_000 };
        let told = |requests, tokens| {
            let mut headers = HeaderMap::new();
            add_quotas(&mut headers, requests, tokens);
            let text =
                |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
            let of = [
                "policy",
                "limit",
                "remaining",
                "limit-tokens",
                "remaining-tokens",
                "reset-tokens",
            ];
            of.map(|name| text(&format!("ratelimit-{name}")).unwrap_or_default())
        };
        let policy = "1000;w=10;comment=\"tokens\"";
        assert_eq!(told(None, None), [""; 6]);
        assert_eq!(told(Some(requests), None), ["600;w=60", "600", "599", "", "", ""]);
        assert_eq!(told(None, Some(tokens)), [policy, "", "", "1000", "0", "11"]);
        let both = told(Some(requests), Some(Bucket { held: 250.5, ..tokens }));
        let policies = format!("600;w=60, {policy}");
        assert_eq!(both, [policies.as_str(), "600", "599", "1000", "250", "8"]);
    }

    #[test]
    fn salts_of_header_and_body_are_told_apart() {
        let salt = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let of = |header: &str, body: &str| joined(salt(header), salt(body));
        let salts = [of("", ""), of("a", ""), of("a", "b"), of("a", "\nb"), of("b", "a")];
        let distinct: std::collections::HashSet<_> = salts.iter().collect();
        assert_eq!(distinct.len(), salts.len(), "{salts:?}");
        assert_eq!((of("", ""), of("a", ""), of("", "a")), (None, salt("a"), salt("a")));
    }

    #[test]
    fn wishes_that_cannot_be_granted_name_their_header() {
        let limits = RequestLimits::default();
        let read = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            Wishes::read(&headers, &limits)
        };
        assert_eq!(read(PRIORITY, "urgent").unwrap().lane, Some(Lane::Urgent));
        assert_eq!(read(TIMEOUT_MS, "250").unwrap().timeout, Some(Duration::from_millis(250)));
        assert_eq!(read(SALT, "s").unwrap().salt.as_deref(), Some("s"));
        for (header, value) in [
            (PRIORITY, "high"),
            (PRIORITY, "é"),
            (TIMEOUT_MS, "0"),
            (TIMEOUT_MS, "1.5"),
            (TIMEOUT_MS, "+5"),
            (TIMEOUT_MS, "-5"),
            (TIMEOUT_MS, ""),
            (TIMEOUT_MS, "600001"),
            (SALT, "x".repeat(SALT_BYTES_MAX + 1).as_str()),
        ] {
            let fault = read(header, value).unwrap_err();
            assert!(matches!(fault, RequestFault::Header { name, .. } if name == header));
        }
    }
}
