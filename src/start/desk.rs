//! Tasks at the start: where they are kept, and under what they hold.

use super::StartError;
use super::serving::decisio::{Settings, temperatures};
use super::serving::{ModelFacts, first_name};
use crate::config::Config;
use crate::decide::Prompters;
use crate::tasks::desk::{Desk, DeskConfig};
use crate::tasks::identity::Rendering;

/// Opens what tasks are kept, and takes in those of a file.
pub(super) fn open(
    config: &Config,
    prompters: &Prompters,
    facts: &ModelFacts,
) -> Result<Desk, StartError> {
    let letters = &config.letters;
    let name = first_name(facts);
    let model = facts.details["fingerprint"].as_str().unwrap_or("fake");
    let desk = Desk::open(DeskConfig {
        tasks: letters.tasks,
        abstention: letters.abstention,
        folder: letters.tasks_folder.clone(),
        abstain_option: letters.abstain_option.clone(),
        profile: Rendering::new(&prompters.profile, name, model),
        letters: Rendering::new(&prompters.letters, name, model),
    });
    let desk = desk
        .map_err(|error| StartError::Setting { flag: "--tasks-dir", message: error.to_string() })?;
    if let Some(path) = &letters.tasks_file {
        let refused = |message: String| StartError::Setting {
            flag: "--tasks-file",
            message: format!("{}: {message}", path.display()),
        };
        let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
        let tasks = desk.take_file(&text).map_err(refused)?;
        tracing::info!("{tasks} tasks taken in from {}", path.display());
    }
    Ok(desk)
}

/// What decisio's `/health` says of the settings.
pub(super) fn settings(
    config: &Config,
    prompters: &Prompters,
    facts: &ModelFacts,
    context_tokens: u32,
) -> Settings {
    Settings {
        letters: config.letters.clone(),
        register: config.scheduler.register_boundary,
        reads_hidden: matches!(facts.details["engine"].as_str(), Some("cpu" | "fake")),
        model: facts.details.clone(),
        base: config.model.model.served_name(),
        temperatures: temperatures(prompters),
        context_tokens,
        debug_readout: config.letters.debug_readout,
    }
}
