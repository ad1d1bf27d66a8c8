//! Flags of the letters manner and of tasks, under decisio's names.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::named::one_of;
use crate::config::Config;
use crate::prompt::layout::letters::{AnswerSlot, NoulRendering, PromptTail};

use super::set;

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

impl Switch {
    fn is_on(self) -> bool {
        self == Self::On
    }
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "The decisio dialect, and tasks")]
pub(super) struct LettersArgs {
    /// How a noul is asked in the decisio dialect: words, letters or letters-keys [default: letters]
    #[arg(long, env = "DOCKET_NOUL_RENDERING", value_name = "words|letters|letters-keys")]
    #[arg(value_parser = one_of::<NoulRendering>(&NoulRendering::names()))]
    #[arg(hide_possible_values = true)]
    noul_rendering: Option<NoulRendering>,

    /// Show descriptions alone where keys only count [default: on]
    #[arg(long, env = "DOCKET_HIDE_INDEX_KEYS", value_enum, hide_possible_values = true)]
    #[arg(value_name = "on|off")]
    hide_index_keys: Option<Switch>,

    /// Show an option's description in place of its key [default: on]
    #[arg(long, env = "DOCKET_DESCRIBE_OPTIONS", value_enum, hide_possible_values = true)]
    #[arg(value_name = "on|off")]
    describe_options: Option<Switch>,

    /// Show keys of words joined by _ as words [default: on]
    #[arg(long, env = "DOCKET_DESNAKE_LABELS", value_enum, hide_possible_values = true)]
    #[arg(value_name = "on|off")]
    desnake_labels: Option<Switch>,

    /// How a question is set: compact or spaced [default: spaced]
    #[arg(long, env = "DOCKET_PROMPT_TAIL", value_name = "compact|spaced")]
    #[arg(value_parser = one_of::<PromptTail>(&PromptTail::names()), hide_possible_values = true)]
    prompt_tail: Option<PromptTail>,

    /// Where the label is read: template, or prefill after `Answer:` [default: template]
    #[arg(long, env = "DOCKET_ANSWER_SLOT", value_name = "template|prefill")]
    #[arg(value_parser = one_of::<AnswerSlot>(&AnswerSlot::names()), hide_possible_values = true)]
    answer_slot: Option<AnswerSlot>,

    /// Begin with a system turn that says how to answer [default: on]
    #[arg(long, env = "DOCKET_SYSTEM_PROMPT", value_enum, hide_possible_values = true)]
    #[arg(value_name = "on|off")]
    system_prompt: Option<Switch>,

    /// Divisor of the log-probabilities, in all dialects [default: the profile's; 1 in decisio]
    #[arg(long, env = "DOCKET_TEMPERATURE", value_name = "NUMBER")]
    temperature: Option<f64>,

    /// The same for nouls [default: as --temperature]
    #[arg(long, env = "DOCKET_TEMPERATURE_NOUL", value_name = "NUMBER")]
    temperature_noul: Option<f64>,

    /// The same for choices [default: as --temperature]
    #[arg(long, env = "DOCKET_TEMPERATURE_CHOICE", value_name = "NUMBER")]
    temperature_choice: Option<f64>,

    /// The same for scores [default: as --temperature]
    #[arg(long, env = "DOCKET_TEMPERATURE_SCORE", value_name = "NUMBER")]
    temperature_score: Option<f64>,

    /// Move the probability of a yes within .2 and .8 to the nearer of these, in decisio
    #[arg(long, env = "DOCKET_NOUL_COMMIT", value_parser = clap::builder::BoolishValueParser::new())]
    noul_commit: bool,

    /// Apply what tasks have learned [default: on]
    #[arg(long, env = "DOCKET_TASKS", value_enum, hide_possible_values = true)]
    #[arg(value_name = "on|off")]
    tasks: Option<Switch>,

    /// Apply thresholds of abstention tasks [default: on]
    #[arg(long, env = "DOCKET_ABSTENTION", value_enum, hide_possible_values = true)]
    #[arg(value_name = "on|off")]
    abstention: Option<Switch>,

    /// An option for not knowing that is offered in requests of the form with images
    #[arg(long, env = "DOCKET_ABSTAIN_OPTION", value_name = "TEXT")]
    abstain_option: Option<String>,

    /// A file of tasks to take in, as GET /v1/tasks?full=1 gives them
    #[arg(long, env = "DOCKET_TASKS_FILE", value_name = "FILE")]
    tasks_file: Option<PathBuf>,

    /// Folder in which tasks are kept [default: none, they end with the process]
    #[arg(long, env = "DOCKET_TASKS_DIR", value_name = "FOLDER")]
    tasks_dir: Option<PathBuf>,

    /// Let requests ask for the raw readout by x-decisio-debug; never in production
    #[arg(long, env = "DOCKET_DEBUG_READOUT")]
    #[arg(value_parser = clap::builder::BoolishValueParser::new())]
    debug_readout: bool,
}

impl LettersArgs {
    pub(super) fn fill(self, config: &mut Config) {
        let letters = &mut config.letters;
        let switch =
            |setting: &mut bool, typed: Option<Switch>| set(setting, typed.map(Switch::is_on));
        set(&mut letters.settings.noul_rendering, self.noul_rendering);
        switch(&mut letters.settings.hide_index_keys, self.hide_index_keys);
        switch(&mut letters.settings.describe_options, self.describe_options);
        switch(&mut letters.settings.desnake_labels, self.desnake_labels);
        set(&mut letters.settings.prompt_tail, self.prompt_tail);
        set(&mut letters.settings.answer_slot, self.answer_slot);
        switch(&mut letters.settings.system_prompt, self.system_prompt);
        letters.temperature = self.temperature;
        letters.temperature_of.noul = self.temperature_noul;
        letters.temperature_of.choice = self.temperature_choice;
        letters.temperature_of.score = self.temperature_score;
        letters.noul_commit = self.noul_commit;
        switch(&mut letters.tasks, self.tasks);
        switch(&mut letters.abstention, self.abstention);
        letters.abstain_option = self.abstain_option;
        letters.tasks_file = self.tasks_file;
        letters.tasks_folder = self.tasks_dir;
        letters.debug_readout = self.debug_readout;
    }
}
