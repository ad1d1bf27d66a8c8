//! The letters manner: how questions are shown and read out in the `decisio` dialect, by settings that
//! have decisio's names.

use std::path::PathBuf;

use super::faults::Faults;
use crate::prompt::layout::PerKind;
use crate::prompt::layout::letters::LettersSettings;

/// How questions are shown and read out in the letters manner, and the temperatures of both manners.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub struct LettersConfig {
    /// How questions are shown. Default: decisio's.
    pub settings: LettersSettings,
    /// Divisor of the log-probabilities of every kind. Default: the profile's in its manner, 1 in
    /// the letters manner; above 0, at most 100.
    pub temperature: Option<f64>,
    /// The same for one kind; it wins over `temperature`.
    pub temperature_of: PerKind<Option<f64>>,
    /// Whether the probability of a yes within .2 and .8 is moved to the nearer of these. Default no.
    pub noul_commit: bool,
    /// Whether what tasks have learned is applied. Default yes.
    pub tasks: bool,
    /// Whether abstention tasks are applied. Default yes.
    pub abstention: bool,
    /// An option for not knowing that is offered in requests of images' form. Default none.
    pub abstain_option: Option<String>,
    /// A file of tasks to take in at the start, as `GET /v1/tasks?full=1` gives them. Default none.
    pub tasks_file: Option<PathBuf>,
    /// Folder in which tasks are kept. Default none: they are lost with the process.
    pub tasks_folder: Option<PathBuf>,
    /// Whether a request may ask for the raw readout. Default no.
    pub debug_readout: bool,
}

impl Default for LettersConfig {
    fn default() -> Self {
        Self {
            settings: LettersSettings::default(),
            temperature: None,
            temperature_of: PerKind::default(),
            noul_commit: false,
            tasks: true,
            abstention: true,
            abstain_option: None,
            tasks_file: None,
            tasks_folder: None,
            debug_readout: false,
        }
    }
}

impl LettersConfig {
    /// The temperatures to use where `own` would be.
    pub fn temperatures(&self, own: PerKind<f64>) -> PerKind<f64> {
        let of = |kind: Option<f64>, own| kind.or(self.temperature).unwrap_or(own);
        let PerKind { noul, choice, score } = self.temperature_of;
        PerKind {
            noul: of(noul, own.noul),
            choice: of(choice, own.choice),
            score: of(score, own.score),
        }
    }

    pub(super) fn check(&self, faults: &mut Faults) {
        let PerKind { noul, choice, score } = self.temperature_of;
        for (flag, temperature) in [
            ("--temperature", self.temperature),
            ("--temperature-noul", noul),
            ("--temperature-choice", choice),
            ("--temperature-score", score),
        ] {
            let is_sound = |t: &f64| t.is_finite() && *t > 0.0 && *t <= TEMPERATURE_MAX;
            if let Some(t) = temperature.filter(|t| !is_sound(t)) {
                let message = format!("{t} is not above 0 and at most {TEMPERATURE_MAX}");
                faults.add(flag, message);
            }
        }
    }
}

/// Highest temperature; beyond it every answer is uniform.
const TEMPERATURE_MAX: f64 = 100.0;
