//! Bodies that no one should send. Each gives a 4xx that names the fault, none a 5xx.

use proptest::prelude::*;

use crate::support::{NOUL, call, plain, post, request};

fn state(json: &str) -> String {
    format!(r#"{{"state":{json},"questions":{{"q":{{"type":"noul"}}}}}}"#)
}

fn question(json: &str) -> String {
    format!(r#"{{"state":"s","questions":{{"q":{json}}}}}"#)
}

#[tokio::test]
async fn a_name_in_the_path_that_is_no_text_is_unknown_in_the_dialects_shape() {
    let router = plain();
    for (method, path, about) in [
        ("DELETE", "/v1/prewarm/%ff", "no prewarm %ff"),
        ("DELETE", "/prewarm/%e9t%e9", "no prewarm %e9t%e9"),
        ("DELETE", "/v1/tasks/%ff", "no task %ff"),
        ("GET", "/v1/tasks/%ff/status", "no task %ff"),
        ("DELETE", "/v1/abstention/tasks/%ff", "no task %ff"),
        ("DELETE", "/systemone/v1/tasks/%C0%80", "no task %C0%80"),
    ] {
        let reply = call(&router, request(method, path, "")).await;
        assert_eq!(reply.failure(), (404, "not_found".to_owned()), "{path}");
        assert_eq!(reply.json()["detail"]["message"], about);
        assert_eq!(reply.header("x-docket-reason"), "not_found");
    }
    let reply = call(&router, request("DELETE", "/decisio/v1/tasks/%ff", "")).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["detail"]), (404, &"no task %ff".into()));
    let named = call(&router, request("DELETE", "/v1/tasks/ticket%20one", "")).await;
    assert_eq!((named.status.as_u16(), &named.json()["removed"]), (200, &"ticket one".into()));
}

