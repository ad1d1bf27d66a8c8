//! Who makes a decision's prompts: one prompter a manner, one for each of the operator's profiles, and
//! those that requests ask for by values of their own for the chat template.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use crate::error::DecideError;
use crate::json::Json;
use crate::prompt::{PromptError, Prompter};
use crate::question::{Decision, Manner};

/// Most prompters with values of requests that are kept; the least recently used leaves.
pub const VARIANTS_MAX: NonZeroUsize = NonZeroUsize::new(16).expect("16 is not 0");

/// Longest JSON text of a request's values for the template, in bytes.
pub const VALUES_BYTES_MAX: usize = 4 << 10;

/// Longest name of a profile that a message repeats, in characters.
const NAME_CHARS_MAX: usize = 100;

/// All prompters of a served model.
#[derive(Debug)]
pub struct Prompters {
    /// In [`Manner::Profile`].
    pub profile: Arc<Prompter>,
    /// In [`Manner::Letters`].
    pub letters: Arc<Prompter>,
    /// In [`Manner::Plain`].
    pub plain: Arc<Prompter>,
    /// The operator's profiles, by name; in place of the model's own.
    pub profiles: BTreeMap<String, Arc<Prompter>>,
    /// With values of requests, by manner, profile and the values' JSON text.
    variants: Mutex<LruCache<Variant, Arc<Prompter>>>,
}

/// Which prompter with values of a request.
type Variant = (Manner, Option<String>, String);

impl Prompters {
    /// Those of the manners, and none beside them.
    pub fn new(profile: Arc<Prompter>, letters: Arc<Prompter>, plain: Arc<Prompter>) -> Self {
        let variants = Mutex::new(LruCache::new(VARIANTS_MAX));
        Self { profile, letters, plain, profiles: BTreeMap::new(), variants }
    }

    /// Who makes them in `manner`.
    pub fn of(&self, manner: Manner) -> &Arc<Prompter> {
        match manner {
            Manner::Profile => &self.profile,
            Manner::Letters => &self.letters,
            Manner::Plain => &self.plain,
        }
    }

    /// Who makes a decision's; makes the maker where the request has values of its own.
    ///
    /// # Errors
    /// [`DecideError::UnknownProfile`], and [`DecideError::Template`] of values that cannot be used.
    pub fn for_decision(&self, decision: &Decision) -> Result<Arc<Prompter>, DecideError> {
        self.with(decision.manner, decision.profile.as_deref(), &decision.template)
    }

    /// Who makes prompts of a profile, or of the manner where none is named, with a request's own values
    /// for the chat template.
    ///
    /// # Errors
    /// As [`Self::for_decision`].
    pub fn with(
        &self,
        manner: Manner,
        profile: Option<&str>,
        values: &[(String, Json)],
    ) -> Result<Arc<Prompter>, DecideError> {
        let base = self.base(manner, profile)?;
        if values.is_empty() {
            return Ok(Arc::clone(base));
        }
        let text = Json::Object(values.to_vec()).compact();
        if text.len() > VALUES_BYTES_MAX {
            let bytes = text.len();
            return Err(DecideError::Template(format!(
                "the values for the chat template are {bytes} bytes of JSON, at most \
                 {VALUES_BYTES_MAX} are taken"
            )));
        }
        let variant = (manner, profile.map(str::to_owned), text);
        if let Some(made) = self.variants().get(&variant) {
            return Ok(Arc::clone(made));
        }
        // Made without the lock: a template may take its time.
        let made = Arc::new(base.with_values(values).map_err(refused)?);
        self.variants().put(variant, Arc::clone(&made));
        Ok(made)
    }

    /// Who makes prompts of `profile`, or of the manner where none is named. A profile is one of the
    /// operator's in place of the model's own; the other manners have settings of their own.
    ///
    /// # Errors
    /// [`DecideError::UnknownProfile`].
    pub fn base(
        &self,
        manner: Manner,
        profile: Option<&str>,
    ) -> Result<&Arc<Prompter>, DecideError> {
        let Some(name) = profile else { return Ok(self.of(manner)) };
        self.profiles.get(name).ok_or_else(|| DecideError::UnknownProfile {
            name: name.chars().take(NAME_CHARS_MAX).collect(),
            available: self.profiles.keys().cloned().collect(),
        })
    }

    fn variants(&self) -> std::sync::MutexGuard<'_, LruCache<Variant, Arc<Prompter>>> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(error: PromptError) -> DecideError {
    DecideError::Template(match error {
        PromptError::Tail => {
            "these chat options end the prompt differently, so no answer can be read".to_owned()
        }
        PromptError::Template { message } => {
            format!("with these chat options the model's chat template fails: {message}")
        }
        other @ (PromptError::Labels { .. } | PromptError::Word { .. }) => other.to_string(),
    })
}
