//! A model on other servers: its tokenizer and template from its files, none of its weights.

use std::path::Path;

use actors::Engine as _;
use hyper::header::HeaderValue;
use serde_json::json;
use tokio::runtime::Handle;

use super::super::{AnyEngine, Loaded, Opened, StartError, check_room, context};
use super::{loaded, prompters, unreadable};
use crate::config::{Config, RemoteConfig, check_key};
use crate::engine::remote::{Expected, Protocol, RemoteEngine, RemoteOptions};
use crate::files::{self, DecoderConfig, Nature};
use crate::models::{Progress, Store, ensure};
use crate::prompt::tokens::TextTokenizer as _;
use crate::prompt::tokens::model::ModelTokenizer;

/// Bytes of keys and values of one position where the model's files do not tell: a model of 7 B has
/// about so many.
const KV_BYTES_PER_TOKEN: u64 = 128 << 10;

/// Texts by which it is seen that a server has the same tokenizer. The first is read as a prompt.
const TEXTS: [&str; 4] = [
    "The capital of France is Paris, and 12345 people (or 6,789?) know it.",
    "  Two spaces,\ta tab and\n\nempty lines: \u{e4}\u{f6}\u{fc}\u{df} \u{2014} done.",
    "\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{6587}\u{3001} \u{1f642} and \u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}!",
    "fn main() { let x = [3.14_f64; 2]; println!(\"{x:?}\"); } // don't",
];

/// Finds the model's files, pulling them first if they are absent, and the servers that run it.
pub(in crate::start::model) fn load(
    config: &Config,
    protocol: Protocol,
    runtime: &Handle,
) -> Result<Opened, StartError> {
    let (store, model) = (Store::new(&config.model.home), &config.model.model);
    let path = ensure(&store, model, config.model.offline, &mut Progress::detect())?;
    if let Nature::NotCausal(architecture) = files::nature(&path)? {
        let why = format!("{architecture} is not causal: no next token comes out of it");
        return Ok(unreadable(config, &architecture, why));
    }
    Ok(Opened::Readable(Box::new(open(config, &path, (protocol, runtime))?)))
}

fn open(
    config: &Config,
    path: &Path,
    (protocol, runtime): (Protocol, &Handle),
) -> Result<Loaded, StartError> {
    tracing::info!("opening {}, for its tokenizer and template only", path.display());
    let parts = files::open_prompt(path)?;
    // The profile of a family that is known here; any other model is served as well.
    let decoder = files::open(path).ok().map(|files| files.config);
    let architecture = decoder.as_ref().map(|decoder| decoder.architecture);
    let prompters = prompters(config, path, &parts, architecture)?;
    let tokenizer = ModelTokenizer::new(path, &parts.tokenizer)?;
    let texts = TEXTS.map(|text| (text.to_owned(), tokenizer.encode(text)));
    let rows = parts.rows.unwrap_or_else(|| tokenizer.vocab_size());
    let expected = Expected {
        texts: texts.into(),
        vocab: u32::try_from(rows).unwrap_or(u32::MAX),
        context_tokens: super::wanted_context(config),
        kv_bytes_per_token: kv_bytes_per_token(path, decoder.as_ref()),
    };
    let options = options(&config.engine.remote, protocol)?;
    let servers = options.targets.len();
    let engine = RemoteEngine::connect(options, expected, runtime).map_err(|error| {
        StartError::Setting { flag: "--engine-url", message: error.to_string() }
    })?;
    let context_tokens = context(config, engine.caps().context_tokens)?;
    check_room(config, &prompters, context_tokens)?;
    let status = engine.status();
    let details = json!({
        "engine": protocol.name(),
        "servers": servers,
        "precision": "the servers'",
        "vocabulary": rows,
        "memory": { "kv_bytes_per_token": engine.caps().kv_bytes_per_token },
    });
    let engine = AnyEngine::Remote(engine);
    let mut loaded = loaded(config, engine, prompters, &parts, (context_tokens, details));
    loaded.facts.remote = Some(status);
    Ok(loaded)
}

fn kv_bytes_per_token(path: &Path, decoder: Option<&DecoderConfig>) -> u64 {
    let of_decoder = decoder.map(|decoder| files::KvShape {
        layers: decoder.layers as u64,
        heads: decoder.kv_heads as u64,
        head_dim: decoder.head_dim as u64,
    });
    // It only weighs states against each other and against what servers say they hold.
    let shape = of_decoder.or_else(|| files::kv_shape(path).ok().flatten());
    shape.map_or(KV_BYTES_PER_TOKEN, |shape| shape.bytes_per_token().max(1))
}

/// How the servers are asked, with the key read from its file.
fn options(remote: &RemoteConfig, protocol: Protocol) -> Result<RemoteOptions, StartError> {
    let fault = |message: String| StartError::Setting { flag: "--engine-key-file", message };
    let key = match (&remote.key, &remote.key_file) {
        (Some(key), _) => Some(key.reveal().to_owned()),
        (None, Some(file)) => {
            let told = |why: &dyn std::fmt::Display| fault(format!("{}: {why}", file.display()));
            let text = std::fs::read_to_string(file).map_err(|error| told(&error))?;
            let key = text.trim();
            check_key(key).map_err(|why| told(&why))?;
            Some(key.to_owned())
        }
        (None, None) => None,
    };
    let header = |key: String| {
        let value = HeaderValue::from_str(&format!("Bearer {key}"));
        let mut value = value.map_err(|_| fault("it cannot stand in a header".to_owned()))?;
        value.set_sensitive(true);
        Ok::<_, StartError>(value)
    };
    Ok(RemoteOptions {
        protocol,
        targets: remote.targets(),
        key: key.map(header).transpose()?,
        model: remote.model.clone(),
        authorities: remote.authorities.clone(),
        window: remote.window as usize,
        timeout: remote.timeout,
        retry_for: remote.retry_for,
        wait: remote.wait,
    })
}
