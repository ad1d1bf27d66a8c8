//! Settings that are a choice, and how those with a small grammar are read.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;

use super::quantity::parse_bytes;
use crate::dialect::Dialect;

/// Where usage of the tenants is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum UsageDir {
    /// In a folder beside the models; in memory where another server counts there, or nothing real is
    /// served.
    #[default]
    Usual,
    /// Nowhere: it is counted until the process ends.
    Off,
    /// In this folder, or the server does not start.
    Folder(PathBuf),
}

/// Orders of the options where a request says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplesDefault {
    /// As many as the model's profile says.
    Profile,
    /// This many; 1 to `--samples-max`.
    Count(u32),
}

/// The wire format of the base route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DialectChoice {
    /// The official contract.
    #[value(name = "systemone")]
    SystemOne,
    /// decisio's server.
    Decisio,
    /// self's server.
    #[value(name = "self")]
    SelfServe,
    /// vLLM's structured decisions.
    Vllm,
    /// gmlx's server.
    Gmlx,
    /// `OpenAI`'s decisions.
    Openai,
}

impl From<DialectChoice> for Dialect {
    fn from(choice: DialectChoice) -> Self {
        match choice {
            DialectChoice::SystemOne => Self::Systemone,
            DialectChoice::Decisio => Self::Decisio,
            DialectChoice::SelfServe => Self::SelfServe,
            DialectChoice::Vllm => Self::Vllm,
            DialectChoice::Gmlx => Self::Gmlx,
            DialectChoice::Openai => Self::Openai,
        }
    }
}

/// How prompts are arranged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutChoice {
    /// As the model's profile says.
    Profile,
    /// By name.
    Named(String),
}

/// The longest prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextLimit {
    /// What the model can.
    OfModel,
    /// This many tokens.
    Tokens(u32),
}

/// What runs the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// `cpu` for the architectures that it has, `reference` for others.
    Auto,
    /// Our own forward pass; on a CUDA device that is the `cuda` engine.
    Cpu,
    /// The model of candle-transformers, without sharing: slow.
    Reference,
    /// No model at all: answers from a hash, for tests.
    Fake,
}

/// Where the model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The CPU.
    Cpu,
    /// The CUDA device of this number.
    Cuda(u32),
}

/// Over what label probabilities are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Readout {
    /// The whole vocabulary: label mass is exact.
    Full,
    /// The label rows only: cheaper, without label mass but for requests that need it.
    Rows,
}

/// What the `cpu` and `cuda` engines compute in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrecisionChoice {
    /// What was measured to be good for the model on this CPU; `bf16` on a CUDA device.
    Auto,
    /// Floats of 32 bits: exact, and the slowest.
    F32,
    /// Floats of 16 bits.
    Bf16,
    /// Integers of 8 bits in blocks of 32 with their own scales; on the CPU only.
    Int8,
}

/// Whether a state is kept after the response for other questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BoundaryRegistration {
    /// Yes, by idle work after the response.
    After,
    /// Yes, before the response.
    Before,
    /// No.
    Off,
}

/// Memory for keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvBytes {
    /// A share of the memory that is free at the start.
    OfFreeMemory,
    /// This many bytes; 0 keeps nothing.
    Exactly(u64),
}

impl FromStr for DeviceChoice {
    type Err = String;

    /// `cpu`, `cuda` (the first one) or `cuda:N`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = match text {
            "cpu" => return Ok(Self::Cpu),
            "cuda" => Some(0),
            numbered => numbered.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
        };
        let known = "write cpu, cuda or cuda:N with N from 0";
        number.map(Self::Cuda).ok_or_else(|| format!("{text:?} is no device; {known}"))
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => formatter.write_str("cpu"),
            Self::Cuda(number) => write!(formatter, "cuda:{number}"),
        }
    }
}

impl FromStr for KvBytes {
    type Err = String;

    /// `auto` or a size.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::OfFreeMemory),
            size => parse_bytes(size).map(Self::Exactly),
        }
    }
}

impl FromStr for SamplesDefault {
    type Err = String;

    /// `default` or a number.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => Ok(Self::Profile),
            count => count.parse().map(Self::Count).map_err(|_| {
                format!("{text:?} is no number of orders; write a whole number or \"default\"")
            }),
        }
    }
}

impl EngineKind {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Reference => "reference",
            Self::Fake => "fake",
        }
    }
}
