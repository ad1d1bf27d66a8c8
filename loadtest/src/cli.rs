//! What was typed.

mod compare;
mod reporting;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::arrivals::{DURATION_MAX, FORMS, Pattern};
use crate::client::{CONNECTIONS_DEFAULT, CONNECTIONS_MAX};
use crate::drivers::Settings;
pub(crate) use compare::Compare;
pub(crate) use reporting::Reporting;

/// Measures what decisions wait for on a server, over HTTP.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start requests at times fixed beforehand, and measure from there: what users feel
    Open(Open),
    /// Keep a number of clients busy, one request each: what the server can do at most
    Closed(Closed),
    /// Find the highest rate at which enough of the requests are answered within their limits
    Knee(Knee),
    /// Compare two reports, or pairs of them: A against B, and whether the difference is more than
    /// noise
    Compare(Compare),
    /// Check that a server answers: a short closed loop that fails unless every request is answered
    Smoke(Smoke),
    /// Serve nothing, fast: the server against which the generator itself is measured
    Null(Null),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// The server
    #[arg(long, default_value = "http://127.0.0.1:8000")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) driver: Settings,
    /// A shipped workload (loadtest/workloads), a TOML file, or a .jsonl file of your own requests
    #[arg(long, value_name = "NAME|FILE", default_value = "shared-states")]
    pub(crate) workload: String,
    /// Seed of arrivals, texts and choices; the same seed sends the same requests
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// A tenant's key; repeatable
    #[arg(long, value_name = "NAME=KEY", value_parser = key)]
    pub(crate) key: Vec<(String, String)>,
    /// Time at the beginning that is not measured
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub(crate) warm_up: Duration,
    /// Also write the measures as JSON
    #[arg(long, value_name = "OUT")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reporting: Reporting,
}

impl Common {
    /// Keys by tenant.
    pub(crate) fn keys(&self) -> BTreeMap<String, String> {
        self.key.iter().cloned().collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct Open {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) starting: Starting,
    /// Requests a second, on average [default: 10, or a trace's own]
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// How long requests start [default: 30s, or as long as a trace is]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
}

/// How an open loop starts its requests, and what is good.
#[derive(Debug, Clone, Args)]
pub(crate) struct Starting {
    /// How starts are spread [default: the workload's, or poisson]
    #[arg(long, value_name = "KIND", value_parser = Pattern::parse, long_help = arrivals_help())]
    pub(crate) arrivals: Option<Pattern>,
    /// Latency that counts as good, for every kind of request [default: the workload's]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) limit: Option<Duration>,
    /// Most connections, and so requests under way; those that wait for one are late by that. docket
    /// has a limit for each address, --connections-per-address
    #[arg(long, value_name = "COUNT", default_value_t = CONNECTIONS_DEFAULT,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    pub(crate) connections: u32,
}

fn arrivals_help() -> String {
    format!(
        "How starts are spread [default: the workload's, or poisson], one of\n{FORMS}\n\
         BURSTINESS is the shape of a gamma distribution of gaps: 1 is Poisson, less comes in \
         bursts. TIMES the base rate for ON_S in the middle of every PERIOD_S seconds, --rate on \
         average. FROM and TO are multiples of --rate. A FILE has a start in seconds a line, or \
         JSON lines with \"at\" or \"timestamp\"; SPEED 2 is twice as fast."
    )
}

#[derive(Debug, Args)]
pub(crate) struct Knee {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) starting: Starting,
    /// Requests a second of the first step; rates double from there, or halve where it fails
    #[arg(long, value_name = "RATE", default_value_t = 10.0)]
    pub(crate) from: f64,
    /// Share of the offered requests that must be answered within their limits
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = goodput)]
    pub(crate) goodput: f64,
    /// How near to the knee a rate that fails must be
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = precision)]
    pub(crate) precision: f64,
    /// How long requests start in each step
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Quiet time between two steps
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub(crate) pause: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Closed {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Clients that each keep one request under way
    #[arg(long, value_name = "COUNT", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    pub(crate) clients: u32,
    /// Requests in all [default: until --duration ends]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// How long requests start [default: 30s, or until --requests are sent]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct Smoke {
    /// The server
    #[arg(long, default_value = "http://127.0.0.1:8000")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) driver: Settings,
    /// A tenant's key
    #[arg(long, value_name = "NAME=KEY", value_parser = key)]
    pub(crate) key: Vec<(String, String)>,
    /// Clients that each keep one request under way
    #[arg(long, default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    pub(crate) clients: u32,
    /// Requests in all [default: 64, or until --duration ends]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// How long requests start [default: until --requests are sent]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct Null {
    /// Port to listen on
    #[arg(long, default_value_t = 8001)]
    pub(crate) port: u16,
}

/// `NAME=KEY`; the key may have further equals signs.
fn key(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, key)) if !name.is_empty() && !key.is_empty() => {
            Ok((name.to_owned(), key.to_owned()))
        }
        // What was typed may be a secret, and is not repeated.
        _ => Err("must be NAME=KEY".to_owned()),
    }
}

fn goodput(text: &str) -> Result<f64, String> {
    share(text, 0.01, 1.0)
}

fn precision(text: &str) -> Result<f64, String> {
    share(text, 0.005, 1.0)
}

fn share(text: &str, low: f64, high: f64) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (low..=high).contains(share));
    share.ok_or_else(|| format!("must be from {low} to {high}"))
}

/// A number and a unit: `500ms`, `30s`, `2m`.
fn duration(text: &str) -> Result<Duration, String> {
    let fault = || format!("{text:?} is no time such as 500ms, 30s or 2m");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(fault)?;
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| fault())?;
    let seconds = match unit {
        "ms" => number / 1e3,
        "s" => number,
        "m" => number * 60.0,
        _ => return Err(fault()),
    };
    let parsed = Duration::try_from_secs_f64(seconds).map_err(|_| fault())?;
    if parsed > DURATION_MAX {
        return Err(format!("{text} is over {} h", DURATION_MAX.as_secs() / 3_600));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_have_a_unit_and_a_limit() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        for wrong in ["", "5", "s", "1h", "-1s", "1.2.3s"] {
            assert!(duration(wrong).unwrap_err().contains("no time"), "{wrong}");
        }
        assert_eq!(duration("1441m").unwrap_err(), "1441m is over 24 h");
    }

    #[test]
    fn shares_have_limits() {
        assert_eq!((goodput("1"), precision("0.005")), (Ok(1.0), Ok(0.005)));
        for wrong in ["0", "1.1", "nan", "x"] {
            assert_eq!(goodput(wrong).unwrap_err(), "must be from 0.01 to 1", "{wrong}");
        }
    }

    #[test]
    fn faults_of_arrivals_name_the_flag() {
        let open = |arrivals| Cli::try_parse_from(["loadtest", "open", "--arrivals", arrivals]);
        let fault = open("gamma:0").unwrap_err().to_string();
        assert!(fault.contains("--arrivals") && fault.contains("burstiness is 0"), "{fault}");
        assert!(open("on-off:8,5,60").is_ok());
    }

    #[test]
    fn a_key_is_split_at_its_first_equals_sign() {
        assert_eq!(key("acme=c2s="), Ok(("acme".to_owned(), "c2s=".to_owned())));
        assert_eq!(key("sk-secret"), Err("must be NAME=KEY".to_owned()));
    }
}
