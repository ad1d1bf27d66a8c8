//! A store in a temporary folder: what is found, what is refused, what is swept.

use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

const SLUG: &str = "tiny";

fn installed(home: &Path) -> (Store, PathBuf) {
    let store = Store::new(home);
    let staging = store.staging(SLUG).unwrap();
    let ready = Store::ready_path(&staging, "m.gguf");
    fs::write(&ready, b"weights").unwrap();
    let file = FileRecord {
        file: "m.gguf".to_owned(),
        bytes: 7,
        sha256: sha256_of(&ready).unwrap(),
        changed_ns: 0,
    };
    let record =
        Record { name: "tiny:1".to_owned(), entry: "m.gguf".to_owned(), files: vec![file] };
    let path = store.install(SLUG, &staging, record).unwrap();
    (store, path)
}

fn find(store: &Store) -> Result<Option<PathBuf>, PullError> {
    store.find(SLUG, Thoroughness::Quick)
}

#[test]
fn an_installed_model_is_found_and_nothing_is_left_beside_it() {
    let home = TempDir::new().unwrap();
    let (store, path) = installed(home.path());
    assert_eq!(find(&store).unwrap(), Some(path.clone()));
    assert_eq!(fs::read(path).unwrap(), b"weights");
    assert!(!home.path().join("partial/tiny").exists());
    assert_eq!(store.installed()[0].1.name, "tiny:1");
}

#[test]
fn a_model_without_its_record_is_not_there() {
    let home = TempDir::new().unwrap();
    let (store, path) = installed(home.path());
    fs::remove_file(path.with_file_name(RECORD)).unwrap();
    assert_eq!(find(&store).unwrap(), None);
}

#[test]
fn a_shortened_or_changed_file_is_damaged() {
    let home = TempDir::new().unwrap();
    let (store, path) = installed(home.path());
    for content in [&b"weight"[..], b"weighty"] {
        fs::write(&path, content).unwrap();
        let error = find(&store).unwrap_err();
        assert!(matches!(error, PullError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("docket pull tiny:1"), "{error}");
    }
}

#[test]
fn a_touched_file_is_hashed_once_and_recorded_anew() {
    let home = TempDir::new().unwrap();
    let (store, path) = installed(home.path());
    let before = store.record(SLUG).unwrap().unwrap();
    fs::write(&path, b"weights").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
    assert!(find(&store).unwrap().is_some());
    let after = store.record(SLUG).unwrap().unwrap();
    assert_ne!(before.files[0].changed_ns, 0);
    assert_eq!(after.files[0].changed_ns, 0);
}

#[test]
fn a_change_that_keeps_size_and_time_is_found_by_the_full_check() {
    let home = TempDir::new().unwrap();
    let (store, path) = installed(home.path());
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, b"weighty").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    assert!(find(&store).is_ok());
    assert!(matches!(store.find(SLUG, Thoroughness::Full), Err(PullError::Damaged { .. })));
}

#[test]
fn a_damaged_record_is_an_error_that_says_so() {
    let home = TempDir::new().unwrap();
    let (store, path) = installed(home.path());
    fs::write(path.with_file_name(RECORD), b"{").unwrap();
    assert!(matches!(find(&store), Err(PullError::Damaged { .. })));
}

#[test]
fn staging_keeps_parts_and_sweeps_working_folders() {
    let home = TempDir::new().unwrap();
    let store = Store::new(home.path());
    let staging = store.staging(SLUG).unwrap();
    fs::create_dir(staging.join("wheel-abc")).unwrap();
    fs::write(staging.join("wheel-abc/x.whl"), b"half").unwrap();
    fs::write(staging.join(".tmpabc"), b"half").unwrap();
    fs::write(staging.join("m.gguf.part"), b"keep").unwrap();
    store.staging(SLUG).unwrap();
    assert!(!staging.join("wheel-abc").exists() && !staging.join(".tmpabc").exists());
    assert!(staging.join("m.gguf.part").exists());
}

#[test]
fn a_second_pull_waits_for_the_first() {
    let home = TempDir::new().unwrap();
    let store = Store::new(home.path());
    let first = store.lock(SLUG, &Progress::Silent).unwrap();
    let (sender, taken) = mpsc::channel();
    let other = store.clone();
    let waiter = std::thread::spawn(move || {
        let _second = other.lock(SLUG, &Progress::Silent).unwrap();
        sender.send(()).unwrap();
    });
    assert!(taken.recv_timeout(Duration::from_millis(50)).is_err(), "two hold the lock");
    drop(first);
    taken.recv_timeout(Duration::from_secs(10)).expect("the lock is never freed");
    waiter.join().unwrap();
}

#[test]
fn a_lock_file_that_a_killed_process_left_is_taken_at_once() {
    let home = TempDir::new().unwrap();
    let store = Store::new(home.path());
    fs::create_dir_all(home.path().join("locks")).unwrap();
    fs::write(home.path().join("locks/tiny.lock"), b"12345").unwrap();
    store.lock(SLUG, &Progress::Silent).unwrap();
}

#[test]
fn a_home_that_cannot_be_made_is_told_with_the_flag_that_sets_it() {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("file");
    fs::write(&home, "").unwrap();
    let store = Store::new(&home);
    assert_eq!(find(&store).unwrap(), None);
    let error = store.staging(SLUG).unwrap_err().to_string();
    assert!(error.contains(home.to_str().unwrap()) && error.contains("DOCKET_HOME"), "{error}");
    let error = store.lock(SLUG, &Progress::detect()).unwrap_err().to_string();
    assert!(error.contains("cannot be written") && error.contains("--home"), "{error}");
}
