//! Packed weights on disk: a later start reads the same bits, and never those of damaged files.

use std::ops::Range;

use docket::engine::kernels::Precision;
use docket::engine::{CpuEngine, EngineOptions, Packed, PackedFolder};
use docket::files::{FilesError, TensorSource, Witness};

use crate::steps::{bits, options, read_alone};
use crate::tiny::{self, Seeded, TinyModel};

fn load(model: &TinyModel, precision: Precision, packed: Packed) -> CpuEngine {
    let options = EngineOptions { precision, packed: Some(packed), ..options(1) };
    let mut engine = CpuEngine::load(&model.config, model, &options, &mut |_, _| {}).unwrap();
    engine.keep_packed();
    engine
}

/// The only file of a folder.
fn only_file(folder: &std::path::Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|file| !file.ends_with(".lock")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn packed_weights_give_the_bits_of_the_files_and_damaged_ones_are_made_anew() {
    let prompt = Seeded(9).tokens(100);
    for (model, precision) in
        tiny::all().into_iter().flat_map(|m| Precision::ALL.map(|precision| (m.clone(), precision)))
    {
        let home = tempfile::tempdir().unwrap();
        let folder = PackedFolder { folder: home.path().to_owned(), bytes_max: 1 << 30 };
        let packed = Packed { folder, hash: "abc".to_owned(), witness: Witness::default() };
        let first = bits(&read_alone(&load(&model, precision, packed.clone()), &prompt));
        let file = only_file(home.path());
        let whole = std::fs::read(&file).unwrap();

        let again = bits(&read_alone(&load(&model, precision, packed.clone()), &prompt));
        assert_eq!(first, again, "{precision}");

        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 1;
        std::fs::write(&file, damaged).unwrap();
        let mended = bits(&read_alone(&load(&model, precision, packed), &prompt));
        assert_eq!(first, mended, "{precision}, damaged");
        assert_eq!(std::fs::read(only_file(home.path())).unwrap(), whole, "it is written anew");
    }
}

#[test]
fn a_second_start_takes_the_weights_from_the_packed_file() {
    let model = tiny::qwen2();
    let home = tempfile::tempdir().unwrap();
    let folder = PackedFolder { folder: home.path().to_owned(), bytes_max: 1 << 30 };
    let packed = Packed { folder, hash: "abc".to_owned(), witness: Witness::default() };
    load(&model, Precision::Int8, packed.clone());
    // A source without tensors: what is loaded can only come from the packed file.
    let options = EngineOptions { precision: Precision::Int8, packed: Some(packed), ..options(1) };
    let loaded = CpuEngine::load(&model.config, &Nothing, &options, &mut |_, _| {});
    assert!(loaded.is_ok());
}

/// A source that has no tensor.
#[derive(Debug)]
struct Nothing;

impl TensorSource for Nothing {
    fn shape(&self, name: &str) -> Result<Vec<usize>, FilesError> {
        Err(FilesError::MissingTensor { path: "nothing".into(), name: name.to_owned() })
    }

    fn read_rows(&self, name: &str, _: Range<usize>, _: &mut Vec<f32>) -> Result<(), FilesError> {
        self.shape(name).map(drop)
    }
}
