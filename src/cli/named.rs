//! Values that are one of a few names: shells complete them, and a name that is none is refused with
//! all that are.

use std::error::Error;
use std::str::FromStr;

use actors::Lane;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Reads one of these names as what it means.
pub(super) fn one_of<T>(names: &[&'static str]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: Into<Box<dyn Error + Send + Sync>>,
{
    PossibleValuesParser::new(names.iter().copied()).try_map(|name| name.parse::<T>())
}

/// Reads the name of a lane.
pub(super) fn lane() -> PossibleValuesParser {
    PossibleValuesParser::new(Lane::ALL.map(Lane::as_str))
}

#[cfg(test)]
mod tests {
    use clap::{Arg, CommandFactory as _};

    use crate::cli::Cli;

    /// The names that a flag takes, by the words before it.
    fn names(words: &[&str], long: &str) -> String {
        let mut command = &Cli::command();
        for word in words {
            command = command.find_subcommand(word).unwrap();
        }
        let flag = command.get_arguments().find(|flag| flag.get_long() == Some(long));
        let values = flag.unwrap().get_possible_values();
        let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        names.join(" ")
    }

    #[test]
    fn every_flag_with_a_few_values_has_them_for_shells() {
        let dialects = "systemone decisio self vllm gmlx openai";
        let expected: [(&[&str], &str, &str); 9] = [
            (&["keys", "new"], "lane", "urgent normal batch idle"),
            (&["ask"], "priority", "urgent normal batch idle"),
            (&["openapi"], "dialect", dialects),
            (&["serve"], "dialect", dialects),
            (&["serve"], "queue-full-status", "429 503"),
            (&["serve"], "noul-rendering", "words letters letters-keys"),
            (&["serve"], "prompt-tail", "compact spaced"),
            (&["serve"], "answer-slot", "template prefill"),
            (&["serve"], "register-boundary", "after before off"),
        ];
        for (words, long, expected) in expected {
            assert_eq!(names(words, long), expected, "{words:?} --{long}");
        }
        assert!(names(&["serve"], "layout").starts_with("bare "));
        assert_eq!(names(&["config", "check"], "layout"), names(&["serve"], "layout"));
    }

    /// Whether the name of a flag's value is a list of words, each a value.
    fn lists_its_values(flag: &Arg) -> bool {
        let is_word = |word: &str| !word.bytes().any(|byte| byte.is_ascii_uppercase());
        let names = flag.get_value_names().unwrap_or_default();
        names.iter().any(|name| name.contains('|') && name.split('|').all(is_word))
    }

    #[test]
    fn no_value_name_lists_values_that_shells_do_not_know() {
        let mut commands = vec![Cli::command()];
        let mut seen = 0;
        while let Some(command) = commands.pop() {
            for flag in command.get_arguments().filter(|flag| lists_its_values(flag)) {
                assert!(!flag.get_possible_values().is_empty(), "{:?}", flag.get_long());
                seen += 1;
            }
            commands.extend(command.get_subcommands().cloned());
        }
        assert!(seen > 10, "{seen}");
    }
}
