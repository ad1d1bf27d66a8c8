//! GGUF files of dense architectures that candle-transformers has in quantised form and our decoder
//! has not.
//!
//! candle's models read the file themselves and compute on its blocks as they are. They fix what
//! files of their family may say otherwise, so `family` refuses by name whatever they would compute
//! wrongly, before they see it.

mod family;
mod renamed;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::Path;

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{DType, Device, Error, Tensor};
use candle_transformers::models::{
    quantized_glm4, quantized_lfm2, quantized_phi, quantized_phi3, quantized_stable_lm,
};
use candle_transformers::quantized_var_builder::VarBuilder;

use self::family::{Family, Sizes};
use super::{Forward, Oracle};
use crate::engine::{EngineOptions, LoadError};
use crate::files::{self, FOREIGN_GGUF, FilesError, Nature, Printable};

/// Longest prompt where none is asked for. candle holds the scores of all heads at once, so that
/// memory grows with the square of the prompt: at 4,096 tokens and 32 heads 2 GiB a copy.
const CONTEXT_DEFAULT: usize = 4096;

/// Bytes of attention masks, which some of candle's models keep one of for each length of prompt
/// forever, before the model is built anew to be rid of them.
const MASKS_BYTES_MAX: usize = 256 << 20;

/// Opens the file's model, and runs it once.
pub(super) fn open(path: &Path, options: &EngineOptions) -> Result<Oracle, LoadError> {
    let (file, family, sizes) = look(path)?;
    // candle believes all weights.
    files::check_finite(path)?;
    let wanted = options.context_tokens.map_or(CONTEXT_DEFAULT, |tokens| tokens as usize);
    let context = sizes.context.min(wanted);
    let mut model = Quantised::new(file, family, Sizes { context, ..sizes });
    model.try_out().map_err(|error| fault(path, &error))?;
    let forward = Box::new(move |ids: &Tensor| model.forward(ids));
    Ok(Oracle { forward, vocab: sizes.vocab, context })
}

/// Tokens that the file's model can be asked for.
pub(super) fn context(path: &Path) -> Result<usize, LoadError> {
    look(path).map(|(_, _, sizes)| sizes.context)
}

/// The file, once its settings have been checked.
fn look(path: &Path) -> Result<(File, Family, Sizes), LoadError> {
    // This reads the header with our own reader, which checks what candle's believes.
    let family = match files::nature(path)? {
        Nature::Foreign(name) => Family::named(&name),
        Nature::Decoder | Nature::NotCausal(_) => None,
    };
    let family = family.ok_or_else(|| {
        let message = format!("the architecture is none of {}", FOREIGN_GGUF.join(", "));
        fault(path, &message)
    })?;
    let mut file = File::open(path)
        .map_err(|source| LoadError::from(FilesError::Io { path: path.to_owned(), source }))?;
    let content = read(&mut file).map_err(|error| fault(path, &error))?;
    let sizes = family.check(&content).map_err(|message| fault(path, &message))?;
    Ok((file, family, sizes))
}

fn fault(path: &Path, message: &dyn std::fmt::Display) -> LoadError {
    LoadError::Config(format!("{}: {}", path.display(), Printable(message)))
}

fn read(file: &mut File) -> candle_core::Result<Content> {
    file.seek(SeekFrom::Start(0))?;
    Content::read(&mut BufReader::new(file))
}

/// A model that can be built again from its file, which stays open.
struct Quantised {
    file: File,
    family: Family,
    sizes: Sizes,
    built: Option<Forward>,
    /// Lengths of prompts since it was built, and the bytes of their masks.
    lengths: BTreeSet<usize>,
    masks_bytes: usize,
    masks_bytes_max: usize,
}

impl Quantised {
    fn new(file: File, family: Family, sizes: Sizes) -> Self {
        Self {
            file,
            family,
            sizes,
            built: None,
            lengths: BTreeSet::new(),
            masks_bytes: 0,
            masks_bytes_max: MASKS_BYTES_MAX,
        }
    }

    /// Logits after the last of `ids`.
    fn forward(&mut self, ids: &Tensor) -> candle_core::Result<Tensor> {
        let tokens = ids.dim(1)?;
        if tokens < 2 && self.family == Family::Lfm2 {
            // With one token alone candle takes it for the next one of the prompt before.
            return Err(Error::Msg("a prompt of one token cannot be read".to_owned()));
        }
        if self.family.keeps_masks() && self.lengths.insert(tokens) {
            self.masks_bytes += tokens * tokens;
        }
        if self.masks_bytes > self.masks_bytes_max && self.lengths.len() > 1 {
            self.built = None;
            self.lengths = BTreeSet::from([tokens]);
            self.masks_bytes = tokens * tokens;
        }
        if self.built.is_none() {
            self.built = Some(self.build()?);
        }
        match &mut self.built {
            Some(forward) => forward(ids),
            None => Err(Error::Msg("the model is gone".to_owned())),
        }
    }

