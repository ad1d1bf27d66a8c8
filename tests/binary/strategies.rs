//! Models that our decoder does not have: those that another engine reads, and those that no question
//! can be read from.

use std::path::{Path, PathBuf};
use std::process::Command;

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use docket::files::{Architecture, DecoderConfig};
use serde_json::json;
use tempfile::TempDir;

use crate::server::Server;
use crate::writers::foreign::{self, ForeignModel};
use crate::writers::gguf;
use crate::writers::wide::wide;

const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
                        {{ message.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n";

/// Writes a file of an architecture that only the reference engine has, with a chat template.
fn write_foreign(home: &Path, name: &str) -> PathBuf {
    let mut model: ForeignModel =
        foreign::all().into_iter().find(|model| model.name == name).unwrap();
    model.set("context_length", Some(Value::U32(4096)));
    let mut entries = model.entries();
    entries.push(("tokenizer.chat_template".to_owned(), Value::String(TEMPLATE.to_owned())));
    let path = home.join(format!("{name}.gguf"));
    gguf::write_raw(&path, &entries, &model.stored(GgmlDType::Q8_0));
    path
}

/// Asks, prewarms, looks around and stops; everything that is asked must be refused with words of
/// `why`, and at once.
fn assert_refuses_everything(path: &Path, why: &str) {
    let server = Server::start(&[path.to_str().unwrap()]);
    for _ in 0..3 {
        let asked = server.ask("The parcel is late.", "Is it late?");
        let warmed = server.post("/v1/prewarm", &json!({ "state": "The parcel is late." }));
        for reply in [asked, warmed] {
            assert_eq!(reply.status, 422, "{reply:?}");
            assert_eq!(reply.text("x-docket-reason"), Some("unsupported_capability"));
            assert_eq!(reply.body["detail"][0]["type"], "unsupported_capability");
            assert!(reply.body["detail"][0]["msg"].as_str().unwrap().contains(why), "{reply:?}");
        }
    }
    let noul = json!({"state": "s", "questions": {"q": {"type": "noul"}}});
    let not_implemented = server.post("/vllm/v1/systemone", &noul);
    assert_eq!(not_implemented.status, 501, "{not_implemented:?}");
    assert_eq!(not_implemented.body["error"]["type"], "NotImplementedError");
    let faulty = server.post("/v1/systemone", &json!({ "questions": {} }));
    assert_eq!(faulty.text("x-docket-reason"), Some("invalid"), "{faulty:?}");
    for route in ["/health", "/health?ready=1"] {
        let health = server.get(route);
        assert_eq!((&health["ok"], &health["ready"]), (&json!(true), &json!(false)));
        assert!(health["reason"].as_str().unwrap().contains(why), "{health}");
        assert_eq!(health["details"]["model"]["read_strategy"], json!(null));
        assert!(health["details"]["model"]["reason"].as_str().unwrap().contains(why));
    }
    let description = server.get("/v1/models")["models"][0]["description"].clone();
    assert!(description.as_str().unwrap().contains("answers no questions"), "{description}");
    server.terminate();
    assert!(server.wait().success());
}

#[test]
fn an_encoder_starts_says_so_and_refuses_every_question() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("encoder.gguf");
    for name in ["bert", "t5"] {
        let entries = vec![("general.architecture".to_owned(), Value::String(name.to_owned()))];
        gguf::write_raw(&path, &entries, &[]);
        assert_refuses_everything(&path, &format!("{name} is not causal"));
    }
}

#[test]
fn letters_that_are_no_tokens_with_their_space_are_read_behind_one() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("wordless.gguf");
    // Without a chat template a label follows a space; here one letter alone is one token with it.
    let model = wide(Architecture::Qwen2);
    let mut vocabulary = gguf::vocabulary(&model.config);
    vocabulary.merges.retain(|merge| merge != "Ġ w");
    let mut entries = gguf::hyper_parameters(&model.config);
    entries.extend(gguf::vocabulary_entries(&vocabulary));
    let tensors = gguf::stored(&model.config, &model.tensors, GgmlDType::Q8_0);
    gguf::write_raw(&path, &entries, &tensors);
    let server = Server::start(&[path.to_str().unwrap()]);
    let asked = server.ask("The parcel is late.", "Is it late?");
    assert_eq!(asked.status, 200, "{asked:?}");
    let noul = asked.body["answers"]["q"]["noul"].as_f64().unwrap();
    assert!(noul > 0.0 && noul < 1.0, "{noul}");
}

