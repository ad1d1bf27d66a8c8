//! From a decision to tokens: head, state and question parts, and the labels to be read.
//!
//! A prompt is `head` (the chat template up to the user's turn, worked examples included; the same
//! for every request), the state, and the question part. The tokens of a prompt *are* those of its
//! parts one after the other; parts meet after the layout's mark, where that is also how the whole
//! would be tokenised (ARCHITECTURE D8). The question's id, other questions and the tenant never
//! reach a prompt.

mod error;
pub mod fixed;
pub mod identity;
pub mod labels;
pub mod layout;
pub mod options;
mod parts;
pub mod pieces;
pub mod rendering;
pub mod state;
pub mod template;
pub mod tokenised;
pub mod tokens;
mod told;
pub mod wording;

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use actors::{Prefix, ReadSpec, SegmentKey, SegmentSpec};

use crate::files::PromptFacts;
use crate::json::Json;
use crate::question::{Kind, Question, Samples, Shown};
pub use error::PromptError;
pub use told::{StatePrefix, Told};

use labels::Alphabet;
use layout::{Layout, Profile};
use rendering::{Rendering, Within};
use template::Frame;
use tokenised::{TokenisedState, TokenisedStates};
use tokens::TextTokenizer;
use tokens::fit::{Unfit, encode_within};

/// Texts longer than this are to be tokenised off the runtime's workers: about a millisecond's work.
pub const OFF_THREAD_BYTES: usize = 4096;

/// Most tokens of a question's reads of one round where the number of its orders is left to us;
/// one order is always read. 16 s of a server that reads 256 tokens/s.
pub const AUTO_TOKENS_MAX: u64 = 4096;

/// How much of a state's beginning and end is tokenised again to count the state's own tokens.
const EDGE_BYTES: usize = 256;

/// Makes prompts for one model in one layout. Built once, shared by all requests.
#[derive(Debug)]
pub struct Prompter {
    tokenizer: Arc<dyn TextTokenizer>,
    profile: Profile,
    /// The profile's, as the tokenizer can do it.
    layout: Layout,
    head: SegmentSpec,
    /// Plain text between the head's last control token and the state.
    lead: String,
    /// The space between mark and question as the question part is tokenised: empty where the
    /// tokenizer begins every text with one.
    space: &'static str,
    /// Plain text after the question, up to the first control token behind it.
    after_text: String,
    /// Tokens from there to the read position.
    after_ids: Vec<u32>,
    alphabet: Alphabet,
    /// Ids of the words for no and yes, where the layout asks some nouls by words.
    words: Option<[u32; 2]>,
    states: TokenisedStates,
    /// What it was made of, for one that is made with other values for the template.
    facts: PromptFacts,
    fingerprint: String,
}

impl Prompter {
    /// Renders the model's template once and finds its labels.
    ///
    /// A model whose files have no chat template gets a plain text layout, in which an answer
    /// continues the line `Answer:`.
    ///
    /// * `fingerprint`: identity of model, weights and precision; root of all segment keys, together
    ///   with the layout's id.
    ///
    /// # Errors
    /// [`PromptError`] saying why the template or the labels cannot be used.
    pub fn new(
        tokenizer: Arc<dyn TextTokenizer>,
        facts: &PromptFacts,
        profile: Profile,
        fingerprint: &str,
    ) -> Result<Self, PromptError> {
        Self::made(tokenizer, (facts, &[]), profile, fingerprint)
    }

    /// The same for a request that gives the template values of its own: another head, another root
    /// of segment keys, and the same labels at the same place.
    ///
    /// * `values`: by name.
    ///
    /// # Errors
    /// [`PromptError`], and [`PromptError::Tail`] where the prompts would end in another way. A value
    /// with a control token in it is refused: it would be one in the prompt.
    pub fn with_values(&self, values: &[(String, Json)]) -> Result<Self, PromptError> {
        if let Some(control) = template::control_in(values, self.tokenizer.controls()) {
            let message = format!("a value has the control token {control:?}");
            return Err(PromptError::Template { message });
        }
        let text = Json::Object(values.to_vec()).compact();
        let fingerprint = format!("{}\n{text}", self.fingerprint);
        let tokenizer = Arc::clone(&self.tokenizer);
        let made = Self::made(tokenizer, (&self.facts, values), self.profile, &fingerprint)?;
        let has_same_end = made.after_text == self.after_text && made.after_ids == self.after_ids;
        let has_same_labels = made.alphabet.ids == self.alphabet.ids && made.words == self.words;
        if has_same_end && has_same_labels { Ok(made) } else { Err(PromptError::Tail) }
    }

