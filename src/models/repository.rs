//! Which files of a hub repository make up a model.
//!
//! A named GGUF file stands alone. Without a file name the repository's safetensors are taken with
//! what a loader reads beside them. All files come from one commit; when the repository has moved
//! on since a pull was killed, what that pull left is dropped.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::assembly::{Wanted, write_atomically};
use super::download::{Item, Source};
use super::error::PullError;
use super::hub::{self, HubFile, Listing};
use super::progress::Progress;
use super::reference::ModelRef;
use super::store::{Store, make_folder};
use super::{Plan, fetch_item};

/// Without these a folder of safetensors cannot be loaded.
const REQUIRED: [&str; 2] = ["config.json", "tokenizer.json"];

/// These are taken where they are there.
const OPTIONAL: [&str; 3] =
    ["tokenizer_config.json", "chat_template.jinja", "generation_config.json"];

const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Most shards of one model.
const SHARDS_MAX: usize = 1024;

/// Most file names in an error's hint.
const HINTS_MAX: usize = 12;

/// Names the commit whose files the staging folder holds.
const COMMIT: &str = "commit";

/// The index of a model's shards.
#[derive(Debug, Deserialize)]
struct Index {
    weight_map: std::collections::BTreeMap<String, String>,
}

/// Asks the hub what is to be fetched for `model`, a [`ModelRef::Hub`].
///
/// # Errors
/// [`PullError::Unreachable`] when the hub cannot be asked, [`PullError::Reference`] when the
/// repository does not hold such a model.
pub(crate) fn plan(
    model: &ModelRef,
    staging: &Path,
    progress: &mut Progress,
) -> Result<Plan, PullError> {
    let ModelRef::Hub { repo, file } = model else {
        return Err(fault(model, "not a hub reference"));
    };
    let listing = hub::list(repo).map_err(|why| PullError::Unreachable {
        name: model.to_string(),
        tried: vec![format!("the hub: {why}")],
    })?;
    keep_one_commit(staging, &listing.commit)?;
    Repository { model, repo, listing: &listing }.plan(file.as_deref(), staging, progress)
}

/// A listed repository and the reference that led to it.
#[derive(Debug)]
struct Repository<'a> {
    model: &'a ModelRef,
    repo: &'a str,
    listing: &'a Listing,
}

impl Repository<'_> {
    fn plan(
        &self,
        file: Option<&str>,
        staging: &Path,
        progress: &mut Progress,
    ) -> Result<Plan, PullError> {
        let (entry, names) = match file {
            Some(file) => (base_name(file).to_owned(), vec![self.require(file)?.to_owned()]),
            None => (String::new(), self.folder_files(staging, progress)?),
        };
        Ok(Plan {
            name: self.model.to_string(),
            slug: self.model.slug(),
            entry,
            items: names.iter().map(|name| self.item(name)).collect(),
        })
    }

    fn has(&self, name: &str) -> bool {
        self.listing.files.iter().any(|file| file.path == name)
    }

    fn require<'n>(&self, name: &'n str) -> Result<&'n str, PullError> {
        if self.has(name) {
            return Ok(name);
        }
        let is_gguf = |path: &&str| Path::new(path).extension().is_some_and(|end| end == "gguf");
        let paths = self.listing.files.iter().map(|file| file.path.as_str());
        let ggufs: Vec<&str> = paths.filter(is_gguf).take(HINTS_MAX).collect();
        let hint = if ggufs.is_empty() {
            String::new()
        } else {
            format!("; it holds these GGUF files: {}", ggufs.join(", "))
        };
        Err(fault(self.model, &format!("the repository holds no {name}{hint}")))
    }

    /// The files of the safetensors form.
    fn folder_files(
        &self,
        staging: &Path,
        progress: &mut Progress,
    ) -> Result<Vec<String>, PullError> {
        let mut names: Vec<String> = Vec::new();
        for name in REQUIRED {
            names.push(self.require(name)?.to_owned());
        }
        names.extend(OPTIONAL.into_iter().filter(|name| self.has(name)).map(str::to_owned));
        if self.has(INDEX) {
            names.push(INDEX.to_owned());
            names.extend(self.shards(staging, progress)?);
        } else {
            names.push(self.require(WHOLE)?.to_owned());
        }
        Ok(names)
    }

    /// The shards that the repository's index names.
    fn shards(&self, staging: &Path, progress: &mut Progress) -> Result<Vec<String>, PullError> {
        fetch_item(&self.model.to_string(), &self.item(INDEX), staging, progress)?;
        let target = Store::ready_path(staging, INDEX);
        let text = fs::read(&target).map_err(|source| PullError::io(&target, source))?;
        let index: Index = serde_json::from_slice(&text)
            .map_err(|error| fault(self.model, &format!("{INDEX}: {error}")))?;
        let shards: BTreeSet<String> = index.weight_map.into_values().collect();
        if shards.len() > SHARDS_MAX {
            let message = format!("{} shards; at most {SHARDS_MAX} are taken", shards.len());
            return Err(fault(self.model, &message));
        }
        for shard in &shards {
            if shard.contains(['/', '\\']) {
                return Err(fault(self.model, &format!("{shard}: a shard outside the folder")));
            }
            self.require(shard)?;
        }
        Ok(shards.into_iter().collect())
    }

    fn item(&self, name: &str) -> Item {
        let listed = self.listing.files.iter().find(|file| file.path == name);
        let wanted = Wanted {
            file: base_name(name).to_owned(),
            bytes: listed.and_then(|file| file.size),
            sha256: listed.and_then(hub::ListedFile::sha256),
        };
        let source: Box<dyn Source> = Box::new(HubFile {
            repo: self.repo.to_owned(),
            revision: self.listing.commit.clone(),
            file: name.to_owned(),
        });
        Item { wanted, sources: vec![source] }
    }
}

/// Empties the staging folder unless what it holds is of `commit`.
fn keep_one_commit(staging: &Path, commit: &str) -> Result<(), PullError> {
    let marker = staging.join(COMMIT);
    if fs::read_to_string(&marker).is_ok_and(|kept| kept == commit) {
        return Ok(());
    }
    fs::remove_dir_all(staging).map_err(|source| PullError::io(staging, source))?;
    if let Some(ready) = Store::ready_path(staging, COMMIT).parent() {
        make_folder(ready)?;
    }
    write_atomically(&marker, commit.as_bytes())
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn fault(model: &ModelRef, message: &str) -> PullError {
    PullError::Reference { reference: model.to_string(), message: message.to_owned() }
}

#[cfg(test)]
mod tests;
