//! What candle's quantised models take for granted of their family's files.
//!
//! Keys, names and defaults are llama.cpp's (`llama-arch.cpp`, `llama-model.cpp`). A tensor that a
//! model would leave out, or a setting that it would not read, makes another function of it.

use candle_core::quantized::gguf_file::{Content, Value};

/// Most layers that are believed.
const LAYERS_MAX: usize = 1024;
/// Largest width or context that is believed.
const DIMENSION_MAX: usize = 1 << 24;
/// Base of the rope frequencies where a file names none, and where candle's model fixes it.
const ROPE_BASE: f64 = 10_000.0;
/// Positions of candle's phi 2.
const PHI2_CONTEXT: usize = 4096;

/// A family of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Glm4,
    Lfm2,
    Phi2,
    Phi3,
    StableLm,
}

/// Sizes of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) vocab: usize,
    pub(super) context: usize,
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) intermediate: usize,
    /// Numbers of a head that are rotated.
    pub(super) rotated: usize,
}

impl Family {
    /// The family of a `general.architecture`.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Glm4, Self::Lfm2, Self::Phi2, Self::Phi3, Self::StableLm]
            .into_iter()
            .find(|family| family.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Glm4 => "glm4",
            Self::Lfm2 => "lfm2",
            Self::Phi2 => "phi2",
            Self::Phi3 => "phi3",
            Self::StableLm => "stablelm",
        }
    }

    /// The metadata key of one of the family's settings.
    pub(super) fn key(self, name: &str) -> String {
        format!("{}.{name}", self.name())
    }

    /// Whether candle's model keeps the mask of each length of prompt.
    pub(super) fn keeps_masks(self) -> bool {
        match self {
            Self::Lfm2 | Self::Phi2 | Self::Phi3 => true,
            Self::Glm4 | Self::StableLm => false,
        }
    }

    /// Tensors outside the layers that candle's model reads.
    fn outer(self) -> &'static [&'static str] {
        match self {
            Self::Glm4 | Self::Phi3 => {
                &["token_embd.weight", "output_norm.weight", "output.weight"]
            }
            Self::Lfm2 => &[
                "token_embd.weight",
                "token_embd_norm.weight",
                "output_norm.weight",
                "output.weight",
            ],
            Self::Phi2 => &[
                "token_embd.weight",
                "output_norm.weight",
                "output_norm.bias",
                "output.weight",
                "output.bias",
            ],
            Self::StableLm => {
                &["token_embd.weight", "output_norm.weight", "output_norm.bias", "output.weight"]
            }
        }
    }

    /// Tensors of a layer that it reads: weights, and whether there may be a bias.
    fn inner(self) -> &'static [(&'static str, bool)] {
        match self {
            Self::Glm4 => &[
                ("attn_norm", false),
                ("attn_q", true),
                ("attn_k", true),
                ("attn_v", true),
                ("attn_output", false),
                ("post_attention_norm", false),
                ("ffn_norm", false),
                ("ffn_up", false),
                ("ffn_down", false),
                ("post_ffw_norm", false),
            ],
            Self::Lfm2 => &[
                ("attn_norm", false),
                ("attn_q", false),
                ("attn_k", false),
                ("attn_v", false),
                ("attn_output", false),
                ("attn_q_norm", false),
                ("attn_k_norm", false),
                ("shortconv.in_proj", false),
                ("shortconv.conv", false),
                ("shortconv.out_proj", false),
                ("ffn_norm", false),
                ("ffn_gate", false),
                ("ffn_up", false),
                ("ffn_down", false),
            ],
            Self::Phi2 => &[
                ("attn_norm", true),
                ("attn_qkv", true),
                ("attn_output", true),
                ("ffn_up", true),
                ("ffn_down", true),
            ],
            Self::Phi3 => &[
                ("attn_norm", false),
                ("attn_qkv", false),
                ("attn_output", false),
                ("ffn_norm", false),
                ("ffn_up", false),
                ("ffn_down", false),
            ],
            Self::StableLm => &[
                ("attn_norm", true),
                ("attn_q", true),
                ("attn_k", true),
                ("attn_v", true),
                ("attn_output", false),
                ("ffn_norm", true),
                ("ffn_gate", false),
                ("ffn_up", false),
                ("ffn_down", false),
            ],
        }
    }

    /// Checks that candle's model computes what the file says; its sizes.
    ///
    /// # Errors
    /// The first thing that it would compute otherwise, or that no model can have.
    pub(super) fn check(self, content: &Content) -> Result<Sizes, String> {
        let settings = Settings { family: self, content };
        let sizes = settings.sizes()?;
        settings.refuse_strangers(sizes.layers)?;
        settings.refuse_stretched()?;
        settings.check_heads(&sizes)?;
        settings.check_rope(&sizes)?;
        Ok(sizes)
    }
}

