//! The running binary over a server that runs the model, which is killed and returns.

#[path = "../http/remote/answers.rs"]
mod answers;
#[path = "../http/remote/stub.rs"]
#[expect(dead_code, reason = "the tests of the engine do more with it")]
mod stub;
#[path = "../http/remote/truth.rs"]
#[expect(dead_code, reason = "the tests of the engine do more with it")]
mod truth;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use docket::engine::remote::Protocol;
use docket::files::{self, Architecture, DecoderConfig};
use docket::prompt::tokens::model::ModelTokenizer;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::server::{Reply, Server, decision, try_post};
use crate::writers::gguf;
use crate::writers::wide::wide;
use stub::{Nature, Stub};

/// Longest time for anything to come about.
const PATIENCE: Duration = Duration::from_mins(1);

const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
                        {{ message.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n";

/// Writes the model that the stub says it has.
fn write_model(home: &Path) -> PathBuf {
    let model = wide(Architecture::Qwen2);
    let config = DecoderConfig { context: 8192, ..model.config };
    let mut entries = gguf::hyper_parameters(&config);
    entries.extend(gguf::vocabulary_entries(&gguf::vocabulary(&config)));
    entries.push(("tokenizer.chat_template".to_owned(), Value::String(TEMPLATE.to_owned())));
    let path = home.join("ours.gguf");
    gguf::write_raw(&path, &entries, &gguf::stored(&config, &model.tensors, GgmlDType::Q8_0));
    path
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A server that has the model of this file.
fn nature(protocol: Protocol, path: &Path) -> Nature {
    let parts = files::open_prompt(path).unwrap();
    let tokenizer = Some(Arc::new(ModelTokenizer::new(path, &parts.tokenizer).unwrap()));
    Nature { tokenizer, context: 8192, ..Nature::of(protocol) }
}

fn ask(server: &Server, number: usize) -> Reply {
    server.ask(&format!("Parcel {number} was promised for Monday."), "Is it late?")
}

/// Waits until the server is ready, or is not.
fn until_ready(server: &Server, is_ready: bool) {
    let began = Instant::now();
    while (server.try_get("/health?ready=1").unwrap().status == 200) != is_ready {
        assert!(began.elapsed() < PATIENCE, "{}", server.get("/health"));
        std::thread::yield_now();
    }
}

#[test]
fn docket_serves_what_other_servers_run_and_outlives_them() {
    let (home, runtime) = (TempDir::new().unwrap(), runtime());
    let path = write_model(home.path());
    for protocol in [Protocol::Vllm, Protocol::Sglang, Protocol::LlamaServer] {
        let mut stub = Stub::start(runtime.handle(), nature(protocol, &path));
        let (url, file) = (stub.url(), path.to_str().unwrap());
        let flags = ["--engine", protocol.name(), "--engine-url", &url, "--engine-retry-for", "0s"];
        let server = Server::start(&[&[file], &flags[..]].concat());
        let first = ask(&server, 1);
        assert_eq!(first.status, 200, "{first:?}");
        let again = ask(&server, 1);
        assert_eq!(again.body["answers"], first.body["answers"], "{protocol:?}");
        assert!(again.number("x-docket-cached-tokens") > 0, "{again:?}");
        let health = server.get("/health");
        assert_eq!(health["details"]["model"]["engine"], protocol.name(), "{health}");
        let servers = &health["details"]["engine"]["servers"];
        assert_eq!((&servers[0]["url"], &servers[0]["up"]), (&json!(url), &json!(true)));
        stub.kill();
        let lost = ask(&server, 2);
        assert_eq!((lost.status, lost.text("x-docket-reason")), (503, Some("engine_unavailable")));
        until_ready(&server, false);
        let unready = server.try_get("/health?ready=1").unwrap().body;
        assert_eq!(unready["ok"], true, "it is alive: {unready}");
        let reason = unready["reason"].as_str().unwrap();
        assert!(reason.contains("none of 1 servers") && !reason.contains(&url), "{reason}");
        assert_eq!(server.metric("docket_remote_servers{state=\"down\"}"), 1);
        // More failures than any engine of this process may have.
        for number in 3..12 {
            assert_eq!(ask(&server, number).status, 503);
        }
        stub.listen();
        until_ready(&server, true);
        assert_eq!(ask(&server, 2).status, 200, "{protocol:?}");
        stub.assert_sound();
        server.terminate();
        assert!(server.wait().success());
    }
}

#[test]
fn every_request_ends_when_the_server_is_killed_under_load() {
    let (home, runtime) = (TempDir::new().unwrap(), runtime());
    let path = write_model(home.path());
    let pace = Duration::from_millis(30);
    let nature = Nature { pace, ..nature(Protocol::Vllm, &path) };
    let mut stub = Stub::start(runtime.handle(), nature);
    let (url, file) = (stub.url(), path.to_str().unwrap());
    let server = Server::start(&[file, "--engine", "vllm", "--engine-url", &url]);
    let base = server.base().to_owned();
    let clients: Vec<_> = (0..8)
        .map(|client| {
            let base = base.clone();
            std::thread::spawn(move || {
                let asked = (0..12).map(|number| {
                    let body = decision(&format!("Parcel {client} {}.", number / 3), "Is it late?");
                    try_post(&base, "/v1/systemone", &body).expect("an answer").status
                });
                asked.collect::<Vec<u16>>()
            })
        })
        .collect();
    stub.until(|record| record.seen.len() > 20);
    stub.kill();
    until_ready(&server, false);
    stub.listen();
    until_ready(&server, true);
    let statuses: Vec<u16> =
        clients.into_iter().flat_map(|c| c.join().expect("no panic")).collect();
    assert_eq!(statuses.len(), 96);
    assert!(statuses.iter().all(|status| [200, 503, 429].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&200), "{statuses:?}");
    assert_eq!(ask(&server, 1).status, 200);
    stub.assert_sound();
}

#[test]
fn a_server_with_another_tokenizer_is_refused_at_the_start_and_the_key_is_never_told() {
    let (home, runtime) = (TempDir::new().unwrap(), runtime());
    let path = write_model(home.path());
    let foreign = Nature { is_foreign: true, ..nature(Protocol::LlamaServer, &path) };
    let stub = Stub::start(runtime.handle(), Nature { key: Some("s3cret"), ..foreign });
    let output = Command::new(env!("CARGO_BIN_EXE_docket"))
        .args(["serve", "--port", "0", "--offline", "--engine", "llama-server", "--engine-url"])
        .args([stub.url().as_str(), path.to_str().unwrap()])
        .env("DOCKET_ENGINE_KEY", "s3cret")
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(log.contains("another tokenizer") && !log.contains("s3cret"), "{log}");
}
