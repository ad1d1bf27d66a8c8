//! `docket completions`: what a shell needs to complete the command line.

use std::io::{self, Write};

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Cli;

/// For which shell.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Writes the shell's script.
///
/// # Errors
/// When it cannot be written.
pub fn run(arguments: &CompletionsArgs, out: &mut impl Write) -> io::Result<()> {
    // By way of memory: the generator panics where it cannot write.
    let mut script = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    out.write_all(&script)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shell_gets_every_command() {
        let command = Cli::command();
        for &shell in Shell::value_variants() {
            let mut script = Vec::new();
            run(&CompletionsArgs { shell }, &mut script).unwrap();
            let script = String::from_utf8(script).unwrap();
            for name in command.get_subcommands().map(clap::Command::get_name) {
                assert!(script.contains(name), "{shell}: {name}");
            }
            assert!(script.contains("kv-bytes"), "{shell}: flags of serve");
        }
    }

    #[test]
    fn values_that_are_one_of_a_few_are_completed() {
        // Other shells have the words in their help too.
        let mut script = Vec::new();
        run(&CompletionsArgs { shell: Shell::Bash }, &mut script).unwrap();
        let script = String::from_utf8(script).unwrap();
        for values in ["urgent normal batch idle", "compact spaced", "429 503"] {
            assert!(script.contains(&format!("-W \"{values}\"")), "{values}");
        }
    }
}
