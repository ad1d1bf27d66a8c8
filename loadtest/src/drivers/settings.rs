//! The drivers' part of the command line.

use clap::{Args, ValueEnum};

use crate::client::PARTS_AT_ONCE;

/// Longest path of a server.
const PATH_BYTES_MAX: usize = 1_024;

/// Which form decisions are put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Driver {
    /// docket, and whatever else has POST /v1/systemone
    #[default]
    Systemone,
    /// decisio's dialect, /decisio/v1/systemone
    Decisio,
    /// self's dialect, /self/v1/systemone
    #[value(name = "self")]
    SelfServe,
    /// vLLM's structured decisions, /vllm/v1/systemone
    Vllm,
    /// gmlx's dialect, /gmlx/v1/systemone
    Gmlx,
    #[value(help = "OpenAI's decisions, /openai/v1/decisions")]
    Openai,
    /// llama-server's POST /completion, a prompt a question
    LlamaServer,
    #[value(
        help = "POST /v1/completions with logprobs, as vLLM and SGLang have it, a prompt a question"
    )]
    Completions,
}

impl Driver {
    /// The word of the command line and of reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Systemone => "systemone",
            Self::Decisio => "decisio",
            Self::SelfServe => "self",
            Self::Vllm => "vllm",
            Self::Gmlx => "gmlx",
            Self::Openai => "openai",
            Self::LlamaServer => "llama-server",
            Self::Completions => "completions",
        }
    }

    /// Whether it can make a server read a state ahead of its questions.
    pub(crate) fn prewarms(self) -> bool {
        self != Self::Completions
    }

    /// Whether a question is a prompt of its own, answered by a letter.
    pub(crate) fn asks_for_letters(self) -> bool {
        matches!(self, Self::LlamaServer | Self::Completions)
    }

    /// Where decisions go where nothing else is said: docket's paths of the dialects.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Systemone => "/v1/systemone",
            Self::Decisio => "/decisio/v1/systemone",
            Self::SelfServe => "/self/v1/systemone",
            Self::Vllm => "/vllm/v1/systemone",
            Self::Gmlx => "/gmlx/v1/systemone",
            Self::Openai => "/openai/v1/decisions",
            Self::LlamaServer => "/completion",
            Self::Completions => "/v1/completions",
        }
    }
}

/// What stands around a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum TemplateName {
    /// The server's own where it tells it (/apply-template), else chatml
    #[default]
    Auto,
    #[value(help = "A user's turn between <|im_start|> and <|im_end|>")]
    Chatml,
    /// Nothing before it, and "Answer:" after it
    Plain,
}

impl TemplateName {
    /// The word of the command line and of reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Chatml => "chatml",
            Self::Plain => "plain",
        }
    }
}

/// When the questions of a decision are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum FanOut {
    /// The first by itself, so that the state is cached, then the others at once
    #[default]
    FirstAlone,
    /// All at once
    Parallel,
    /// One after the other
    Serial,
}

impl FanOut {
    /// The word of the command line and of reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::FirstAlone => "first-alone",
            Self::Parallel => "parallel",
            Self::Serial => "serial",
        }
    }
}

/// How decisions are put to the server.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Settings {
    /// The form in which decisions are put to the server
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    pub(crate) driver: Driver,
    /// Where decisions go on the server [default: the driver's path on docket, or its server's own]
    #[arg(long, value_parser = path)]
    pub(crate) path: Option<String>,
    /// Name of the model, where a form has one [completions: the first that the server lists]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// What stands around a prompt; llama-server and completions
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    pub(crate) template: TemplateName,
    /// When the questions of a decision are sent; llama-server and completions
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) fan_out: FanOut,
    /// Likeliest tokens among which letters are looked for [default: llama-server 64, completions
    /// 20]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) top: Option<u32>,
}

impl Settings {
    /// Most connections that one decision takes.
    pub(crate) fn connections_each(&self) -> usize {
        let is_fanned_out = self.driver.asks_for_letters() && self.fan_out != FanOut::Serial;
        if is_fanned_out { PARTS_AT_ONCE } else { 1 }
    }
}

fn path(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && text.parse::<hyper::Uri>().is_ok();
    if !is_path || text.len() > PATH_BYTES_MAX {
        return Err(format!(
            "must be a path such as /v1/systemone, of at most {PATH_BYTES_MAX} bytes"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_a_slash() {
        assert_eq!(path("/v1/decide"), Ok("/v1/decide".to_owned()));
        for wrong in ["v1/decide", "http://x/", "/a b", &format!("/{}", "a".repeat(1_024))] {
            assert!(path(wrong).unwrap_err().contains("must be a path"), "{wrong}");
        }
    }

    #[test]
    fn words_are_those_of_the_command_line() {
        for driver in Driver::value_variants() {
            let value = driver.to_possible_value().unwrap();
            assert_eq!(value.get_name(), driver.as_str());
        }
        for template in TemplateName::value_variants() {
            assert_eq!(template.to_possible_value().unwrap().get_name(), template.as_str());
        }
        for fan_out in FanOut::value_variants() {
            assert_eq!(fan_out.to_possible_value().unwrap().get_name(), fan_out.as_str());
        }
    }
}
