//! The document holds together.

use std::collections::BTreeSet;

use super::*;

fn of(served: &Served) -> Value {
    serde_json::from_str(&document(served)).unwrap()
}

fn served(dialect: Dialect) -> Served {
    Served { dialect, ..Served::default() }
}

/// Every operation, with its method and path.
fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let each = paths.iter().flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (method.clone(), path.clone(), operation))
    });
    each.collect()
}

/// The component that a response of an operation is.
fn response<'a>(document: &'a Value, operation: &Value, status: &str) -> &'a Value {
    let name = operation["responses"][status]["$ref"]
        .as_str()
        .unwrap_or_else(|| panic!("{} has no {status}", operation["operationId"]));
    let name = name.rsplit('/').next().unwrap();
    &document["components"]["responses"][name]
}

#[test]
fn every_reference_is_defined_and_every_component_used() {
    for dialect in Dialect::ALL {
        let document = of(&served(dialect));
        let text = document.to_string();
        for kind in ["schemas", "parameters", "headers", "responses"] {
            let defined = document["components"][kind].as_object().unwrap();
            let start = format!("\"#/components/{kind}/");
            let used: BTreeSet<&str> =
                text.split(&start).skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
            let defined: BTreeSet<&str> = defined.keys().map(String::as_str).collect();
            assert_eq!(used, defined, "{kind}");
        }
    }
}