    fn made(
        tokenizer: Arc<dyn TextTokenizer>,
        (facts, values): (&PromptFacts, &[(String, Json)]),
        profile: Profile,
        fingerprint: &str,
    ) -> Result<Self, PromptError> {
        let prefill = parts::prefill(facts, profile.layout);
        let probe = parts::frame(facts, &parts::turns(profile.layout, prefill, None), values)?;
        let (slot, alphabet) =
            parts::labelled(&*tokenizer, &probe, (prefill, profile.layout.codes))?;
        let words = parts::words(&*tokenizer, &slot, profile.layout)?;
        let layout = parts::served(profile.layout, words);
        let turns = parts::turns(&layout, prefill, Some(&alphabet));
        let Frame { before, after } = parts::frame(facts, &turns, values)?;
        let (head_ids, lead) = parts::split_before(&*tokenizer, &before);
        let begun = if slot.lead.is_empty() && !prefill.is_empty() { " " } else { "" };
        let (after_text, after_ids) = parts::split_after(&*tokenizer, &(after + prefill + begun));
        let space = parts::space(&*tokenizer, layout.mark);
        let root = SegmentKey::root(format!("{fingerprint}\n{}", layout.id).as_bytes());
        let head = SegmentSpec::head(root, head_ids.into());
        let states = TokenisedStates::new();
        Ok(Self {
            tokenizer,
            profile,
            layout,
            head,
            lead,
            space,
            after_text,
            after_ids,
            alphabet,
            words,
            states,
            facts: facts.clone(),
            fingerprint: fingerprint.to_owned(),
        })
    }

    /// The tokens before every state, shared by all tenants.
    pub fn head(&self) -> &SegmentSpec {
        &self.head
    }

    /// The prefix of all reads on `state`, under a tenant's salt. Tokenises the state unless it is
    /// still known; for more than [`OFF_THREAD_BYTES`] (see [`Self::state_bytes`]) this belongs on
    /// a blocking thread.
    pub fn prefix(&self, state: &Json, salt: &[u8]) -> StatePrefix {
        let encode = |part: &str| Ok::<_, Infallible>(self.tokenizer.encode(part));
        let Ok(prefix) = self.prefix_by(&state::state_text(state, self.layout.state), salt, encode);
        prefix
    }

    /// The same, unless head and state are certainly longer than what fits.
    ///
    /// # Errors
    /// [`Unfit`]: a text of many megabytes is refused without being tokenised whole.
    pub fn prefix_within(
        &self,
        told: &Told,
        salt: &[u8],
        within: Within<'_>,
    ) -> Result<StatePrefix, Unfit> {
        let encode =
            |part: &str| encode_within(&*self.tokenizer, part, within.tokens_max, within.gone);
        let text = self.state_text(&told.state);
        let salt = &*told.salted(salt);
        match &told.context {
            Some(context) => self.prefix_by(&[context, "\n\n", &*text].concat(), salt, encode),
            None => self.prefix_by(&text, salt, encode),
        }
    }

