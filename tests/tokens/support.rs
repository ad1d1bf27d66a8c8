//! Finding vocabularies and reading vectors.

use std::path::{Path, PathBuf};

use docket::files::{TokenizerSource, open, open_vocabulary};
use docket::prompt::tokens::model::ModelTokenizer;

/// The texts.
pub(crate) fn texts() -> Vec<String> {
    serde_json::from_str(include_str!("texts.json")).unwrap()
}

/// A vocabulary of the vectors.
pub(crate) struct Vocabulary {
    /// Begin of the file's name, in lower case.
    pub(crate) file: &'static str,
    /// What `DOCKET_TEST_REQUIRE_MODEL` calls it.
    pub(crate) name: &'static str,
    /// Ids by text.
    pub(crate) vectors: &'static str,
}

impl Vocabulary {
    /// The tokenizer, or `None` (after saying so) where the file is absent and not required.
    pub(crate) fn tokenizer(&self) -> Option<ModelTokenizer> {
        let Some(path) = self.path() else {
            let required = variable("DOCKET_TEST_REQUIRE_MODEL").unwrap_or_default();
            let is_required = required.split(',').any(|name| name == self.name);
            assert!(!is_required, "{} is required, but {} is not there", self.name, self.file);
            say_skipped(&format!("no {} in the model folder", self.file));
            return None;
        };
        // A whole model is opened as one; the vocabulary files have no tensors.
        let source = match open(&path) {
            Ok(files) => files.tokenizer,
            Err(_) => TokenizerSource::Gguf(Box::new(open_vocabulary(&path).unwrap())),
        };
        Some(ModelTokenizer::new(&path, &source).unwrap())
    }

    /// Expected ids by text.
    pub(crate) fn ids(&self) -> Vec<Vec<u32>> {
        serde_json::from_str(self.vectors).unwrap()
    }

    fn path(&self) -> Option<PathBuf> {
        let home = variable("DOCKET_HOME").map(PathBuf::from);
        let cache = || Some(PathBuf::from(variable("HOME")?).join(".cache/docket"));
        find(&home.or_else(cache)?, self.file, 2)
    }
}

fn find(folder: &Path, file: &str, depth: usize) -> Option<PathBuf> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.iter().find_map(|path| {
        let name = path.file_name()?.to_str()?.to_lowercase();
        let is_gguf = path.extension().is_some_and(|extension| extension == "gguf");
        if path.is_dir() {
            return depth.checked_sub(1).and_then(|depth| find(path, file, depth));
        }
        (is_gguf && name.starts_with(file)).then(|| path.clone())
    })
}

#[expect(clippy::disallowed_methods, reason = "tests may read where the models are")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Says why a test did not run, past the capture of a passing test's output.
fn say_skipped(why: &str) {
    use std::io::Write as _;

    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
