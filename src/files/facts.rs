//! What a model's files say about its prompts, beside the tokenizer.

/// What else a model's files say about its prompts.
#[derive(Debug, Clone, Default)]
pub struct PromptFacts {
    /// The Jinja chat template.
    pub chat_template: Option<String>,
    /// Text of the beginning-of-sequence token.
    pub bos: Option<String>,
    /// Text of the end-of-sequence token.
    pub eos: Option<String>,
    /// Whether the tokenizer says that every sequence begins with BOS.
    pub add_bos: bool,
}