#[test]
fn an_architecture_that_cpu_has_not_runs_on_the_reference_engine_by_itself() {
    let home = TempDir::new().unwrap();
    let path = write_foreign(home.path(), "glm4");
    let server = Server::start(&[path.to_str().unwrap()]);
    let model = server.get("/health")["details"]["model"].clone();
    assert_eq!((&model["engine"], &model["architecture"]), (&json!("reference"), &json!("glm4")));
    assert!(model["reason"].as_str().unwrap().contains("glm4"), "{model}");
    assert!(model["shared"].as_str().unwrap().starts_with("nothing"), "{model}");
    assert_eq!(server.get("/health?ready=1")["ready"], json!(true));
    let [first, again] = [0, 1].map(|_| server.ask("The parcel is late.", "Is it late?"));
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(first.body["answers"], again.body["answers"]);
    let noul = first.body["answers"]["q"]["noul"].as_f64().unwrap();
    assert!(noul > 0.0 && noul < 1.0, "{noul}");
    assert_eq!(again.number("x-docket-cached-tokens"), 0, "nothing is kept");
}

/// Writes a model that every engine has, with a chat template.
fn write_ours(home: &Path, context: usize) -> PathBuf {
    let model = wide(Architecture::Qwen2);
    let config = DecoderConfig { context, ..model.config };
    let mut entries = gguf::hyper_parameters(&config);
    entries.extend(gguf::vocabulary_entries(&gguf::vocabulary(&config)));
    entries.push(("tokenizer.chat_template".to_owned(), Value::String(TEMPLATE.to_owned())));
    let path = home.join("ours.gguf");
    gguf::write_raw(&path, &entries, &gguf::stored(&config, &model.tensors, GgmlDType::Q8_0));
    path
}

#[test]
fn the_reference_engine_says_once_what_it_costs_where_it_was_asked_for_too() {
    let home = TempDir::new().unwrap();
    let path = write_ours(home.path(), 4096);
    let server = Server::start(&["--engine", "reference", path.to_str().unwrap()]);
    let is_warning = |line: &&String| line.contains("WARN") && line.contains("reference engine");
    let log = server.log();
    assert_eq!(log.iter().filter(is_warning).count(), 1, "{log:?}");
    let model = server.get("/health")["details"]["model"].clone();
    assert_eq!((&model["engine"], &model["precision"]), (&json!("reference"), &json!("f32")));
    assert_eq!((&model["context_tokens"], &model["memory"]), (&json!(4096), &json!(null)));
    let warmed = server.post("/v1/prewarm", &json!({ "state": "The parcel is late." }));
    assert_eq!(warmed.body["prefix"]["tier"], "unsupported", "{warmed:?}");
    assert_eq!(warmed.body["ok"], json!(false), "{warmed:?}");
}

