//! Values of a repeatable flag: one text each time it is typed, several in its environment variable.
//!
//! An environment variable cannot be repeated, so its text is split at commas; a typed text never is,
//! so that a value with a comma can be given.

use std::ffi::OsStr;
use std::fmt;

use clap::builder::{StringValueParser, TypedValueParser, ValueParserFactory};
use clap::parser::ValueSource;

/// The texts of one occurrence; what they are is not shown, since they may be keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Listed(pub Vec<String>);

impl fmt::Debug for Listed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Listed({})", self.0.len())
    }
}

impl Listed {
    /// The texts of all occurrences, in their order.
    pub fn all(occurrences: Vec<Self>) -> Vec<String> {
        occurrences.into_iter().flat_map(|listed| listed.0).collect()
    }
}

impl ValueParserFactory for Listed {
    type Parser = ListedParser;

    fn value_parser() -> ListedParser {
        ListedParser
    }
}

/// Reads a [`Listed`].
#[derive(Debug, Clone, Copy)]
pub struct ListedParser;

impl TypedValueParser for ListedParser {
    type Value = Listed;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Listed, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, argument, value)?;
        Ok(Listed(vec![text]))
    }

    fn parse_ref_(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<Listed, clap::Error> {
        let Listed(texts) = self.parse_ref(command, argument, value)?;
        if source != ValueSource::EnvVariable {
            return Ok(Listed(texts));
        }
        Ok(Listed(texts.iter().flat_map(|text| text.split(',')).map(str::to_owned).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, source: ValueSource) -> Vec<String> {
        let command = clap::Command::new("docket");
        ListedParser.parse_ref_(&command, None, text.as_ref(), source).unwrap().0
    }

    #[test]
    fn only_an_environment_variable_is_split_at_commas() {
        assert_eq!(read("a=k,1", ValueSource::CommandLine), ["a=k,1"]);
        assert_eq!(read("a=k1,k2", ValueSource::EnvVariable), ["a=k1", "k2"]);
        assert_eq!(read("k1,", ValueSource::EnvVariable), ["k1", ""]);
        assert_eq!(read("", ValueSource::EnvVariable), [""]);
    }

    #[test]
    fn the_texts_are_not_shown() {
        let listed = Listed(vec!["s3cret".to_owned()]);
        assert!(!format!("{listed:?}").contains("s3cret"));
    }
}
