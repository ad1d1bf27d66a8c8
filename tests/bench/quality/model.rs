//! The model under test: its files, its prompts in each layout, and the engine that reads them.

use std::sync::Arc;

use actors::{Engine, RowOutcome};
use anyhow::{Context as _, ensure};
use clap::Parser as _;
use docket::cli::Cli;
use docket::config::DeviceChoice;
use docket::engine::kernels::Precision;
use docket::engine::{CpuEngine, EngineOptions, TensorDevice, TensorEngine};
use docket::files::{self, ModelFiles};
use docket::models::{self, ModelRef, Progress, Store};
use docket::prompt::Prompter;
use docket::prompt::fixed::FixedTokens;
use docket::prompt::layout::letters::{LettersSettings, letters};
use docket::prompt::layout::{self, Profile};
use docket::prompt::state::legend;
use docket::prompt::tokens::model::ModelTokenizer;
use docket::question::answer::Value;
use docket::question::{Kind, Question, Samples, Shown};
use docket::readout::{LabelReading, Reading, ReadingKind, ReadingSpec};
use sha2::{Digest, Sha256};

use crate::cases::Case;
use crate::computed::Computed;
use crate::reading::Reader;
use crate::record::Record;
use crate::table::LETTERS;

/// Probabilities of the server's own readout may differ from the bench's by this.
const READOUT_TOLERANCE: f64 = 1e-9;

/// A model's files, opened; its weights are not loaded yet.
#[derive(Debug)]
pub(crate) struct Model {
    files: ModelFiles,
    profile: Profile,
    tokenizer: Arc<ModelTokenizer>,
}

/// Prompts of the model in one layout.
#[derive(Debug)]
pub(crate) struct ModelLayout {
    /// Its id, what it consists of, and the precision and device unless that is f32 on the `cpu`
    /// engine: results of a layout that was changed are not reused.
    pub(crate) identity: String,
    prompter: Prompter,
}

/// The model with its weights.
#[derive(Debug)]
pub(crate) struct LoadedModel<'a, E> {
    model: &'a Model,
    engine: E,
}

/// Reads cases in one layout.
#[derive(Debug)]
pub(crate) struct LayoutReader<'a, E: Engine> {
    model: &'a Model,
    layout: &'a ModelLayout,
    reader: Reader<'a, E>,
}

impl Model {
    /// Opens a model by catalogue name (pulling it where it is absent) or path.
    pub(crate) fn open(name: &str) -> anyhow::Result<Self> {
        let reference = ModelRef::parse(name)?;
        // The folder of the models is where the commands of docket have it.
        let home = Cli::try_parse_from(["docket", "models"])?.home();
        let path = models::ensure(&Store::new(&home), &reference, false, &mut Progress::detect())?;
        let files = files::open(&path)?;
        let tokenizer = Arc::new(ModelTokenizer::open(&files)?);
        let served = reference.served_name();
        let profile = layout::profile_for(&served, Some(files.config.architecture));
        Ok(Self { files, profile, tokenizer })
    }

    /// Identity of the weights.
    pub(crate) fn fingerprint(&self) -> &str {
        &self.files.fingerprint
    }

    /// Id of the layout of the model's profile.
    pub(crate) fn default_layout(&self) -> &'static str {
        self.profile.layout.id
    }

    /// The model's prompts in the layout of this id.
    pub(crate) fn layout(&self, id: &str, computed: Computed) -> anyhow::Result<ModelLayout> {
        let layout = match id {
            LETTERS => letters(&LettersSettings::default()),
            id => layout::layout(id).with_context(|| format!("no layout is called {id:?}"))?,
        };
        let content = format!("{:x}", Sha256::digest(format!("{layout:?}")));
        let profile = Profile { layout, ..self.profile };
        let tokenizer = Arc::clone(&self.tokenizer);
        let fingerprint = self.fingerprint();
        let prompter = Prompter::new(tokenizer, &self.files.prompt, profile, fingerprint)?;
        let identity = format!("{id}@{}{}", &content[..8], computed.mark());
        Ok(ModelLayout { identity, prompter })
    }

    /// Loads the weights into the `cpu` engine.
    pub(crate) fn load(
        &self,
        precision: Precision,
        threads: usize,
    ) -> anyhow::Result<LoadedModel<'_, CpuEngine>> {
        let options = EngineOptions { threads, precision, ..EngineOptions::default() };
        let (config, tensors) = (&self.files.config, &*self.files.tensors);
        let engine = CpuEngine::load(config, tensors, &options, &mut |_, _| {})?;
        Ok(LoadedModel { model: self, engine })
    }

    /// Loads the weights into the `cuda` engine.
    pub(crate) fn load_on(
        &self,
        device: DeviceChoice,
        precision: Precision,
    ) -> anyhow::Result<LoadedModel<'_, TensorEngine>> {
        let device = match device {
            DeviceChoice::Cpu => TensorDevice::cpu(),
            DeviceChoice::Cuda(number) => TensorDevice::cuda(number as usize)?,
        };
        let options = EngineOptions { precision, ..EngineOptions::default() };
        let (config, tensors) = (&self.files.config, &*self.files.tensors);
        let engine = TensorEngine::load(config, tensors, &device, &options, &mut |_, _| {})?;
        Ok(LoadedModel { model: self, engine })
    }
}

