//! Listings of repositories, and the files that are taken of them.

use tempfile::TempDir;

use super::*;

const INDEX_TEXT: &str = r#"{"metadata": {}, "weight_map": {
    "a": "model-00002-of-00002.safetensors", "b": "model-00001-of-00002.safetensors",
    "c": "model-00001-of-00002.safetensors"}}"#;

fn listing(files: &[&str]) -> Listing {
    let siblings: Vec<serde_json::Value> = files
        .iter()
        .map(|path| serde_json::json!({"rfilename": path, "size": INDEX_TEXT.len()}))
        .collect();
    serde_json::from_value(serde_json::json!({"sha": "c0ffee", "siblings": siblings})).unwrap()
}

/// The files that `reference` takes of a repository that holds `files` and the index above.
fn taken(reference: &str, files: &[&str]) -> Result<(String, Vec<String>), PullError> {
    let home = TempDir::new().unwrap();
    let staging = Store::new(home.path()).staging("x").unwrap();
    fs::write(Store::ready_path(&staging, INDEX), INDEX_TEXT).unwrap();
    let model = ModelRef::parse(reference).unwrap();
    let ModelRef::Hub { repo, file } = &model else { panic!("{reference}") };
    let listing = listing(files);
    let repository = Repository { model: &model, repo, listing: &listing };
    let plan = repository.plan(file.as_deref(), &staging, &mut Progress::Silent)?;
    Ok((plan.entry, plan.items.into_iter().map(|item| item.wanted.file).collect()))
}

#[test]
fn a_named_gguf_stands_alone() {
    let (entry, files) = taken("hf:o/r:q/m.gguf", &["config.json", "q/m.gguf"]).unwrap();
    assert_eq!((entry.as_str(), files), ("m.gguf", vec!["m.gguf".to_owned()]));
}

#[test]
fn safetensors_are_taken_with_what_a_loader_reads() {
    let all = ["README.md", "config.json", "tokenizer.json", "chat_template.jinja", WHOLE, "x.bin"];
    let (entry, files) = taken("hf:o/r", &all).unwrap();
    assert_eq!(entry, "");
    assert_eq!(files, ["config.json", "tokenizer.json", "chat_template.jinja", WHOLE]);
}

#[test]
fn shards_are_those_of_the_index_and_no_others() {
    let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    let mut all = vec!["config.json", "tokenizer.json", INDEX, "consolidated.safetensors"];
    all.extend(shards);
    let (_, files) = taken("hf:o/r", &all).unwrap();
    assert_eq!(files, ["config.json", "tokenizer.json", INDEX, shards[0], shards[1]]);
    let error = taken("hf:o/r", &all[..5]).unwrap_err().to_string();
    assert!(error.contains("no model-00002-of-00002.safetensors"), "{error}");
}

#[test]
fn what_is_missing_is_named_with_the_gguf_files_there_are() {
    let error = taken("hf:o/r", &["config.json", "a.Q8_0.gguf"]).unwrap_err().to_string();
    assert!(error.contains("no tokenizer.json") && error.contains("a.Q8_0.gguf"), "{error}");
    let error = taken("hf:o/r:b.gguf", &["a.Q8_0.gguf"]).unwrap_err().to_string();
    assert!(error.contains("no b.gguf") && error.contains("a.Q8_0.gguf"), "{error}");
}

#[test]
fn leftovers_of_another_commit_are_dropped() {
    let home = TempDir::new().unwrap();
    let staging = Store::new(home.path()).staging("x").unwrap();
    let leftover = staging.join("m.gguf.part");
    keep_one_commit(&staging, "one").unwrap();
    fs::write(&leftover, b"half").unwrap();
    keep_one_commit(&staging, "one").unwrap();
    assert!(leftover.exists());
    keep_one_commit(&staging, "two").unwrap();
    assert!(!leftover.exists() && Store::ready_path(&staging, "x").parent().unwrap().is_dir());
}