#[test]
fn a_dialect_that_needs_the_label_mass_has_it_where_label_rows_alone_are_read() {
    let home = TempDir::new().unwrap();
    let path = write_ours(home.path(), 4096);
    let body = json!({"state": "s", "questions": {
        "noul": {"type": "noul"}, "choice": {"type": "choice", "criteria": {"a": null, "b": null}}}});
    let [full, rows] = ["full", "rows"].map(|readout| {
        let server = Server::start(&["--readout", readout, path.to_str().unwrap()]);
        let decided = server.post("/vllm/v1/systemone", &body);
        assert_eq!(decided.status, 200, "{decided:?}");
        let with_diagnostics =
            json!({"diagnostics": true, "state": "s", "questions": {"q": {"type": "noul"}}});
        let told = server.post("/v1/systemone", &with_diagnostics);
        let has_mass = told.body["answers"]["q"]["x_diagnostics"].get("label_mass").is_some();
        assert_eq!(has_mass, readout == "full", "{told:?}");
        (decided.body["answers"].clone(), decided.body["diagnostics"].clone())
    });
    assert!(full.1["noul"]["label_mass"].as_f64().unwrap() > 0.0, "{full:?}");
    assert_eq!(full, rows);
}

#[test]
fn a_context_without_room_for_a_prompt_is_refused_at_the_start() {
    let home = TempDir::new().unwrap();
    let path = write_ours(home.path(), 1);
    for engine in ["cpu", "reference"] {
        let log = refusal(home.path(), &["--engine", engine, path.to_str().unwrap()]);
        assert!(log.contains("its context is 1 tokens, fewer than the "), "{log}");
    }
}

/// What `serve` says when it does not start.
fn refusal(home: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_docket"))
        .args(["serve", "--port", "0", "--offline", "--home"])
        .arg(home)
        .args(arguments)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(!log.contains("listening on") && !log.contains("panicked"), "{log}");
    log
}

#[test]
fn damage_of_an_installed_model_that_only_the_reference_engine_has_is_found() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("models/smollm2-135m");
    std::fs::create_dir_all(&folder).unwrap();
    let foreign = write_foreign(&folder, "phi3");
    let encoder = folder.join("encoder.gguf");
    let bert = vec![("general.architecture".to_owned(), Value::String("bert".to_owned()))];
    gguf::write_raw(&encoder, &bert, &[]);
    for path in [foreign, encoder] {
        let file = path.file_name().unwrap().to_str().unwrap();
        let found = std::fs::metadata(&path).unwrap();
        let changed = found.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        let record = json!({
            "name": "smollm2:135m",
            "entry": file,
            "files": [{
                "file": file,
                "bytes": found.len(),
                "sha256": "0".repeat(64),
                "changed_ns": u64::try_from(changed.as_nanos()).unwrap(),
            }],
        });
        std::fs::write(folder.join("installed.json"), record.to_string()).unwrap();
        let log = refusal(home.path(), &["smollm2:135m"]);
        assert!(log.contains(file) && log.contains("is damaged: SHA-256"), "{log}");
    }
}

#[test]
fn settings_beyond_a_foreign_model_are_refused_before_its_weights_are_read() {
    let home = TempDir::new().unwrap();
    let path = write_foreign(home.path(), "glm4");
    let mut bytes = std::fs::read(&path).unwrap();
    // Weights that would be refused too; what is found first is told.
    let end = bytes.len();
    bytes[end - 4096..].fill(0xFF);
    std::fs::write(&path, bytes).unwrap();
    let path = path.to_str().unwrap();
    let log = refusal(home.path(), &["--context", "5000", path]);
    assert!(log.contains("--context: 5000 is more than the model's 4096"), "{log}");
    let log = refusal(home.path(), &[path]);
    assert!(log.contains("is damaged: one of its values is"), "{log}");
}

#[test]
fn cpu_asked_for_an_architecture_that_it_has_not_says_which_engine_has_it() {
    let home = TempDir::new().unwrap();
    let path = write_foreign(home.path(), "stablelm");
    let output = Command::new(env!("CARGO_BIN_EXE_docket"))
        .args(["serve", "--port", "0", "--offline", "--engine", "cpu"])
        .arg(&path)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{log}");
    assert!(log.contains("cpu has no architecture stablelm"), "{log}");
    assert!(log.contains("reference has it"), "{log}");
}
