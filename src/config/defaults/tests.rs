//! Every range and every grammar of the settings.

use std::path::PathBuf;

use crate::config::keys::ApiKey;
use crate::config::{Config, ContextLimit};
use crate::models::ModelRef;

use super::*;

fn config() -> Config {
    Config::new(PathBuf::from("home"), ModelRef::parse("smollm2:135m").unwrap())
}

#[test]
fn the_defaults_are_valid() {
    config().validate().unwrap();
    assert_eq!(config().model.served_names, ["smollm2:135m"]);
    assert!(config().engine.threads >= 1);
}

#[test]
fn all_faults_are_reported_at_once_with_flag_value_and_limit() {
    let mut config = config();
    config.http.host = " ".to_owned();
    config.http.body_limit_bytes = 1;
    config.http.connections_max = 0;
    config.http.drain_timeout = Duration::from_hours(2);
    config.http.stall_after = Duration::ZERO;
    config.http.api_keys = vec![ApiKey::parse("a=k").unwrap(), ApiKey::parse("b=k").unwrap()];
    config.decision.timeout = Duration::from_mins(11);
    config.decision.timeout_max = Duration::from_mins(10);
    config.decision.questions_max = 0;
    config.decision.samples_max = 256;
    config.decision.samples = SamplesDefault::Count(999);
    config.model.served_names = vec!["a\nb".to_owned(), String::new()];
    config.model.context = ContextLimit::Tokens(7);
    config.engine.threads = 0;
    config.engine.fake.step_ms = 60_001;
    config.scheduler.chunk_tokens = 1;
    config.scheduler.step_tokens = 0;
    config.scheduler.rows_max = 5000;
    config.scheduler.reads_max = 2_000_000;
    let faults = config.validate().unwrap_err();
    let flags: Vec<&str> = faults.0.iter().map(|fault| fault.flag).collect();
    let expected = [
        "--host",
        "--body-limit",
        "--connections-max",
        "--drain-timeout",
        "--stall-after",
        "--api-key",
        "--timeout",
        "--max-questions",
        "--samples-max",
        "--samples",
        "--served-name",
        "--served-name",
        "--context",
        "--threads",
        "--fake-step-ms",
        "--chunk-tokens",
        "--step-tokens",
        "--rows-max",
        "--reads-max",
    ];
    assert_eq!(flags, expected);
    let text = faults.to_string();
    assert!(text.contains("--rows-max: 5000 is not within 1 to 4096"), "{text}");
    assert!(text.contains("--body-limit: 1 is not within 1KiB to 1GiB"), "{text}");
    assert!(text.contains("--stall-after: 0s is not within 10ms to 24h"), "{text}");
    assert!(text.contains("--timeout: 660s is not within 1ms to --timeout-max 600s"), "{text}");
    assert_eq!(text.lines().count(), expected.len());
}

#[test]
fn a_queue_holds_at_least_one_request_of_the_largest_size() {
    let mut config = config();
    config.decision.questions_max = 128;
    config.scheduler.reads_max = 127;
    let faults = config.validate().unwrap_err().to_string();
    assert_eq!(faults, "--reads-max: 127 is not within --max-questions 128 to 1000000");
}

#[test]
fn a_chunk_is_whole_pages() {
    let mut config = config();
    for (chunk, is_good) in [(0, false), (16, false), (64, true), (100, false), (8192, true)] {
        config.scheduler.chunk_tokens = chunk;
        config.scheduler.step_tokens = 8192;
        let told = config.validate().err().map(|faults| faults.to_string());
        let rule = format!("--chunk-tokens: {chunk} is not a multiple of 64 within 64 to 8192");
        assert_eq!(told, (!is_good).then_some(rule));
    }
}

#[test]
fn a_cuda_device_has_no_int8_and_no_other_engine() {
    let mut config = config();
    config.engine.device = DeviceChoice::Cuda(1);
    config.engine.kind = EngineKind::Reference;
    config.engine.precision = PrecisionChoice::Int8;
    let faults = config.validate().unwrap_err().to_string();
    assert!(
        faults.contains("--precision: int8 is not computed on cuda:1; auto and bf16"),
        "{faults}"
    );
    assert!(faults.contains("--device: cuda:1 is for --engine auto or cpu; reference"), "{faults}");
    config.engine.device = DeviceChoice::Cpu;
    config.validate().unwrap();
}

#[test]
fn a_binary_without_cuda_says_how_to_make_one_with_it() {
    let mut config = config();
    config.engine.device = DeviceChoice::Cuda(0);
    let told = config.validate().err().map(|faults| faults.to_string()).unwrap_or_default();
    assert_eq!(
        told.contains("cuda:0") && told.contains("--features cuda"),
        !cfg!(feature = "cuda")
    );
}

#[test]
fn small_grammars_are_read() {
    assert_eq!("cpu".parse(), Ok(DeviceChoice::Cpu));
    assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
    assert_eq!("cuda:7".parse(), Ok(DeviceChoice::Cuda(7)));
    for text in ["cuda:x", "cuda:", "cuda:-1", "gpu", ""] {
        let told = text.parse::<DeviceChoice>().unwrap_err();
        assert!(told.starts_with(&format!("{text:?} is no device")), "{told}");
    }
    assert_eq!("auto".parse(), Ok(KvBytes::OfFreeMemory));
    assert_eq!("0".parse(), Ok(KvBytes::Exactly(0)));
    assert_eq!("4GiB".parse(), Ok(KvBytes::Exactly(4 << 30)));
    assert_eq!("default".parse(), Ok(SamplesDefault::Profile));
    assert_eq!("3".parse(), Ok(SamplesDefault::Count(3)));
    assert!("many".parse::<SamplesDefault>().is_err());
}
