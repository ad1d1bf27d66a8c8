//! Written model files come back: configuration, names, forms and values.

use candle_core::quantized::GgmlDType;
use docket::files::{Architecture, HostTensor, RopeScaling, open};
use safetensors::Dtype;
use tempfile::TempDir;

use super::writers::gguf::{KINDS, dequantised, write};
use super::writers::wide::WideModel;
use super::writers::{folder, wide};

const ARCHITECTURES: [Architecture; 4] =
    [Architecture::Llama, Architecture::Qwen2, Architecture::Qwen3, Architecture::Gemma3];

#[test]
fn every_architecture_and_type_of_gguf_comes_back_as_the_dequantised_tensors() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    for architecture in ARCHITECTURES {
        let model = wide::wide(architecture);
        for kind in KINDS {
            write(&path, &model.config, &model.tensors, kind);
            let files = open(&path).unwrap();
            assert_eq!(files.config, model.config);
            for (name, tensor) in &model.tensors {
                let found = files.tensors.load(name).unwrap();
                let is_same = comes_back(&model, tensor, &found, kind);
                assert!(is_same, "{architecture:?} {kind:?} {name}");
            }
        }
    }
}

/// Whether a tensor that was stored as `kind` is what it should be.
fn comes_back(model: &WideModel, tensor: &HostTensor, found: &HostTensor, kind: GgmlDType) -> bool {
    let is_vector = tensor.shape.len() == 1;
    let expected = if is_vector { tensor.clone() } else { dequantised(tensor, kind) };
    // Adding one and taking it away again costs a bit of a norm weight.
    let slack = if is_vector && model.config.norm_plus_one { 2e-7 } else { 0.0 };
    let mut pairs = found.values.iter().zip(&expected.values);
    found.shape == expected.shape
        && found.values.len() == expected.values.len()
        && pairs.all(|(found, expected)| (found - expected).abs() <= slack)
}

#[test]
fn the_interleaved_rows_of_llama_come_back_exactly() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let model = wide::wide(Architecture::Llama);
    write(&path, &model.config, &model.tensors, GgmlDType::F32);
    let files = open(&path).unwrap();
    for part in ["q_proj", "k_proj", "v_proj"] {
        let name = format!("model.layers.1.self_attn.{part}.weight");
        let whole = files.tensors.load(&name).unwrap();
        assert_eq!(&whole, &model.tensors[&name]);
        let mut some = vec![7.0];
        files.tensors.read_rows(&name, 3..70, &mut some).unwrap();
        assert_eq!((some[0], &some[1..]), (7.0, &whole.rows(3..70).unwrap().values[..]));
        assert!(files.tensors.read_rows(&name, 3..7000, &mut some).is_err());
    }
}

#[test]
fn rope_factors_of_a_gguf_file_are_per_frequency() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let mut model = wide::wide(Architecture::Llama);
    let factors = (0..32).map(|pair| 1.0 + pair as f32 / 4.0).collect();
    model.config.rope.scaling = RopeScaling::PerFrequency(factors);
    write(&path, &model.config, &model.tensors, GgmlDType::F16);
    assert_eq!(open(&path).unwrap().config, model.config);
}

#[test]
fn folders_come_back_whole_or_in_shards_in_each_float_type() {
    for architecture in ARCHITECTURES {
        let model = wide::wide(architecture);
        for (dtype, kind, shards) in [
            (Dtype::F32, GgmlDType::F32, 1),
            (Dtype::F16, GgmlDType::F16, 3),
            (Dtype::BF16, GgmlDType::BF16, 2),
        ] {
            let home = TempDir::new().unwrap();
            folder::write(home.path(), &model.config_json, &model.tensors, dtype, shards);
            let files = open(home.path()).unwrap();
            assert_eq!(files.config, model.config);
            for (name, tensor) in &model.tensors {
                assert_eq!(files.tensors.load(name).unwrap(), dequantised(tensor, kind), "{name}");
            }
            assert_eq!(files.prompt.eos.as_deref(), Some("<|im_end|>"));
            assert_eq!(files.prompt.chat_template.as_deref(), Some("{{ messages }}"));
            assert!(files.prompt.add_bos);
        }
    }
}

#[test]
fn a_fingerprint_depends_on_the_weights_and_not_on_the_place() {
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut model = wide::wide(Architecture::Qwen2);
    let print = |home: &TempDir, model: &WideModel, kind: GgmlDType| {
        let path = home.path().join("model.gguf");
        write(&path, &model.config, &model.tensors, kind);
        open(&path).unwrap().fingerprint
    };
    let first = print(&here, &model, GgmlDType::F16);
    assert_eq!(first, print(&there, &model, GgmlDType::F16));
    assert_ne!(first, print(&here, &model, GgmlDType::BF16));
    model.config.rope.theta = 20_000.0;
    assert_ne!(first, print(&here, &model, GgmlDType::F16));
}