/// A file's metadata, read by keys without the architecture in front.
struct Settings<'a> {
    family: Family,
    content: &'a Content,
}

impl Settings<'_> {
    fn value(&self, key: &str) -> Option<&Value> {
        self.content.metadata.get(&self.family.key(key))
    }

    /// A whole number, if it is there.
    fn number(&self, key: &str) -> Result<Option<usize>, String> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let number = value.to_u64().ok().or_else(|| u64::try_from(value.to_i32().ok()?).ok());
        let number = number.and_then(|number| usize::try_from(number).ok());
        let fault = || format!("{} is no whole number", self.family.key(key));
        number.map(Some).ok_or_else(fault)
    }

    /// A whole number from 1 to `limit`.
    fn size(&self, key: &str, limit: usize) -> Result<usize, String> {
        let name = self.family.key(key);
        let size = self.number(key)?.ok_or_else(|| format!("metadata {name} is missing"))?;
        if (1..=limit).contains(&size) {
            return Ok(size);
        }
        Err(format!("{name} is {size}; 1 to {limit} are allowed"))
    }

    fn float(&self, key: &str) -> Option<f64> {
        let value = self.value(key)?;
        value.to_f32().ok().map(f64::from).or_else(|| value.to_f64().ok())
    }

    fn sizes(&self) -> Result<Sizes, String> {
        let hidden = self.size("embedding_length", DIMENSION_MAX)?;
        let embedding = self.content.tensor_infos.get("token_embd.weight");
        let vocab = match embedding.map(|tensor| tensor.shape.dims()) {
            Some(&[vocab, width]) if width == hidden => vocab,
            Some(found) => {
                return Err(format!(
                    "token_embd.weight has the shape {found:?}, not {hidden} wide"
                ));
            }
            None => return Err("tensor token_embd.weight is missing".to_owned()),
        };
        let heads = self.size("attention.head_count", DIMENSION_MAX)?;
        let mut context = self.size("context_length", DIMENSION_MAX)?;
        // candle's models have no windows: inside the first one there is no difference.
        if let Some(window) = self.number("attention.sliding_window")?.filter(|window| *window > 0)
        {
            context = context.min(window);
        }
        if self.family == Family::Phi2 {
            context = context.min(PHI2_CONTEXT);
        }
        let head_dim = self.head_dim(hidden, heads)?;
        Ok(Sizes {
            vocab,
            context,
            hidden,
            layers: self.size("block_count", LAYERS_MAX)?,
            heads,
            kv_heads: self.kv_heads(heads)?,
            intermediate: self.size("feed_forward_length", DIMENSION_MAX)?,
            rotated: self.number("rope.dimension_count")?.unwrap_or(head_dim),
        })
    }

    /// Key/value heads; of a list (lfm2: 0 where a layer has no attention) the largest.
    fn kv_heads(&self, heads: usize) -> Result<usize, String> {
        let Some(Value::Array(list)) = self.value("attention.head_count_kv") else {
            return self.size("attention.head_count_kv", heads);
        };
        let layers = self.size("block_count", LAYERS_MAX)?;
        let count = |value: &Value| match value.to_i32().ok().map(i64::from).or(value.to_i64().ok())
        {
            Some(count) => usize::try_from(count).ok(),
            None => value.to_u64().ok().and_then(|count| usize::try_from(count).ok()),
        };
        let counts: Option<Vec<usize>> = list.iter().map(count).collect();
        let counts = counts.filter(|counts| counts.len() == layers && self.family == Family::Lfm2);
        let counts = counts.ok_or("attention.head_count_kv is no list of this model's layers")?;
        let largest = counts.iter().copied().max().unwrap_or(0);
        let shared = counts.iter().all(|count| *count == 0 || *count == largest);
        if shared && (1..=heads).contains(&largest) {
            return Ok(largest);
        }
        Err("attention.head_count_kv differs from layer to layer, or is 0 in all".to_owned())
    }

    fn head_dim(&self, hidden: usize, heads: usize) -> Result<usize, String> {
        match self.family {
            Family::Glm4 => self.size("attention.key_length", DIMENSION_MAX),
            Family::Lfm2 | Family::Phi2 | Family::Phi3 | Family::StableLm => {
                if hidden.is_multiple_of(heads) {
                    return Ok(hidden / heads);
                }
                Err(format!("{heads} heads do not divide the width {hidden}"))
            }
        }
    }

    /// A tensor that the model would leave out.
    fn refuse_strangers(&self, layers: usize) -> Result<(), String> {
        let (outer, inner) = (self.family.outer(), self.family.inner());
        let is_known = |name: &str| {
            let Some((layer, rest)) = name.strip_prefix("blk.").and_then(|n| n.split_once('.'))
            else {
                return outer.contains(&name);
            };
            let known = |(stem, bias): &(&str, bool)| match rest.strip_prefix(stem) {
                Some(".weight") => true,
                Some(".bias") => *bias,
                Some(_) | None => false,
            };
            layer.parse::<usize>().is_ok_and(|layer| layer < layers) && inner.iter().any(known)
        };
        let mut names: Vec<&String> = self.content.tensor_infos.keys().collect();
        names.sort();
        match names.into_iter().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(name) => Err(format!(
                "tensor {name} is not part of the reference engine's {} model",
                self.family.name()
            )),
        }
    }

    /// Settings that none of the models reads.
    fn refuse_stretched(&self) -> Result<(), String> {
        let kind = self.value("rope.scaling.type").and_then(|kind| kind.to_string().ok());
        let kind = kind.map_or("linear", String::as_str);
        let factor = self.float("rope.scaling.factor").or(self.float("rope.scale_linear"));
        // llama.cpp reads 0 as "not scaled" too.
        let stretched = factor.is_some_and(|factor| factor != 0.0 && (factor - 1.0).abs() > 0.0);
        let parts = self.content.metadata.get("split.count").and_then(|n| n.to_u64().ok());
        let rules = [
            (kind != "none" && (kind != "linear" || stretched), "a stretched rope"),
            (self.number("expert_count")?.unwrap_or(0) > 0, "mixtures of experts"),
            (parts.unwrap_or(1) > 1, "files in parts"),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            None => Ok(()),
            Some((_, what)) => {
                let name = self.family.name();
                Err(format!("the reference engine's {name} model does not do {what}"))
            }
        }
    }

    fn check_heads(&self, sizes: &Sizes) -> Result<(), String> {
        let Sizes { heads, kv_heads, hidden, .. } = *sizes;
        let groups = heads.is_multiple_of(kv_heads);
        if !groups || (self.family == Family::Phi2 && heads != kv_heads) {
            return Err(format!("{heads} heads cannot share {kv_heads} key/value heads here"));
        }
        let head_dim = self.head_dim(hidden, heads)?;
        for key in ["attention.key_length", "attention.value_length"] {
            let length = self.number(key)?.unwrap_or(head_dim);
            if length != head_dim {
                let name = self.family.key(key);
                return Err(format!("{name} is {length}; only {head_dim} is supported"));
            }
        }
        Ok(())
    }

    fn check_rope(&self, sizes: &Sizes) -> Result<(), String> {
        let head_dim = self.head_dim(sizes.hidden, sizes.heads)?;
        let wanted = match self.family {
            Family::Glm4 => head_dim / 2,
            Family::Lfm2 | Family::Phi3 => head_dim,
            Family::Phi2 | Family::StableLm => sizes.rotated.min(head_dim),
        };
        let rotated = sizes.rotated;
        if rotated != wanted || rotated == 0 || !rotated.is_multiple_of(2) {
            return Err(format!(
                "{} is {rotated}; only {wanted}, even, is supported",
                self.family.key("rope.dimension_count")
            ));
        }
        let name = self.family.key("rope.freq_base");
        let base = self.float("rope.freq_base");
        match self.family {
            Family::Phi2 | Family::Phi3 => match base.unwrap_or(ROPE_BASE) {
                base if (base - ROPE_BASE).abs() > 0.0 => {
                    Err(format!("{name} is {base}; only {ROPE_BASE} is supported"))
                }
                _ => Ok(()),
            },
            // Where it is missing, candle's defaults are not llama.cpp's.
            Family::Glm4 | Family::Lfm2 => {
                base.map(|_| ()).ok_or_else(|| format!("metadata {name} is missing"))
            }
            Family::StableLm => Ok(()),
        }
    }
}
