//! Each driver against a server of a few lines that answers as the real one does.
//!
//! Goal: the same decision reaches every server in the form that it documents, and what it answers
//! comes back as the same distributions. Method: real sockets of this machine, answers with the
//! members and shapes of the servers' public documents.

mod canned;
mod letters;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

use super::*;
use crate::client::{Client, Driver as _, Target};
use crate::exchange::Exchange;
use crate::null;
use crate::workload::Workload;
use crate::workload::decision::Kind;
use canned::{Rule, Seen, serve};

/// A noul, a choice and a score about one state, with `extra` members.
fn recorded(extra: &str) -> Requests {
    let line = json!({
        "state": "I was charged \"twice\".",
        "questions": {
            "refund": { "type": "noul", "instructions": "Is a refund due?" },
            "team": {
                "type": "choice",
                "instructions": "Which team?",
                "criteria": { "billing": "charges", "shipping": null },
            },
            "anger": { "type": "score", "instructions": "How cross?", "criteria": ["calm", "cross"] },
        },
        "lane": "urgent",
    });
    let line = line.to_string().replacen('{', &format!("{{{extra}"), 1);
    let keys = BTreeMap::from([("acme".to_owned(), "sk-1".to_owned())]);
    Requests::new(workload_of(&line), &keys, "test", 1).unwrap()
}

/// The workload of a file of one line. Its name is that of what it holds and who made it, and so
/// two tests never share one.
fn workload_of(line: &str) -> Workload {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hash = DefaultHasher::new();
    (line, std::process::id(), std::thread::current().id()).hash(&mut hash);
    let file = std::env::temp_dir().join(format!("loadtest-{:x}.jsonl", hash.finish()));
    std::fs::write(&file, line).unwrap();
    let workload = Workload::load(file.to_str().unwrap());
    std::fs::remove_file(&file).unwrap();
    workload.unwrap()
}

fn request(requests: &mut Requests) -> Request {
    let planned = requests.draw();
    requests.write(&planned)
}

fn prewarm(requests: &mut Requests) -> Request {
    let planned = requests.draw();
    requests.write(&Requests::prewarm_of(&planned))
}

fn settings(driver: Driver) -> Settings {
    Settings { driver, ..Settings::default() }
}

/// Sends requests one after the other; what came of them, and what the server saw.
async fn exchanges(
    settings: &Settings,
    rule: Rule,
    requests: Vec<Request>,
) -> (Vec<Exchange>, Vec<Seen>) {
    let run = async {
        let (target, log) = serve(rule).await;
        let client = Client::connect(target, settings, Some("sk-1")).await.unwrap();
        let mut ends = Vec::new();
        for request in requests {
            ends.push(client.send(request).await);
        }
        (ends, log.all())
    };
    LocalSet::new().run_until(run).await
}

fn systemone(_: &Seen) -> (u16, String) {
    let body = json!({
        "answers": {
            "refund": { "type": "noul", "noul": 0.75 },
            "team": { "type": "choice", "probabilities": { "billing": 0.9, "shipping": 0.1 } },
            "anger": { "type": "score", "probabilities": { "0": 0.3, "1": 0.7 } },
        },
        "usage": { "input_tokens": 93, "output_tokens": 0 },
    });
    (200, body.to_string())
}

fn openai(_: &Seen) -> (u16, String) {
    let body = json!({
        "model": "m",
        "answers": [
            { "type": "predicate", "name": null, "probability": 0.75 },
            { "type": "choice", "name": null, "choice": "billing", "confidence": 0.8, "probabilities": [
                { "value": "billing", "probability": 0.9 }, { "value": "shipping", "probability": 0.1 },
            ] },
            { "type": "score", "name": null, "score": 0.7, "confidence": 0.4, "probabilities": [
                { "value": 0, "label": "calm", "probability": 0.3 },
                { "value": 1, "label": "cross", "probability": 0.7 },
            ] },
        ],
        "usage": { "input_tokens": 150, "input_tokens_details": { "cached_tokens": 0 } },
    });
    (200, body.to_string())
}

