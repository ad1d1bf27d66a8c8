//! Ways that fail in every manner, over a real folder and a fake network.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::models::assembly::sha256_of;

/// A way that plays a script: each call takes one act.
#[derive(Debug)]
struct Script(RefCell<Vec<Act>>);

#[derive(Debug, Clone)]
enum Act {
    /// Bring what is missing of these bytes.
    Rest(&'static [u8]),
    /// Bring these bytes as one part.
    Part(&'static [u8]),
    Fail(&'static str),
    /// Be killed after these bytes: nothing that comes later runs.
    Killed(&'static [u8]),
}

impl Source for Script {
    fn describe(&self) -> String {
        "a script".to_owned()
    }

    fn fetch(&self, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
        match self.0.borrow_mut().remove(0) {
            Act::Rest(all) => {
                let here = usize::try_from(assembly.bytes()).unwrap();
                assembly.append(&all[here..])?;
            }
            Act::Part(bytes) => {
                assembly.rewind_to_part()?;
                assembly.append(bytes)?;
                assembly.finish_part()?;
            }
            Act::Fail(why) => return Err(Failure::Way(why.to_owned())),
            Act::Killed(bytes) => {
                assembly.append(bytes)?;
                return Err(Failure::Local(PullError::io(
                    Path::new("killed"),
                    std::io::Error::other("k"),
                )));
            }
        }
        Ok(())
    }
}

const CONTENT: &[u8] = b"weights of a very small model";

fn item(content: &[u8], ways: Vec<Vec<Act>>) -> (TempDir, Item) {
    let folder = TempDir::new().unwrap();
    let sample = folder.path().join("sample");
    fs::write(&sample, content).unwrap();
    let wanted = Wanted {
        file: "m.gguf".to_owned(),
        bytes: Some(content.len() as u64),
        sha256: Some(sha256_of(&sample).unwrap()),
    };
    let sources = ways
        .into_iter()
        .map(|acts| Box::new(Script(RefCell::new(acts))) as Box<dyn Source>)
        .collect();
    (folder, Item { wanted, sources })
}

fn run(folder: &TempDir, item: &Item) -> Result<PathBuf, PullError> {
    let target = folder.path().join("m.gguf");
    fetch("m", item, folder.path(), &target, &mut Progress::Silent)?;
    assert!(!folder.path().join("m.gguf.part").exists());
    Ok(target)
}

#[test]
fn the_next_way_is_taken_when_the_first_leads_nowhere() {
    let (folder, item) = item(CONTENT, vec![vec![Act::Fail("no route")], vec![Act::Rest(CONTENT)]]);
    assert_eq!(fs::read(run(&folder, &item).unwrap()).unwrap(), CONTENT);
}

#[test]
fn an_error_names_every_way_that_was_tried() {
    let (folder, item) =
        item(CONTENT, vec![vec![Act::Fail("no route")], vec![Act::Fail("no pip")]]);
    let error = run(&folder, &item).unwrap_err().to_string();
    assert!(error.contains("no route") && error.contains("no pip"), "{error}");
}

#[test]
fn a_file_with_a_wrong_hash_is_refused() {
    let wrong = b"weights of a very smell model";
    let (folder, item) = item(CONTENT, vec![vec![Act::Rest(wrong)]]);
    let error = run(&folder, &item).unwrap_err().to_string();
    assert!(
        error.contains("damaged") && error.contains(item.wanted.sha256.as_ref().unwrap()),
        "{error}"
    );
    assert!(!folder.path().join("m.gguf").exists());
    assert_eq!(fs::metadata(folder.path().join("m.gguf.part")).unwrap().len(), 0);
}

#[test]
fn a_short_file_is_refused() {
    let (folder, item) = item(CONTENT, vec![vec![Act::Part(b"weights")]]);
    let error = run(&folder, &item).unwrap_err().to_string();
    assert!(error.contains("7 bytes instead of 29"), "{error}");
}

#[test]
fn a_killed_pull_goes_on_where_it_ended() {
    let (folder, item) = item(CONTENT, vec![vec![Act::Killed(b"weights of"), Act::Rest(CONTENT)]]);
    run(&folder, &item).unwrap_err();
    assert_eq!(fs::metadata(folder.path().join("m.gguf.part")).unwrap().len(), 10);
    assert_eq!(fs::read(run(&folder, &item).unwrap()).unwrap(), CONTENT);
}

#[test]
fn half_a_part_is_dropped_and_whole_parts_are_kept() {
    let acts = vec![Act::Killed(b" of a v"), Act::Part(b" of a very small model")];
    let (folder, item) = item(CONTENT, vec![acts]);
    {
        let mut progress = Progress::Silent;
        let mut assembly = Assembly::open(folder.path(), &item.wanted, &mut progress).unwrap();
        assembly.append(b"weights").unwrap();
        assembly.finish_part().unwrap();
    }
    run(&folder, &item).unwrap_err();
    let mut progress = Progress::Silent;
    let assembly = Assembly::open(folder.path(), &item.wanted, &mut progress).unwrap();
    assert_eq!((assembly.parts(), assembly.bytes()), (1, 14));
    drop(assembly);
    assert_eq!(fs::read(run(&folder, &item).unwrap()).unwrap(), CONTENT);
}

#[test]
fn a_damaged_leftover_is_dropped_and_the_way_taken_once_more() {
    let (folder, item) = item(CONTENT, vec![vec![Act::Rest(CONTENT), Act::Rest(CONTENT)]]);
    fs::write(folder.path().join("m.gguf.part"), b"garbage").unwrap();
    assert_eq!(fs::read(run(&folder, &item).unwrap()).unwrap(), CONTENT);
}

#[test]
fn a_leftover_longer_than_the_file_is_dropped() {
    let (folder, item) = item(CONTENT, vec![vec![Act::Rest(CONTENT)]]);
    fs::write(folder.path().join("m.gguf.part"), [7; 100]).unwrap();
    assert_eq!(fs::read(run(&folder, &item).unwrap()).unwrap(), CONTENT);
}

#[test]
fn a_marker_beyond_the_file_is_not_believed() {
    let (folder, item) = item(CONTENT, vec![vec![Act::Part(CONTENT)]]);
    fs::write(folder.path().join("m.gguf.part"), b"weig").unwrap();
    fs::write(folder.path().join("m.gguf.parts.json"), r#"{"count":1,"bytes":7}"#).unwrap();
    assert_eq!(fs::read(run(&folder, &item).unwrap()).unwrap(), CONTENT);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_to_be_full_and_no_other_way_is_tried() {
    let (folder, item) = item(CONTENT, vec![vec![Act::Rest(CONTENT)], vec![Act::Fail("unused")]]);
    std::os::unix::fs::symlink("/dev/full", folder.path().join("m.gguf.part")).unwrap();
    let error = run(&folder, &item).unwrap_err();
    assert!(matches!(error, PullError::DiskFull { .. }), "{error}");
    assert!(error.to_string().contains("the disk is full"));
}