    /// One forward pass, so that a matrix of a wrong shape is a fault of the file at start.
    fn try_out(&mut self) -> candle_core::Result<()> {
        let logits = self.forward(&Tensor::zeros((1, 2), DType::U32, &Device::Cpu)?)?;
        let (found, vocab) = (logits.elem_count(), self.sizes.vocab);
        if found == vocab {
            return Ok(());
        }
        Err(Error::Msg(format!("the output has {found} rows, the embedding {vocab}")))
    }

    fn build(&mut self) -> candle_core::Result<Forward> {
        let mut content = read(&mut self.file)?;
        // candle makes tables and caches for the whole context, so no more than is used.
        let context = u32::try_from(self.sizes.context).unwrap_or(u32::MAX);
        content.metadata.insert(self.family.key("context_length"), Value::U32(context));
        let reader = &mut BufReader::new(&mut self.file);
        let device = &Device::Cpu;
        Ok(match self.family {
            Family::Glm4 => {
                let from_gguf = quantized_glm4::ModelWeights::from_gguf;
                let mut model = from_gguf(content, reader, device, DType::F32)?;
                Box::new(move |ids| model.forward(ids, 0))
            }
            Family::Lfm2 => {
                let mut model = quantized_lfm2::ModelWeights::from_gguf(content, reader, device)?;
                Box::new(move |ids| model.forward(ids, 0))
            }
            Family::Phi2 => {
                let mut model = quantized_phi::ModelWeights::from_gguf(content, reader, device)?;
                Box::new(move |ids| model.forward(ids, 0))
            }
            Family::Phi3 => {
                let from_gguf = quantized_phi3::ModelWeights::from_gguf;
                let mut model = from_gguf(false, content, reader, device)?;
                Box::new(move |ids| model.forward(ids, 0))
            }
            Family::StableLm => {
                let config = renamed::stable_lm_config(&content, &self.sizes)?;
                let bytes = renamed::stable_lm_bytes(&content, reader)?;
                let variables = VarBuilder::from_gguf_buffer(&bytes, device)?;
                let mut model = quantized_stable_lm::Model::new(&config, variables)?;
                Box::new(move |ids| model.forward(ids, 0))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::gguf_file;
    use candle_core::quantized::{GgmlDType, QTensor};

    use super::*;

    /// A phi 2 of one layer, with weights that a sine makes.
    fn file() -> File {
        let settings = [
            ("context_length", 64),
            ("embedding_length", 8),
            ("feed_forward_length", 16),
            ("block_count", 1),
            ("attention.head_count", 2),
            ("attention.head_count_kv", 2),
            ("rope.dimension_count", 4),
        ];
        let mut metadata: Vec<(String, Value)> = settings
            .iter()
            .map(|(key, value)| (Family::Phi2.key(key), Value::U32(*value)))
            .collect();
        metadata.push((Family::Phi2.key("attention.layer_norm_epsilon"), Value::F32(1e-5)));
        let shapes = [
            ("token_embd", 32, 8),
            ("output_norm", 8, 0),
            ("output", 32, 8),
            ("blk.0.attn_norm", 8, 0),
            ("blk.0.attn_qkv", 24, 8),
            ("blk.0.attn_output", 8, 8),
            ("blk.0.ffn_up", 16, 8),
            ("blk.0.ffn_down", 8, 16),
        ];
        let mut tensors = Vec::new();
        for (name, rows, columns) in shapes {
            let (vector, matrix) = ([rows], [rows, columns]);
            let weight = if columns == 0 { &vector[..] } else { &matrix };
            let bias = (name != "token_embd").then_some(("bias", &vector[..]));
            for (suffix, shape) in bias.into_iter().chain([("weight", weight)]) {
                let values = (0_u16..).take(shape.iter().product());
                let values: Vec<f32> = values.map(|index| (f32::from(index) * 0.7).sin()).collect();
                let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
                let tensor = QTensor::quantize(&tensor, GgmlDType::F32).unwrap();
                tensors.push((format!("{name}.{suffix}"), tensor));
            }
        }
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        let tensors: Vec<_> = tensors.iter().map(|(key, tensor)| (key.as_str(), tensor)).collect();
        let mut file = tempfile::tempfile().unwrap();
        gguf_file::write(&mut file, &metadata, &tensors).unwrap();
        file
    }

    #[test]
    fn masks_of_many_lengths_do_not_pile_up_and_change_nothing() {
        let mut file = file();
        let sizes = Family::Phi2.check(&read(&mut file).unwrap()).unwrap();
        let mut model = Quantised::new(file, Family::Phi2, sizes);
        model.masks_bytes_max = 30 * 30;
        let ids: Vec<u32> = (0..32).collect();
        let mut read = |count: usize| -> Vec<f32> {
            let ids = Tensor::new(&ids[..count], &Device::Cpu).unwrap().unsqueeze(0).unwrap();
            let logits = model.forward(&ids).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            assert!(model.masks_bytes <= model.masks_bytes_max || model.lengths.len() == 1);
            logits
        };
        let first = read(5);
        for count in 2..30 {
            read(count);
        }
        assert_eq!(read(5), first);
        assert!(model.lengths.len() < 28, "masks were dropped");
    }
}