fn expected() -> Vec<Vec<f64>> {
    vec![vec![0.75], vec![0.9, 0.1], vec![0.3, 0.7]]
}

#[tokio::test]
async fn dialects_get_one_body_each_at_their_own_path() {
    for (driver, path) in [
        (Driver::Systemone, "/v1/systemone"),
        (Driver::Decisio, "/decisio/v1/systemone"),
        (Driver::SelfServe, "/self/v1/systemone"),
        (Driver::Vllm, "/vllm/v1/systemone"),
        (Driver::Gmlx, "/gmlx/v1/systemone"),
    ] {
        let mut requests = recorded("\"context\": \"c\", ");
        let asked = vec![request(&mut requests), prewarm(&mut requests)];
        let (ends, seen) = exchanges(&settings(driver), systemone, asked).await;
        assert_eq!((ends[0].outcome, ends[0].parts), (Outcome::Answered, 1), "{:?}", ends[0]);
        assert_eq!(ends[0].answers, Some(expected()));
        let input = ends[0].reply.as_ref().unwrap().input_tokens;
        assert_eq!(input.is_some(), !matches!(driver, Driver::Vllm | Driver::Gmlx));
        assert_eq!((seen[0].path.as_str(), seen.len()), (path, 2));
        let members: Vec<&String> = seen[0].body.as_object().unwrap().keys().collect();
        assert_eq!(members, ["state", "questions", "context"]);
        assert!(seen[0].head.contains("x-docket-priority: urgent"));
        assert!(seen[0].head.contains("authorization: bearer sk-1"));
        assert_eq!(seen[1].path, path.replace("systemone", "prewarm"));
        assert_eq!(seen[1].body, json!({ "state": "I was charged \"twice\"." }));
        assert_eq!((ends[1].outcome, &ends[1].answers), (Outcome::Answered, &None));
    }
}

#[tokio::test]
async fn samples_and_model_go_where_they_are_known() {
    let mut workload = Workload::load("smoke").unwrap();
    workload.traffic[0].samples = Some(toml::Value::Integer(2));
    for (driver, samples) in [
        (Driver::Systemone, json!(2)),
        (Driver::Decisio, json!(2)),
        (Driver::Gmlx, json!(2)),
        (Driver::SelfServe, Value::Null),
        (Driver::Vllm, Value::Null),
        (Driver::Openai, Value::Null),
    ] {
        let mut requests = Requests::new(workload.clone(), &BTreeMap::new(), "test", 1).unwrap();
        let settings = Settings { model: Some("a\"b".to_owned()), ..settings(driver) };
        let (_, seen) = exchanges(&settings, systemone, vec![request(&mut requests)]).await;
        let body = &seen[0].body;
        assert_eq!((&body["samples"], body["model"].as_str()), (&samples, Some("a\"b")));
    }
}

#[tokio::test]
async fn openai_gets_its_own_form() {
    let mut requests = recorded("\"context\": \"c\", ");
    let asked = vec![request(&mut requests), prewarm(&mut requests)];
    let (ends, seen) = exchanges(&settings(Driver::Openai), openai, asked).await;
    assert_eq!(
        (seen[0].path.as_str(), seen[1].path.as_str()),
        ("/openai/v1/decisions", "/openai/v1/prewarm")
    );
    assert_eq!(
        seen[0].body,
        json!({
            "input": "I was charged \"twice\".",
            "questions": [
                { "type": "predicate", "instructions": "Is a refund due?" },
                { "type": "choice", "instructions": "Which team?",
                    "choices": [{ "value": "billing", "description": "charges" }, { "value": "shipping" }] },
                { "type": "score", "instructions": "How cross?",
                    "levels": [{ "label": "calm" }, { "label": "cross" }] },
            ],
            "model": "default",
        })
    );
    assert_eq!((ends[0].outcome, &ends[0].answers), (Outcome::Answered, &Some(expected())));
}

