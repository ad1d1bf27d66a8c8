//! The patterns of arrivals: how they are written on the command line and in a workload, and their
//! rules.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Longest time of a pattern, seconds: that of a run.
const SECONDS_MAX: f64 = 86_400.0;
/// Largest multiple of a rate.
const TIMES_MAX: f64 = 1_000.0;
/// The forms of the command line.
pub(crate) const FORMS: &str =
    "poisson, gamma:BURSTINESS, on-off:TIMES,ON_S,PERIOD_S, ramp:FROM,TO, trace:FILE[,SPEED]";

/// How the starts of an open loop are spread over it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Pattern {
    /// Independent users: exponential gaps.
    Poisson {},
    /// Gamma gaps. `burstiness` is the shape, as in vLLM's benchmark: 1 is Poisson, less comes in
    /// bursts, more is more even. The squared coefficient of variation of the gaps is 1 /
    /// `burstiness`.
    Gamma { burstiness: f64 },
    /// Flash crowds: a Poisson process with `times` its base rate for `on_s` in the middle of every
    /// `period_s` seconds. The mean over the run stays the rate that was asked for.
    OnOff { times: f64, on_s: f64, period_s: f64 },
    /// A Poisson process whose rate goes in a line from `from` to `to` times the one asked for.
    Ramp { from: f64, to: f64 },
    /// Starts that were recorded, `speed` times as fast.
    Trace {
        file: PathBuf,
        #[serde(default = "one")]
        speed: f64,
    },
}

fn one() -> f64 {
    1.0
}

impl Default for Pattern {
    fn default() -> Self {
        Self::Poisson {}
    }
}

impl Pattern {
    /// Reads the form of the command line.
    ///
    /// # Errors
    /// When it is none of [`FORMS`], or a number is out of its range.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (kind, settings) = text.split_once(':').unwrap_or((text, ""));
        let pattern = match kind {
            "poisson" if settings.is_empty() => Some(Self::Poisson {}),
            "gamma" => numbers(settings).map(|[burstiness]| Self::Gamma { burstiness }),
            "on-off" => numbers(settings).map(|[times, on_s, period_s]| Self::OnOff {
                times,
                on_s,
                period_s,
            }),
            "ramp" => numbers(settings).map(|[from, to]| Self::Ramp { from, to }),
            "trace" if !settings.is_empty() => Some(trace(settings)),
            _ => None,
        };
        let pattern = pattern.ok_or_else(|| format!("must be one of {FORMS}"))?;
        let faults = pattern.faults();
        if faults.is_empty() { Ok(pattern) } else { Err(faults.join("; ")) }
    }

    /// Every rule that is broken: field, value and limit.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut range = |field: &str, value: f64, low: f64, high: f64| {
            // Written so that what is not a number fails too.
            if !(value >= low && value <= high) {
                faults.push(format!("{field} is {value}, must be from {low} to {high}"));
            }
        };
        match self {
            Self::Poisson {} => {}
            Self::Gamma { burstiness } => range("burstiness", *burstiness, 0.05, 100.0),
            Self::OnOff { times, on_s, period_s } => {
                range("times", *times, 1.0, TIMES_MAX);
                range("period_s", *period_s, 0.1, SECONDS_MAX);
                // No shorter than a microsecond, and no longer than the period.
                range("on_s", *on_s, 1e-6, period_s.clamp(1e-6, SECONDS_MAX));
            }
            Self::Ramp { from, to } => {
                range("from", *from, 0.0, TIMES_MAX);
                range("to", *to, 0.0, TIMES_MAX);
                if from + to <= 0.0 {
                    faults.push("from and to are both 0, one must be more".to_owned());
                }
            }
            Self::Trace { speed, .. } => range("speed", *speed, 0.001, TIMES_MAX),
        }
        faults
    }

    /// Takes a trace's relative path as beside the file that names it.
    pub(crate) fn beside(&mut self, workload: &Path) {
        if let (Self::Trace { file, .. }, Some(folder)) = (self, workload.parent())
            && file.is_relative()
        {
            *file = folder.join(&*file);
        }
    }
}

/// The form that [`Pattern::parse`] reads.
impl Display for Pattern {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson {} => write!(out, "poisson"),
            Self::Gamma { burstiness } => write!(out, "gamma:{burstiness}"),
            Self::OnOff { times, on_s, period_s } => {
                write!(out, "on-off:{times},{on_s},{period_s}")
            }
            Self::Ramp { from, to } => write!(out, "ramp:{from},{to}"),
            Self::Trace { file, speed } => write!(out, "trace:{},{speed}", file.display()),
        }
    }
}

fn numbers<const COUNT: usize>(settings: &str) -> Option<[f64; COUNT]> {
    let numbers: Result<Vec<f64>, _> = settings.split(',').map(str::parse).collect();
    numbers.ok()?.try_into().ok()
}

/// A file's name may have commas; what follows the last one is a speed only where it is a number.
fn trace(settings: &str) -> Pattern {
    let with_speed =
        settings.rsplit_once(',').and_then(|(file, speed)| Some((file, speed.parse().ok()?)));
    let (file, speed) = with_speed.unwrap_or((settings, 1.0));
    Pattern::Trace { file: file.into(), speed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_written_as_it_is_read() {
        for text in
            ["poisson", "gamma:0.5", "on-off:8,5,60", "ramp:0,2.5", "trace:a,b.txt,1", "trace:a,2"]
        {
            assert_eq!(Pattern::parse(text).unwrap().to_string(), text);
        }
        let whole = Pattern::Trace { file: "a,b.txt".into(), speed: 1.0 };
        assert_eq!(Pattern::parse("trace:a,b.txt").unwrap(), whole);
    }

    #[test]
    fn what_is_no_pattern_lists_the_forms() {
        for wrong in ["", "poison", "poisson:1", "gamma", "gamma:x", "gamma:1,2", "ramp:1", "trace"]
        {
            assert_eq!(Pattern::parse(wrong).unwrap_err(), format!("must be one of {FORMS}"));
        }
    }

    #[test]
    fn numbers_out_of_range_name_field_value_and_limit() {
        for (text, fault) in [
            ("gamma:0", "burstiness is 0, must be from 0.05 to 100"),
            ("gamma:nan", "burstiness is NaN, must be from 0.05 to 100"),
            ("on-off:0.5,1,9", "times is 0.5, must be from 1 to 1000"),
            ("on-off:2,10,9", "on_s is 10, must be from 0.000001 to 9"),
            ("on-off:2,10,nan", "period_s is NaN, must be from 0.1 to 86400"),
            ("ramp:-1,1", "from is -1, must be from 0 to 1000"),
            ("ramp:0,0", "from and to are both 0, one must be more"),
            ("trace:a,0", "speed is 0, must be from 0.001 to 1000"),
        ] {
            let faults = Pattern::parse(text).unwrap_err();
            assert!(faults.contains(fault), "{text}: {faults}");
        }
    }

    #[test]
    fn a_workload_names_a_trace_beside_itself() {
        let beside = |file: &str| {
            let mut pattern = Pattern::Trace { file: file.into(), speed: 1.0 };
            pattern.beside(Path::new("some/where/calls.toml"));
            pattern.to_string()
        };
        assert_eq!(beside("calls.txt"), "trace:some/where/calls.txt,1");
        assert_eq!(beside("/calls.txt"), "trace:/calls.txt,1");
    }
}