#[tokio::test]
async fn faults_of_the_text_are_named() {
    let router = plain();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let ignored = format!(r#"{{"x":{deep},"state":1,"questions":{{}}}}"#);
    for (body, code) in [
        (String::new(), "json_invalid"),
        ("{\"state\": \"x\", \"questions\": {".to_owned(), "json_invalid"),
        (format!("{NOUL} {NOUL}"), "json_invalid"),
        (state("NaN"), "json_invalid"),
        (state("-Infinity"), "json_invalid"),
        (state("[1,Infinity]"), "json_invalid"),
        (state(&deep), "json_depth"),
        (ignored, "json_depth"),
        ("[".repeat(3_000), "json_depth"),
        (state(r#""\ud800""#), "lone_surrogate"),
        (question(r#"{"type":"noul","type":"noul"}"#), "duplicate_key"),
        (question(r#"{"type":"choice","criteria":{"a":1,"a":2}}"#), "duplicate_key"),
        (r#"{"state":1,"state":2,"questions":{}}"#.to_owned(), "duplicate_key"),
        ("7".to_owned(), "wrong_type"),
        ("null".to_owned(), "wrong_type"),
        (r#"{"state":1,"questions":{"":{"type":"noul"}}}"#.to_owned(), "id_empty"),
        (question(r#"{"type":"choice","criteria":{"":1}}"#), "option_blank"),
        (format!("[{}0]", "0,".repeat(1_000_000)), "json_size"),
    ] {
        let reply = post(&router, body.clone()).await;
        assert_eq!(reply.fault(), code, "{}", &body[..body.len().min(80)]);
        assert!(reply.body.len() < 2_000);
        assert_eq!(reply.header("content-type"), "application/json");
        assert_eq!(reply.header("x-docket-reason"), "invalid");
    }
}

#[tokio::test]
async fn case_37_bad_utf8_is_refused_without_an_echo() {
    let reply = post(&plain(), b"{\"state\":\"\xff\",\"questions\":{}}".to_vec()).await;
    assert_eq!(reply.fault(), "json_invalid");
    assert!(std::str::from_utf8(&reply.body).unwrap().contains("byte 10"));
}

#[tokio::test]
async fn case_38_a_lone_surrogate_names_its_field() {
    let reply = post(&plain(), question(r#"{"type":"noul","instructions":"\ud800"}"#)).await;
    let loc = &reply.json()["detail"][0]["loc"];
    assert_eq!(*loc, serde_json::json!(["body", "questions", "q", "instructions"]));
}

#[tokio::test]
async fn case_41_duplicate_keys_are_refused() {
    let body = r#"{"state":1,"questions":{"a":{"type":"noul"},"a":{"type":"noul"}}}"#;
    let reply = post(&plain(), body).await;
    assert_eq!(reply.fault(), "duplicate_key");
    assert_eq!(reply.json()["detail"][0]["loc"], serde_json::json!(["body", "questions", "a"]));
}

#[tokio::test]
async fn odd_but_valid_bodies_are_answered() {
    let router = plain();
    let megabytes = "x".repeat(20 << 20);
    for body in [
        state(r#""yes\u0000 no""#),
        state("\"\""),
        state("0"),
        state("false"),
        state(r#"{"":[]}"#),
        state(&format!("\"{megabytes}\"")),
        question(&format!(r#"{{"type":"noul","instructions":"{megabytes}"}}"#)),
        question(r#"{"type":"noul","instructions":null,"criteria":null,"samples":null}"#),
        question(r#"{"type":"choice","criteria":{"\u0000":null," a":{"":1}}}"#),
        r#"{"state":1,"questions":{" ":{"type":"noul"}},"model":[null],"samples":1e9}"#.to_owned(),
    ] {
        let reply = post(&router, body.clone()).await;
        assert_eq!(reply.status, 200, "{}", &body[..body.len().min(80)]);
    }
}

#[tokio::test]
async fn too_many_questions_name_both_numbers() {
    let questions: Vec<String> = (0..65).map(|i| format!(r#""q{i}":{{"type":"noul"}}"#)).collect();
    let body = format!(r#"{{"state":1,"questions":{{{}}}}}"#, questions.join(","));
    let reply = post(&plain(), body).await;
    assert_eq!(reply.fault(), "too_many");
    let message = reply.json()["detail"][0]["msg"].to_string();
    assert!(message.contains("65") && message.contains("64"), "{message}");
}

#[tokio::test]
async fn all_faults_of_a_body_are_listed() {
    let body = r#"{"questions":{"a":{"type":"boolean"},"b":{"type":"score"}},"samples":-1}"#;
    let reply = post(&plain(), body).await;
    let codes: Vec<String> = reply.json()["detail"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(codes, ["samples_invalid", "missing", "unknown_type", "missing"]);
}

/// Any JSON text, mostly of the names and shapes that requests have.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let name = || {
        prop_oneof![
            prop::sample::select(vec![
                "state",
                "questions",
                "type",
                "criteria",
                "instructions",
                "samples",
                "priority",
                "timeout_ms",
                "x_diagnostics",
                "noul",
                "choice",
                "score",
                "auto",
                "urgent",
                "true",
            ])
            .prop_map(str::to_owned),
            any::<String>(),
        ]
    };
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        name().prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::btree_map(name(), inner, 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

fn never_5xx(body: Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let reply = post(&plain(), body).await;
        assert!(reply.status == 200 || reply.status == 422, "{reply:?}");
        reply.json();
    });
}

proptest! {
    #[test]
    fn arbitrary_json_never_gives_5xx(body in json()) {
        never_5xx(body.to_string().into_bytes());
    }

    #[test]
    fn arbitrary_questions_never_give_5xx(question in json()) {
        let body = serde_json::json!({"state": question, "questions": {"q": question}});
        never_5xx(body.to_string().into_bytes());
        for kind in ["noul", "choice", "score"] {
            let asked = serde_json::json!({"type": kind, "criteria": question});
            let body = serde_json::json!({"state": 1, "questions": {"q": asked}});
            never_5xx(body.to_string().into_bytes());
        }
    }

    #[test]
    fn arbitrary_bytes_never_give_5xx(body in prop::collection::vec(any::<u8>(), 0..200)) {
        never_5xx(body);
    }
}
