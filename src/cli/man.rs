//! `docket man`: the manual pages, made from the same text as `--help`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use thiserror::Error;

use super::Cli;

/// Where the pages go.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder for the pages of all commands, made if it is absent [default: print the first page]
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

/// Why there are no pages.
#[derive(Debug, Error)]
pub enum ManError {
    /// They could not be written into the folder.
    #[error("{}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The page could not be printed.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

/// Writes `docket.1` and a page for each command into the folder, or prints `docket.1`.
///
/// # Errors
/// See [`ManError`].
pub fn run(arguments: &ManArgs, out: &mut impl Write) -> Result<(), ManError> {
    let command = Cli::command();
    let Some(folder) = &arguments.folder else {
        return Ok(clap_mangen::Man::new(command).render(out)?);
    };
    let failed = |source| ManError::Folder { folder: folder.clone(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command, folder).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("man1");
        run(&ManArgs { folder: Some(inner.clone()) }, &mut Vec::new()).unwrap();
        let first = std::fs::read_to_string(inner.join("docket.1")).unwrap();
        for command in Cli::command().get_subcommands() {
            let page = format!("docket-{}.1", command.get_name());
            assert!(inner.join(&page).is_file(), "{page}");
            assert!(first.contains(command.get_name()), "{page} is not named in docket.1");
        }
        let serve = std::fs::read_to_string(inner.join("docket-serve.1")).unwrap();
        assert!(serve.contains("DOCKET_KV_BYTES"), "{serve}");
    }

    #[test]
    fn without_a_folder_the_first_page_is_printed() {
        let mut page = Vec::new();
        run(&ManArgs { folder: None }, &mut page).unwrap();
        assert!(String::from_utf8(page).unwrap().contains(".TH docket 1"));
    }

    #[test]
    fn a_folder_that_cannot_be_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let folder = file.path().join("man1");
        let fault = run(&ManArgs { folder: Some(folder.clone()) }, &mut Vec::new()).unwrap_err();
        assert!(fault.to_string().starts_with(&folder.display().to_string()), "{fault}");
    }
}
