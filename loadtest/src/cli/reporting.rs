//! What was typed about the report of a run, and about looking at the server meanwhile.

use std::path::PathBuf;

use clap::Args;

use crate::progress::Show;

/// Largest weight of a tenant.
const WEIGHT_MAX: f64 = 1e6;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Reporting {
    /// Also write a page for people: one HTML file with plots
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,
    /// What a tenant is promised relative to the others, for the measures of fairness; repeatable
    /// [default: 1 for each]
    #[arg(long, value_name = "NAME=WEIGHT", value_parser = weight)]
    pub(crate) weight: Vec<(String, f64)>,
    /// The server's process, for its processor time and memory [default: the one that listens on
    /// the port of --url, where that is this machine]
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Option<u32>,
    /// Show live progress even where standard error is no terminal
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) progress: bool,
    /// Show no live progress
    #[arg(long)]
    pub(crate) quiet: bool,
}

impl Reporting {
    /// Where live progress is shown.
    pub(crate) fn show(&self) -> Show {
        match (self.quiet, self.progress) {
            (true, _) => Show::Never,
            (false, true) => Show::Always,
            (false, false) => Show::OnTerminal,
        }
    }

    /// Weights by number of the tenants.
    ///
    /// # Errors
    /// When a tenant is not one of those.
    pub(crate) fn weights(&self, tenants: &[String]) -> anyhow::Result<Vec<f64>> {
        let mut weights = vec![1.0; tenants.len()];
        for (name, weight) in &self.weight {
            let number = tenants.iter().position(|tenant| tenant == name);
            let Some(slot) = number.and_then(|number| weights.get_mut(number)) else {
                anyhow::bail!("--weight {name}: no such tenant, there are {}", tenants.join(", "));
            };
            *slot = *weight;
        }
        Ok(weights)
    }
}

/// `NAME=WEIGHT`.
fn weight(text: &str) -> Result<(String, f64), String> {
    let fault =
        || format!("{text:?} must be NAME=WEIGHT, the weight over 0 and at most {WEIGHT_MAX}");
    let (name, weight) = text.split_once('=').ok_or_else(fault)?;
    let weight: f64 = weight.parse().map_err(|_| fault())?;
    let is_usable = !name.is_empty() && weight > 0.0 && weight <= WEIGHT_MAX;
    if is_usable { Ok((name.to_owned(), weight)) } else { Err(fault()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_positive_numbers_of_known_tenants() {
        assert_eq!(weight("acme=2.5"), Ok(("acme".to_owned(), 2.5)));
        for wrong in ["acme", "=1", "acme=0", "acme=-1", "acme=NaN", "acme=1e9", "acme=x"] {
            assert!(weight(wrong).unwrap_err().contains("must be NAME=WEIGHT"), "{wrong}");
        }
        let tenants = ["acme".to_owned(), "bolt".to_owned()];
        let reporting =
            |name: &str| Reporting { weight: vec![(name.to_owned(), 3.0)], ..Reporting::default() };
        assert_eq!(reporting("bolt").weights(&tenants).unwrap(), [1.0, 3.0]);
        let fault = reporting("dune").weights(&tenants).unwrap_err().to_string();
        assert_eq!(fault, "--weight dune: no such tenant, there are acme, bolt");
    }
}