impl ModelLayout {
    /// Tokens of the head.
    pub(crate) fn head_tokens(&self) -> usize {
        self.prompter.head().tokens.len()
    }

    /// What the layout adds to a question's own words.
    pub(crate) fn fixed(&self, kind: &Kind) -> FixedTokens {
        self.prompter.fixed_tokens().of(kind)
    }

    /// Tokens behind the state in each order of a case.
    pub(crate) fn suffixes(&self, case: &Case) -> Vec<f64> {
        let wanted = Reading::new(spec(&self.prompter, &case.question.kind)).wanted();
        let tokens = |shown| self.prompter.suffix(&case.question, shown).suffix.len() as f64;
        wanted.iter().map(tokens).collect()
    }

    /// Orders of a question that the profile has read.
    pub(crate) fn orders(&self, question: &Question) -> usize {
        self.prompter.orders(question, Samples::Auto, u32::MAX) as usize
    }
}

impl<E: Engine> LoadedModel<'_, E> {
    /// A reader of cases in this layout.
    pub(crate) fn reader<'a>(&'a self, layout: &'a ModelLayout) -> LayoutReader<'a, E> {
        LayoutReader { model: self.model, layout, reader: Reader::new(&self.engine) }
    }
}

impl<E: Engine> LayoutReader<'_, E> {
    /// Reads a case in all its orders.
    pub(crate) fn record(&mut self, case: &Case) -> anyhow::Result<Record> {
        let prompter = &self.layout.prompter;
        let kind = &case.question.kind;
        let mut reading = Reading::new(spec(prompter, kind));
        let shown = reading.wanted();
        let reads: Vec<_> =
            shown.iter().map(|shown| prompter.suffix(&case.question, shown)).collect();
        let prefix = prompter.prefix(&case.state, &[]).prefix;
        let read = self.reader.read(&prefix, &reads)?;

        let record = Record {
            model: self.model.fingerprint().to_owned(),
            layout: self.layout.identity.clone(),
            case: case.id.clone(),
            kind: kind.name().to_owned(),
            gold: case.gold,
            orders: shown.iter().zip(&read.rows).map(|(s, row)| in_request_order(s, row)).collect(),
            mass: read.rows.iter().map(mass).collect(),
            greedy: read.rows.iter().filter(|row| row.greedy_is_label).count(),
            tokens: read.tokens,
            elapsed_ms: read.elapsed.as_secs_f64() * 1e3,
        };
        reading.absorb(read.rows.into_iter().map(label_reading).collect())?;
        ensure!(reading.wanted().is_empty(), "the question wants another round");
        check_readout(&record, &reading.finish().0)?;
        Ok(record)
    }
}

fn spec(prompter: &Prompter, kind: &Kind) -> ReadingSpec {
    let reading = match kind {
        Kind::Noul { .. } => ReadingKind::Noul { yes_first: prompter.yes_first(kind) },
        Kind::Choice { options } => {
            ReadingKind::Choice { keys: options.iter().map(|option| option.key.clone()).collect() }
        }
        Kind::Score { levels } => ReadingKind::Score { legend: legend(levels) },
    };
    ReadingSpec {
        entropy_max: None,
        kind: reading,
        labels_max: prompter.labels_max(kind),
        orders: u32::MAX,
        temperature: 1.0,
        correction: None,
    }
}

fn in_request_order(shown: &Shown, row: &RowOutcome) -> Vec<f64> {
    let mut logprobs = vec![f64::NEG_INFINITY; shown.options.len()];
    for (option, logprob) in shown.options.iter().zip(&row.logprobs) {
        logprobs[*option] = f64::from(*logprob);
    }
    logprobs
}

fn mass(row: &RowOutcome) -> f64 {
    row.log_mass.map_or(f64::NAN, |log| f64::from(log).exp())
}

fn label_reading(row: RowOutcome) -> LabelReading {
    LabelReading {
        logprobs: row.logprobs,
        log_mass: row.log_mass,
        greedy_is_label: row.greedy_is_label,
        hidden: None,
    }
}

/// Checks that what is measured here is what the server would answer.
fn check_readout(record: &Record, value: &Value) -> anyhow::Result<()> {
    let served = match value {
        Value::Noul { yes } => vec![1.0 - yes, *yes],
        Value::Choice { probabilities, .. } | Value::Score { probabilities, .. } => {
            probabilities.clone()
        }
        Value::Number(_) | Value::Excerpt(_) | Value::Skipped { .. } => Vec::new(),
    };
    let ours = crate::table::average(record, usize::MAX);
    let far = ours.iter().zip(&served).any(|(a, b)| (a - b).abs() > READOUT_TOLERANCE);
    ensure!(!far && ours.len() == served.len(), "the readout gives {served:?}, the bench {ours:?}");
    Ok(())
}
