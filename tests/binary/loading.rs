//! What ends a start before the server listens: damage, settings, and a signal.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::server::{smollm2_folder, terminate};

/// Longest time for a process to end after a signal.
const END_MAX: Duration = Duration::from_secs(30);

fn serve(home: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_docket"))
        .args(["serve", "--port", "0", "--home"])
        .arg(home)
        .args(arguments)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts")
}

/// What a start that fails says.
fn refusal(home: &Path, arguments: &[&str]) -> String {
    let Output { status, stderr, .. } =
        serve(home, arguments).wait_with_output().expect("the process ends");
    let told = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(1), "{told}");
    assert!(!told.contains("listening on") && !told.contains("panicked"), "{told}");
    told
}

#[test]
fn a_file_whose_hash_is_not_the_recorded_one_is_never_served() {
    let Some(installed) = smollm2_folder() else { return };
    let home = TempDir::new().expect("a folder");
    let folder = home.path().join("models/smollm2-135m");
    fs::create_dir_all(&folder).expect("a folder");
    let record = fs::read(installed.join("installed.json")).expect("a record");
    let mut record: Value = serde_json::from_slice(&record).expect("JSON");
    let file = record["entry"].as_str().expect("a file").to_owned();
    // The file itself is whole and loads; only the record says otherwise.
    symlink(installed.join(&file), folder.join(&file)).expect("a link");
    record["files"][0]["sha256"] = "0".repeat(64).into();
    fs::write(folder.join("installed.json"), record.to_string()).expect("written");
    let told = refusal(home.path(), &["--offline", "smollm2:135m"]);
    assert!(told.contains(&file) && told.contains("is damaged: SHA-256"), "{told}");
    assert!(told.contains("docket pull smollm2:135m"), "{told}");
}

#[test]
fn settings_are_refused_before_a_model_is_looked_for() {
    let home = TempDir::new().expect("a folder");
    for (flag, value, rule) in [
        ("--chunk-tokens", "16", "16 is not a multiple of 64"),
        ("--layout", "nope", "\"nope\" is none of"),
    ] {
        let told = refusal(home.path(), &["--offline", flag, value, "smollm2:135m"]);
        assert!(told.contains(flag) && told.contains(rule), "{told}");
    }
}

#[test]
fn a_signal_before_the_model_is_there_ends_the_process_with_0() {
    let home = TempDir::new().expect("a folder");
    // A pull that waits for another one never gets to the network.
    let locks = home.path().join("locks");
    fs::create_dir_all(&locks).expect("a folder");
    let lock = File::create(locks.join("smollm2-135m.lock")).expect("a file");
    lock.lock().expect("a lock");
    let mut child = serve(home.path(), &["smollm2:135m"]);
    let mut log = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let mut line = String::new();
    while !line.contains("another process pulls") {
        line.clear();
        assert_ne!(log.read_line(&mut line).expect("a line"), 0, "it ended by itself");
    }
    terminate(&child);
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a status") {
            break status;
        }
        if began.elapsed() > END_MAX {
            child.kill().expect("it is ended");
            panic!("the signal was ignored");
        }
        std::thread::yield_now();
    };
    let mut rest = String::new();
    log.read_to_string(&mut rest).expect("text");
    assert_eq!(status.code(), Some(0), "{rest}");
    assert!(rest.contains("stopped before the model was loaded"), "{rest}");
}
