//! The loader against damaged files: whatever a file says, it loads or says why not.
//!
//! Goal: no panic, no memory that the file's size does not account for, and an error that names the
//! file. Method: tiny whole files are damaged by seed and go the way that `serve` takes them, up to
//! one read. `DOCKET_FUZZ_CASES` sets how many of each kind are tried; what once failed is a line of
//! `fuzz/corpus.txt` and tried every time.

mod allocation;
mod draw;
mod folder;
mod gguf;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use actors::{Completion, Engine as _, Origin, Row, Step};
use docket::engine::{CpuEngine, EngineOptions};
use docket::files::{Architecture, DecoderConfig, nature, open, open_prompt};
use docket::prompt::Prompter;
use docket::prompt::layout::profile_for;
use docket::prompt::tokens::model::ModelTokenizer;
use tempfile::TempDir;

use self::allocation::{Usage, watched};
use super::support::variable;
use super::writers::wide::{self, WideModel};

/// Cases of each kind in every run.
const CASES: u64 = 300;

/// Bytes that loading may take whatever the file's size.
const BYTES_MAX: usize = 64 << 20;

/// Bytes for each byte of the file: a quantised weight unfolds to four of itself, and a text of a
/// vocabulary lies in several tables.
const BYTES_PER_BYTE: usize = 32;

/// How a case ended that is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Loaded,
    Refused,
}

/// A case by its name in the corpus.
type Case = (&'static str, u64);

/// A model of one layer, as small as the rows of quantised types let it be.
fn small(architecture: Architecture) -> WideModel {
    let config = wide::wide(architecture).config;
    wide::model(DecoderConfig { intermediate: 256, layers: 1, kv_heads: 1, ..config })
}

/// Opens a model and loads it into the engine, as `serve` does, and reads once.
fn load(path: &Path) -> Result<(), String> {
    let told = |error: &dyn std::error::Error| error.to_string();
    nature(path).map_err(|error| told(&error))?;
    // Other architectures' way in; it sees less, and must only not panic.
    let _ = open_prompt(path);
    let files = open(path).map_err(|error| told(&error))?;
    let tokenizer = ModelTokenizer::open(&files).map_err(|error| told(&error))?;
    let profile = profile_for("", Some(files.config.architecture));
    // Tiny vocabularies have too few labels for some templates; it must only not panic.
    let _ = Prompter::new(Arc::new(tokenizer), &files.prompt, profile, &files.fingerprint);
    let options = EngineOptions { context_tokens: Some(128), ..EngineOptions::default() };
    let engine = CpuEngine::load(&files.config, &*files.tensors, &options, &mut |_, _| {})
        .map_err(|error| told(&error))?;
    let (sender, receiver) = mpsc::channel();
    let row = Row {
        path: vec![],
        suffix: [1, 2].into(),
        labels: [3].into(),
        want_hidden: false,
        want_mass: false,
        origin: Origin::NONE,
    };
    let step = Step { id: 1, epoch: 1, chunks: vec![], rows: vec![row] };
    engine.submit(step, Completion::new(move |outcome| sender.send(outcome).unwrap()));
    let outcome = receiver.recv_timeout(Duration::from_mins(1)).expect("the engine answers");
    // Damaged weights may give numbers that are not finite, but nothing may fail as a whole.
    outcome.map(drop).map_err(|error| format!("{}: the step: {error}", path.display()))
}

/// Writes the files of a case; returns what to open, and the bytes that were written.
fn write(home: &Path, (kind, seed): Case) -> (std::path::PathBuf, usize) {
    if kind == "gguf" {
        let bytes = gguf::mutated(seed);
        return write_gguf(home, &bytes);
    }
    write_folder(home, &folder::mutated(seed))
}

fn write_gguf(home: &Path, bytes: &[u8]) -> (std::path::PathBuf, usize) {
    let path = home.join("model.gguf");
    std::fs::write(&path, bytes).unwrap();
    (path, bytes.len())
}

fn write_folder(home: &Path, files: &folder::Files) -> (std::path::PathBuf, usize) {
    for (name, bytes) in files {
        std::fs::write(home.join(name), bytes).unwrap();
    }
    (home.to_owned(), files.values().map(Vec::len).sum())
}

/// Tries a case; an error says what is not as it should be.
fn tried(case: Case) -> Result<Ending, String> {
    let home = TempDir::new().unwrap();
    let (path, size) = write(home.path(), case);
    let (loaded, usage) = watched(case, || catch_unwind(AssertUnwindSafe(|| load(&path))));
    let Usage { peak, largest, .. } = usage;
    let limit = BYTES_MAX + BYTES_PER_BYTE * size;
    if largest > limit || usize::try_from(peak).is_ok_and(|peak| peak > limit) {
        return Err(format!("{peak} bytes, {largest} of them at once, for a file of {size}"));
    }
    match loaded {
        Ok(Ok(())) => Ok(Ending::Loaded),
        Ok(Err(message)) if message.contains(&*home.path().to_string_lossy()) => {
            Ok(Ending::Refused)
        }
        Ok(Err(message)) => Err(format!("the error does not name the file: {message}")),
        Err(panic) => Err(format!("panic: {}", text(&*panic))),
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of no text")
}

/// Tries cases; all that fail are named together.
fn try_all(cases: impl Iterator<Item = Case>) -> Vec<Ending> {
    let mut endings = Vec::new();
    let mut failed = Vec::new();
    for (kind, seed) in cases {
        match tried((kind, seed)) {
            Ok(ending) => endings.push(ending),
            Err(why) => failed.push(format!("{kind} {seed}: {why}")),
        }
    }
    assert!(failed.is_empty(), "lines for tests/tokens/fuzz/corpus.txt:\n{}", failed.join("\n"));
    endings
}

fn try_seeds(kind: &'static str) {
    let cases = variable("DOCKET_FUZZ_CASES").map_or(CASES, |count| count.parse().unwrap());
    let endings = try_all((0..cases).map(|seed| (kind, seed)));
    let loaded = endings.iter().filter(|ending| **ending == Ending::Loaded).count();
    println!("{kind}: {loaded} of {cases} loaded");
    // Damage that is always refused at the same first check would try nothing else.
    assert!(loaded * 50 > endings.len(), "{loaded} of {cases} loaded");
    assert!(loaded * 2 < endings.len(), "{loaded} of {cases} loaded");
}

#[test]
fn damaged_gguf_files_load_or_say_why() {
    try_seeds("gguf");
}

#[test]
fn damaged_folders_load_or_say_why() {
    try_seeds("folder");
}

#[test]
fn what_once_failed_loads_or_says_why() {
    let corpus = include_str!("fuzz/corpus.txt").lines().filter(|line| !line.starts_with('#'));
    let cases = corpus.map(|line| {
        let (kind, seed) = line.split_once(' ').unwrap();
        let kind = ["gguf", "folder"].into_iter().find(|known| *known == kind).unwrap();
        (kind, seed.parse().unwrap())
    });
    try_all(cases);
}

#[test]
fn files_without_damage_load() {
    for bytes in gguf::whole() {
        let home = TempDir::new().unwrap();
        load(&write_gguf(home.path(), &bytes).0).unwrap();
    }
    for files in folder::whole() {
        let home = TempDir::new().unwrap();
        load(&write_folder(home.path(), &files).0).unwrap();
    }
}

#[test]
fn memory_of_the_watched_thread_is_counted() {
    let (vector, usage) = watched(("gguf", 0), || vec![1_u8; 3 << 20]);
    assert_eq!(usage.largest, vector.len());
    assert!(usage.peak >= 3 << 20);
}