    /// A state as the model reads it.
    pub fn state_text<'s>(&self, state: &'s Json) -> Cow<'s, str> {
        state::state_text(state, self.layout.state)
    }

    /// Most bytes of the text that [`Self::prefix`] would tokenise; of a string exactly its bytes.
    pub fn state_bytes(state: &Json) -> usize {
        state::state_bytes(state)
    }

    /// The read of a question in one order, see [`Rendering::read`].
    ///
    /// # Panics
    /// When more options are shown than there are labels ([`Self::labels_max`]).
    pub fn suffix(&self, question: &Question, shown: &Shown) -> ReadSpec {
        let part = Rendering::new(self, question).part(shown);
        self.read_of(self.tokenizer.encode(&part), &question.kind, shown)
    }

    /// Most options that one read of such a question can show.
    pub fn labels_max(&self, kind: &Kind) -> usize {
        self.word_ids(kind).map_or(self.alphabet.ids.len(), |words| words.len())
    }

    /// Orders to read a question in: what it says itself, else what is asked for the decision, else
    /// the profile's; lowered to `samples_max` and to the orders that differ. Where they are left to
    /// us they are fewer for a long question, see [`Self::affordable`].
    pub fn orders(&self, question: &Question, asked: Samples, samples_max: u32) -> u32 {
        let wanted = match question.samples.unwrap_or(asked) {
            Samples::Auto => self.profile.samples.of(&question.kind),
            Samples::Count(count) => count,
            Samples::Adaptive(adaptive) => adaptive.orders_max,
        };
        let distinct = u32::try_from(question.kind.orders_max()).unwrap_or(u32::MAX);
        wanted.min(samples_max).min(distinct).max(1)
    }

    /// Of `orders` that nobody asked for, those whose reads are at most [`AUTO_TOKENS_MAX`] tokens
    /// together; at least one.
    ///
    /// * `order_tokens`: tokens of all reads in one order.
    pub fn affordable(orders: u32, order_tokens: u64) -> u32 {
        let affordable = AUTO_TOKENS_MAX / order_tokens.max(1);
        orders.min(u32::try_from(affordable).unwrap_or(u32::MAX)).max(1)
    }

    /// The profile's temperature for a kind of question.
    pub fn temperature(&self, kind: &Kind) -> f64 {
        self.profile.temperature.of(kind)
    }

    /// Whether the first order of this noul shows yes before no.
    pub fn yes_first(&self, kind: &Kind) -> bool {
        self.layout.noul.yes_first(kind)
    }

    /// A question in words, on one line; the layout's default of its kind where it has none.
    pub fn question_words(&self, question: &Question) -> String {
        let text = wording::instructions(&self.layout, question);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The layout's id.
    pub fn layout_id(&self) -> &str {
        self.layout.id
    }

    /// The layout as it is served: the profile's, without words that are no labels of the tokenizer.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The profile's settings.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The labels as they are shown, in the order in which they are given out.
    pub fn label_codes(&self) -> &[String] {
        &self.alphabet.codes
    }

    /// Whether tokenising state and question in one go gives the tokens of the two parts; a check
    /// for tests of each tokenizer (ARCHITECTURE D8).
    pub fn boundary_holds(&self, state: &str, question: &Question, shown: &Shown) -> bool {
        let prefix = self.state_part(state);
        let suffix = Rendering::new(self, question).part(shown);
        let mut parts = self.tokenizer.encode(&prefix);
        parts.extend(self.tokenizer.encode(&suffix));
        parts == self.tokenizer.encode(&[&prefix, " ", suffix.trim_start()].concat())
    }

    fn prefix_by<E>(
        &self,
        text: &str,
        salt: &[u8],
        encode: impl FnOnce(&str) -> Result<Vec<u32>, E>,
    ) -> Result<StatePrefix, E> {
        let id = tokenised::state_id(salt, text);
        let (found, tokenised) = match self.states.find(&id) {
            Some(found) => (found, false),
            None => (self.segment(text, salt, encode(&self.state_part(text))?), true),
        };
        if tokenised {
            self.states.keep(id, found.clone());
        }
        let prefix = Prefix { head: self.head.clone(), state: found.segment };
        Ok(StatePrefix { prefix, id, state_tokens: found.state_tokens, tokenised })
    }

    fn segment(&self, text: &str, salt: &[u8], ids: Vec<u32>) -> TokenisedState {
        let state_tokens = self.state_tokens(text, ids.len());
        TokenisedState { segment: SegmentSpec::state(&self.head, salt, ids.into()), state_tokens }
    }

    /// Everything between the head and the question.
    fn state_part(&self, text: &str) -> String {
        let layout = &self.layout;
        [self.lead.as_str(), layout.state_header, text, layout.mark].concat()
    }

    /// Tokens of a state's text alone, from the length of its segment: what surrounds it is counted
    /// at its edges, so that a long state is not tokenised twice.
    fn state_tokens(&self, text: &str, segment_tokens: usize) -> u32 {
        let encoded = |text: &str| self.tokenizer.encode(text).len();
        if text.len() <= EDGE_BYTES {
            return u32::try_from(encoded(text)).unwrap_or(u32::MAX);
        }
        let layout = &self.layout;
        let first = &text[..text.floor_char_boundary(EDGE_BYTES)];
        let last = &text[text.ceil_char_boundary(text.len() - EDGE_BYTES)..];
        let with_lead = encoded(&[self.lead.as_str(), layout.state_header, first].concat());
        let with_mark = encoded(&[last, layout.mark].concat());
        let around = (with_lead + with_mark).saturating_sub(encoded(first) + encoded(last));
        u32::try_from(segment_tokens.saturating_sub(around)).unwrap_or(u32::MAX)
    }

    /// The read that begins with these tokens of a question.
    fn read_of(&self, mut suffix: Vec<u32>, kind: &Kind, shown: &Shown) -> ReadSpec {
        suffix.extend_from_slice(&self.after_ids);
        let labels = self.label_ids(kind, shown);
        ReadSpec {
            suffix: suffix.into(),
            labels: labels.into(),
            want_hidden: false,
            want_mass: false,
        }
    }

    fn label_ids(&self, kind: &Kind, shown: &Shown) -> Vec<u32> {
        match self.word_ids(kind) {
            Some(words) => shown.options.iter().map(|&option| words[option]).collect(),
            None => self.alphabet.ids[..shown.options.len()].to_vec(),
        }
    }

    /// Ids of the words for no and yes, where this question is asked by words.
    fn word_ids(&self, kind: &Kind) -> Option<[u32; 2]> {
        self.layout.noul.words(kind).and(self.words)
    }
}

fn count(ids: &[u32]) -> u32 {
    u32::try_from(ids.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
