//! Tasks at the start: where they are kept, and under what they hold.

use super::StartError;
use super::serving::decisio::{Settings, temperatures};
use super::serving::{ModelFacts, first_name};
use super::shared::Shared;
use crate::config::{Config, SamplesDefault};
use crate::decide::prompters::Prompters;
use crate::prompt::layout::PerKind;
use crate::tasks::desk::{Desk, DeskConfig};
use crate::tasks::identity::Rendering;

/// Opens what tasks are kept, here or where several servers share them, and takes in those of a file.
pub(super) fn open(
    config: &Config,
    prompters: &Prompters,
    facts: &ModelFacts,
    shared: Option<&Shared>,
) -> Result<Desk, StartError> {
    let letters = &config.letters;
    let named = (first_name(facts), facts.details["fingerprint"].as_str().unwrap_or("fake"));
    let desk = DeskConfig {
        tasks: letters.tasks,
        abstention: letters.abstention,
        folder: letters.tasks_folder.clone(),
        abstain_option: letters.abstain_option.clone(),
        profile: Rendering::new(&prompters.profile, profile_orders(config, prompters), named),
        letters: Rendering::new(&prompters.letters, prompters.letters.profile().samples, named),
        plain: Rendering::new(&prompters.plain, prompters.plain.profile().samples, named),
    };
    if let Some(shared) = shared {
        let (store, records, seen) = shared.records();
        return Ok(Desk::shared(desk, store, (records, seen.version)));
    }
    let desk = Desk::open(desk)
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

/// In how many orders questions are read by the profile: what was fitted at one number of them does not
/// hold at another.
fn profile_orders(config: &Config, prompters: &Prompters) -> PerKind<u32> {
    let PerKind { noul, choice, score } = prompters.profile.profile().samples;
    let of = |own: u32| match config.decision.samples {
        SamplesDefault::Profile => own.min(config.decision.samples_max),
        SamplesDefault::Count(count) => count.min(config.decision.samples_max),
    };
    PerKind { noul: of(noul), choice: of(choice), score: of(score) }
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::models::ModelRef;
    use crate::prompt::Prompter;
    use crate::prompt::layout::profile_for;
    use crate::prompt::tokens::bytes::ByteTokenizer;
    use crate::question::Manner;

    #[test]
    fn a_task_holds_for_the_number_of_orders_it_was_fitted_at() {
        let model = ModelRef::parse("smollm2:135m").unwrap();
        let mut config = Config::new(PathBuf::from("home"), model);
        let prompter = || {
            let (bytes, facts) = (Arc::new(ByteTokenizer::new()), ByteTokenizer::facts());
            Arc::new(Prompter::new(bytes, &facts, profile_for("fake", None), "fake").unwrap())
        };
        let prompters = Prompters::new(prompter(), prompter(), prompter());
        let facts = ModelFacts {
            served_names: vec!["m".to_owned()],
            description: String::new(),
            release_date: String::new(),
            details: serde_json::json!({}),
            settings: serde_json::json!({}),
        };
        let fingerprints = |config: &Config| {
            let desk = open(config, &prompters, &facts, None).unwrap();
            Manner::ALL.map(|manner| desk.rendering(manner).fingerprint.clone())
        };
        let own = fingerprints(&config);
        config.decision.samples = SamplesDefault::Count(7);
        let [profile, letters, _] = fingerprints(&config);
        assert_ne!(profile, own[0]);
        assert!(profile.contains("\"orders\":[7,7,7]"), "{profile}");
        assert_eq!(letters, own[1], "letters are read in one order whatever is asked for");
        config.decision.samples_max = 3;
        assert!(fingerprints(&config)[0].contains("\"orders\":[3,3,3]"), "no more are read");
    }
}