#[test]
fn every_operation_has_a_name_of_its_own_and_links_name_operations() {
    let document = of(&Served::default());
    let operations = operations(&document);
    let ids: BTreeSet<&str> = operations
        .iter()
        .map(|(.., operation)| operation["operationId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), operations.len());
    let responses = document["components"]["responses"].as_object().unwrap().values();
    let links = responses.filter_map(|response| response["links"].as_object());
    let named: Vec<&str> = links
        .flat_map(|links| links.values())
        .map(|l| l["operationId"].as_str().unwrap())
        .collect();
    assert!(named.len() > 5, "{named:?}");
    assert!(named.iter().all(|name| ids.contains(name)), "{named:?}");
}

#[test]
fn routes_without_a_dialect_are_those_of_the_server() {
    for dialect in Dialect::ALL {
        let document = of(&served(dialect));
        let schema = |path: &str| {
            let body = &document["paths"][path]["post"]["requestBody"]["content"];
            body["application/json"]["schema"].clone()
        };
        let named = format!("/{}/v1/systemone", dialect.name());
        assert_eq!(schema("/v1/systemone"), schema(&named));
        assert_eq!(schema("/v1/decisions"), schema("/openai/v1/decisions"));
        assert_eq!(schema("/v1/answer"), schema("/decisio/v1/answer"));
        let has_batches = document["paths"].get("/v1/systemone/batch").is_some();
        assert_eq!(has_batches, dialect != Dialect::Openai);
    }
}

#[test]
fn a_refusal_for_lack_of_room_lists_what_it_tells() {
    let document = of(&Served::default());
    let told = |route: &str, status: &str| {
        let method = document["paths"][route].as_object().unwrap().values().next().unwrap();
        let headers = response(&document, method, status)["headers"].as_object().unwrap();
        headers.keys().cloned().collect::<BTreeSet<_>>()
    };
    let names = |listed: &[&str]| listed.iter().map(|name| (*name).to_owned()).collect();
    let full = [
        "retry-after",
        "retry-after-ms",
        "x-docket-downgrade",
        "x-docket-ignored",
        "x-docket-reason",
        "x-typesafe-request-id",
    ];
    assert_eq!(told("/v1/systemone", "429"), names(&full));
    assert_eq!(told("/gmlx/v1/systemone", "503"), names(&full));
    let faulty = ["x-docket-ignored", "x-docket-reason", "x-typesafe-request-id"];
    assert_eq!(told("/prewarm", "422"), names(&faulty));
    assert_eq!(told("/health", "503"), names(&["x-typesafe-request-id"]));
    let full = of(&Served { full: FullStatus::ServiceUnavailable, ..Served::default() });
    assert_eq!(full["paths"]["/v1/systemone"]["post"]["responses"].get("429"), None);
}

#[test]
fn statuses_are_those_of_the_dialect() {
    let document = of(&Served::default());
    let statuses = |path: &str| {
        let responses = document["paths"][path]["post"]["responses"].as_object().unwrap();
        responses.keys().map(|status| status.parse::<u16>().unwrap()).collect::<BTreeSet<_>>()
    };
    let has = |path: &str, listed: &[u16]| {
        let found = statuses(path);
        assert!(listed.iter().all(|status| found.contains(status)), "{path}: {found:?}");
    };
    let lacks = |path: &str, listed: &[u16]| {
        let found = statuses(path);
        assert!(!listed.iter().any(|status| found.contains(status)), "{path}: {found:?}");
    };
    has("/v1/systemone", &[200, 400, 401, 408, 413, 414, 415, 422, 429, 431, 500, 503, 504]);
    lacks("/v1/systemone", &[404, 501, 502]);
    has("/vllm/v1/systemone", &[200, 400, 404, 501, 503, 504]);
    lacks("/vllm/v1/systemone", &[415, 422, 429]);
    has("/v1/decisions", &[200, 400, 401, 429]);
    lacks("/v1/decisions", &[415, 422]);
    has("/self/v1/systemone", &[400, 413, 422, 429]);
    has("/gmlx/v1/systemone", &[400, 415, 422, 503, 504]);
    lacks("/gmlx/v1/systemone", &[429]);
    let seeing = of(&Served { images_max: 2, ..Served::default() });
    assert!(seeing["paths"]["/v1/systemone"]["post"]["responses"].get("502").is_some());
}

#[test]
fn codes_and_reasons_are_those_that_the_dialects_give() {
    let document = of(&Served::default());
    let at = |path: &str, status: &str| {
        let operation = &document["paths"][path]["post"];
        response(&document, operation, status).clone()
    };
    let schema = |path: &str, status: &str| {
        at(path, status)["content"]["application/json"]["schema"]["properties"].clone()
    };
    let refused = &schema("/gmlx/v1/systemone", "503")["error"]["properties"];
    assert_eq!(refused["type"]["enum"], json!(["server_error", "server_overloaded"]));
    assert_eq!(refused["queue_depth"]["type"], "integer");
    let refused = &schema("/vllm/v1/systemone", "400")["error"]["properties"];
    assert_eq!(refused["type"]["enum"], json!(["Bad Request", "BadRequestError"]));
    assert_eq!(refused["code"]["enum"], json!([400]));
    let refused = &schema("/self/v1/systemone", "503")["error"]["properties"];
    let listed = json!(["queue_full", "runtime_crashed", "shutting_down", "store_unavailable"]);
    assert_eq!(refused["type"]["enum"], listed);
    let reasons = &at("/v1/systemone", "429")["headers"]["x-docket-reason"]["schema"]["enum"];
    let listed = json!([
        "displaced",
        "queue_full",
        "registrations_full",
        "tenant",
        "tokens",
        "tokens_per_minute",
        "wait"
    ]);
    assert_eq!(*reasons, listed);
}

#[test]
fn a_deadline_is_a_parameter_and_a_field() {
    let document = of(&Served::default());
    let most = crate::config::DecisionConfig::default().timeout_max.as_millis();
    for route in ["/v1/systemone", "/v1/decide", "/v1/prewarm", "/prewarm", "/vllm/v1/decide"] {
        let named = json!({"$ref": "#/components/parameters/timeoutMs"});
        let parameters = document["paths"][route]["post"]["parameters"].as_array().unwrap();
        assert!(parameters.contains(&named), "{route}");
    }
    let limit = &document["components"]["parameters"]["timeoutMs"]["schema"]["maximum"];
    assert_eq!(limit.as_u64().map(u128::from), Some(most));
    for schema in ["SystemoneDecision", "Prewarm"] {
        let fields = &document["components"]["schemas"][schema]["properties"];
        assert_eq!(fields["timeout_ms"]["maximum"], *limit, "{schema}");
    }
}

#[test]
fn a_key_is_asked_for_where_there_are_keys() {
    let open = of(&Served::default());
    assert_eq!(open["security"][0], json!({}));
    let closed = of(&Served { needs_key: true, ..Served::default() });
    assert_eq!(closed["security"], json!([{"bearer": []}, {"key": []}]));
    let public: BTreeSet<String> = operations(&closed)
        .into_iter()
        .filter(|(.., operation)| operation.get("security").is_some())
        .map(|(_, path, _)| path)
        .collect();
    assert!(public.iter().all(|path| path.ends_with("/health") || path == "/openapi.json"));
    assert_eq!(public.len(), 2 + Dialect::ALL.len());
}