#[tokio::test]
async fn a_path_of_its_own_has_its_prewarm_beside_it() {
    let mut requests = recorded("");
    let settings = Settings { path: Some("/api/v1/decide".to_owned()), ..settings(Driver::Vllm) };
    let asked = vec![request(&mut requests), prewarm(&mut requests)];
    let (_, seen) = exchanges(&settings, systemone, asked).await;
    let paths: Vec<&str> = seen.iter().map(|seen| seen.path.as_str()).collect();
    assert_eq!(paths, ["/api/v1/decide", "/api/v1/prewarm"]);
}

#[tokio::test]
async fn answers_that_are_missing_are_a_fault() {
    let one: Rule = |_| (200, r#"{"answers": {"team": {}}}"#.to_owned());
    let (ends, _) =
        exchanges(&settings(Driver::Systemone), one, vec![request(&mut recorded(""))]).await;
    assert_eq!(ends[0].outcome, Outcome::Failed);
    assert_eq!(ends[0].fault.as_deref(), Some("decision 0: 200 OK: {\"answers\": {\"team\": {}}}"));
}

async fn serve_nothing(listener: TcpListener) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        spawn_local(null::answer(stream));
    }
}

/// A few decisions and a prewarm, all answered.
async fn smoke(driver: Driver, target: Target) {
    let client = Client::connect(target, &settings(driver), None).await.unwrap();
    let workload = Workload::load("mixed-lanes").unwrap();
    let mut requests = Requests::new(workload, &BTreeMap::new(), "test", 1).unwrap();
    client.check(&requests).unwrap();
    for _ in 0..10 {
        let asked = request(&mut requests);
        let questions = asked.decision.questions.clone();
        let end = client.send(asked).await;
        assert_eq!((end.outcome, &end.fault), (Outcome::Answered, &None), "{driver:?}");
        let answers = end.answers.unwrap();
        assert_eq!(answers.len(), questions.len());
        let noul = questions.iter().position(|question| question.kind == Kind::Noul);
        assert!(noul.is_none_or(|noul| (answers[noul][0] - 0.5).abs() < 1e-9));
    }
    let end = client.send(prewarm(&mut requests)).await;
    assert_eq!((end.outcome, end.parts), (Outcome::Answered, u32::from(driver.prewarms())));
}

#[tokio::test]
async fn every_driver_is_answered_by_the_null_server() {
    use clap::ValueEnum as _;
    let run = async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        spawn_local(serve_nothing(listener));
        for driver in Driver::value_variants() {
            smoke(*driver, Target::resolve(&url).await.unwrap()).await;
        }
    };
    LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn what_a_form_cannot_ask_is_named_before_a_run() {
    let check = async |driver, requests: &Requests| {
        let run = async {
            let rule: Rule = |_| (200, r#"{"data": [{"id": "m"}]}"#.to_owned());
            let (target, _) = serve(rule).await;
            let client = Client::connect(target, &settings(driver), None).await.unwrap();
            client.check(requests).map_err(|fault| fault.to_string())
        };
        LocalSet::new().run_until(run).await
    };
    let mut many = Workload::load("smoke").unwrap();
    many.traffic[0].questions.options = [27, 27];
    let many = Requests::new(many, &BTreeMap::new(), "test", 1).unwrap();
    let fault = check(Driver::LlamaServer, &many).await.unwrap_err();
    assert_eq!(fault, "--driver llama-server asks for a letter, at most 26 options, not 27");
    assert_eq!(check(Driver::Systemone, &many).await, Ok(()));

    let workload = workload_of(r#"{"state": "s", "questions": {"q": {"type": "number"}}}"#);
    let number = Requests::new(workload, &BTreeMap::new(), "test", 1).unwrap();
    for driver in [Driver::Openai, Driver::Completions] {
        let fault = check(driver, &number).await.unwrap_err();
        assert!(fault.contains("nouls, choices and scores, not {\"type\": \"number\"}"), "{fault}");
    }
    assert_eq!(check(Driver::Gmlx, &number).await, Ok(()));
}
