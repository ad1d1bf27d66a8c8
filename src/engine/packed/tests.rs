//! Packed files: what is read back, what is refused, what is kept and for how long.

use super::*;

fn weights(precision: Precision) -> Weights {
    let mut weights = Weights::zeros(precision, 40, 70);
    let values: Vec<f32> = (0..40_u16 * 70).map(|at| f32::from(at % 97) - 48.0).collect();
    weights.pack(0, &values);
    weights
}

fn folder(bytes_max: u64) -> (tempfile::TempDir, PackedFolder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("packed");
    (dir, PackedFolder { folder, bytes_max })
}

fn begin(folder: &PackedFolder, hash: &str, precision: Precision) -> PackedWriter {
    let (folder, hash, witness) = (folder.clone(), hash.to_owned(), Witness::default());
    PackedWriter::create(&Packed { folder, hash, witness }, precision, 1000).unwrap()
}

fn write(folder: &PackedFolder, hash: &str, precision: Precision) -> PathBuf {
    let path = folder.path(hash, precision);
    let mut writer = begin(folder, hash, precision);
    writer.matrix("a", &weights(precision)).unwrap();
    writer.vector("norm", &[1.0, -2.5, f32::MIN_POSITIVE]).unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn what_was_written_is_read_back_bit_by_bit() {
    let (_dir, folder) = folder(1 << 20);
    for precision in Precision::ALL {
        write(&folder, "h", precision);
        let mut reader = PackedReader::open(&folder, "h", precision).unwrap();
        let read = reader.matrix("a", precision, (40, 70)).unwrap();
        assert_eq!(read.to_bytes(), weights(precision).to_bytes());
        assert!(reader.finish().is_err(), "there is a vector left");
        let vector = reader.vector("norm", 3).unwrap();
        reader.finish().unwrap();
        assert_eq!(vector[1].to_bits(), (-2.5_f32).to_bits());
        assert!(reader.vector("more", 1).is_err(), "there is no more");
    }
}

#[test]
fn another_name_shape_or_precision_is_refused() {
    let (_dir, folder) = folder(1 << 20);
    write(&folder, "h", Precision::Int8);
    let read = |name, precision, shape| {
        let mut reader = PackedReader::open(&folder, "h", Precision::Int8).unwrap();
        reader.matrix(name, precision, shape).map(drop)
    };
    assert!(read("b", Precision::Int8, (40, 70)).is_err());
    assert!(read("a", Precision::Int8, (70, 40)).is_err());
    assert!(read("a", Precision::Bf16, (40, 70)).is_err());
    read("a", Precision::Int8, (40, 70)).unwrap();
}

#[test]
fn every_flipped_byte_and_every_cut_is_noticed() {
    let (_dir, folder) = folder(1 << 20);
    let path = write(&folder, "h", Precision::Int8);
    let whole = std::fs::read(&path).unwrap();
    let read = || -> Result<(), PackedError> {
        let mut reader = PackedReader::open(&folder, "h", Precision::Int8)?;
        reader.matrix("a", Precision::Int8, (40, 70))?;
        reader.vector("norm", 3)?;
        reader.finish()
    };
    read().unwrap();
    for at in (0..whole.len()).step_by(7).chain(whole.len() - 20..whole.len()) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        assert!(read().is_err(), "byte {at}");
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(read().is_err(), "cut at {at}");
    }
}

#[test]
fn the_least_recently_used_file_makes_room() {
    let (_dir, folder) = folder(20_000);
    let first = write(&folder, "first", Precision::Int8);
    let second = write(&folder, "second", Precision::Int8);
    let old = std::time::SystemTime::UNIX_EPOCH;
    File::options().append(true).open(&second).unwrap().set_modified(old).unwrap();
    let one = std::fs::metadata(&first).unwrap().len();
    let tight = PackedFolder { bytes_max: 2 * one, ..folder };
    tight.make_room(one, &first).unwrap();
    assert!(first.exists() && !second.exists());
    assert!(tight.make_room(2 * one + 1, &first).is_err(), "more than is ever kept");
    PackedFolder { bytes_max: one - 1, ..tight }.trim(&first).unwrap();
    assert!(!first.exists(), "alone over the limit");
}

#[test]
fn files_of_starts_that_were_killed_are_removed_and_those_being_written_count() {
    let (_dir, folder) = folder(20_000);
    let other = begin(&folder, "other", Precision::Int8);
    let abandoned = folder.folder.join(".packing-killed");
    std::fs::write(&abandoned, [0; 5000]).unwrap();
    std::os::unix::fs::symlink("/nowhere", folder.folder.join("note")).unwrap();
    let tight = PackedFolder { bytes_max: 1500, ..folder.clone() };
    assert!(tight.make_room(1000, Path::new("")).is_err(), "1000 bytes are being written");
    assert!(!abandoned.exists());
    tight.make_room(500, Path::new("")).unwrap();
    other.finish().unwrap();
    assert!(folder.path("other", Precision::Int8).exists());
}

#[test]
fn a_file_under_the_name_of_another_model_and_a_pipe_are_refused() {
    let (_dir, folder) = folder(1 << 20);
    let path = write(&folder, "one", Precision::Int8);
    std::fs::rename(path, folder.path("two", Precision::Int8)).unwrap();
    assert!(PackedReader::open(&folder, "two", Precision::Int8).is_err());
    std::fs::create_dir(folder.path("three", Precision::Int8)).unwrap();
    assert!(PackedReader::open(&folder, "three", Precision::Int8).is_err());
}

#[test]
fn weights_of_files_that_were_changed_meanwhile_are_not_kept() {
    let (dir, folder) = folder(1 << 20);
    let model = dir.path().join("model.gguf");
    std::fs::write(&model, "a").unwrap();
    let witness = Witness::of(&model).unwrap();
    let packed = Packed { folder: folder.clone(), hash: "h".to_owned(), witness };
    let writer = PackedWriter::create(&packed, Precision::Int8, 1000).unwrap();
    std::fs::write(&model, "b").unwrap();
    assert!(writer.finish().is_err());
    assert!(!folder.path("h", Precision::Int8).exists());
}

#[test]
fn what_stands_in_the_way_is_named() {
    let (dir, kept) = folder(1 << 20);
    let path = kept.path("h", Precision::F32);
    std::fs::create_dir_all(&path).unwrap();
    let error = PackedReader::open(&kept, "h", Precision::F32).unwrap_err().to_string();
    assert!(error.contains("no regular file; remove it"), "{error}");
    let error = begin(&kept, "h", Precision::F32).finish().unwrap_err().to_string();
    assert!(error.starts_with(path.to_str().unwrap()), "{error}");
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = PackedFolder { folder: file.join("packed"), bytes_max: 1 << 20 };
    let error = below.trim(&path).unwrap_err().to_string();
    assert!(error.starts_with(below.folder.to_str().unwrap()), "{error}");
}
