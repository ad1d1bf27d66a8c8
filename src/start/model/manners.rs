//! Who makes the prompts in each manner: the model's profile, and what the operator composed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::StartError;
use super::{layout_tokens, profile};
use crate::config::Config;
use crate::decide::prompters::Prompters;
use crate::files::{Architecture, PromptFacts};
use crate::prompt::Prompter;
use crate::prompt::layout::letters::letters;
use crate::prompt::layout::named::{PLAIN, PLAIN_LETTERS};
use crate::prompt::layout::{self, PerKind, Profile};
use crate::prompt::tokens::TextTokenizer;

/// Temperatures where none have been fitted.
const UNFITTED: PerKind<f64> = PerKind { noul: 1.0, choice: 1.0, score: 1.0 };

/// One order of each question.
const ONE: PerKind<u32> = PerKind { noul: 1, choice: 1, score: 1 };

/// Makes all over one tokenizer.
///
/// * `name`: the model's, by which its profile is found.
/// * `fingerprint`: of model, weights and precision.
pub(super) fn prompters(
    config: &Config,
    tokenizer: &Arc<dyn TextTokenizer>,
    facts: &PromptFacts,
    (name, architecture): (&str, Option<Architecture>),
    fingerprint: &str,
) -> Result<Prompters, StartError> {
    let own = profile(config, layout::profile_for(name, architecture))?;
    let own = Profile { temperature: config.letters.temperatures(own.temperature), ..own };
    let composed = Profile {
        name: "letters",
        layout: letters(&config.letters.settings),
        temperature: config.letters.temperatures(UNFITTED),
        samples: ONE,
    };
    let prompter = |profile| {
        Ok::<_, StartError>(Arc::new(Prompter::new(
            Arc::clone(tokenizer),
            facts,
            profile,
            fingerprint,
        )?))
    };
    let plain = Profile { name: "plain", layout: &PLAIN, temperature: UNFITTED, samples: ONE };
    let by_letters = Profile { layout: &PLAIN_LETTERS, ..plain };
    let plain = prompter(plain).or_else(|_| prompter(by_letters))?;
    let mut prompters = Prompters::new(prompter(own)?, prompter(composed)?, plain);
    for (name, settings) in &config.decision.profiles {
        prompters.profiles.insert(name.clone(), prompter(settings.over(own))?);
    }
    Ok(prompters)
}

/// What operators should know of them.
pub(super) fn details(prompters: &Prompters, details: &mut Value) {
    let Prompters { profile, letters, plain, profiles, .. } = prompters;
    details["layout"] = profile.layout_id().into();
    details["layout_tokens"] = layout_tokens(profile);
    details["profile"] = profile.profile().name.into();
    details["labels"] = profile.label_codes().len().into();
    details["letters"] = json!({
        "layout": letters.layout_id(),
        "layout_tokens": layout_tokens(letters),
        "labels": letters.label_codes().len(),
    });
    details["profiles"] = profiles.keys().cloned().collect::<Value>();
    details["plain"] = json!({
        "layout": plain.layout_id(),
        "layout_tokens": layout_tokens(plain),
        "labels": plain.label_codes().len(),
    });
}
