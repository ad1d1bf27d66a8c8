//! From typed flags to a configuration, and the defaults that the help promises.

use clap::{CommandFactory, Parser};

use super::*;
use crate::cli::{Cli, Command};
use crate::config::{EngineConfig, HttpConfig, SchedulerConfig};
use crate::dialect::problem::FullStatus;

fn serve(flags: &[&str]) -> Result<Config, Faults> {
    let typed = Cli::parse_from(["docket", "serve"].iter().chain(flags));
    let Command::Serve(arguments) = typed.command else { panic!("not serve") };
    arguments.config(PathBuf::from("home"))
}

#[test]
fn nothing_typed_means_the_defaults() {
    let config = serve(&[]).unwrap();
    let model = ModelRef::parse(DEFAULT_MODEL).unwrap();
    assert_eq!(config, Config::new(PathBuf::from("home"), model));
}

#[test]
fn every_group_of_flags_reaches_its_config() {
    let config = serve(&[
        "smollm2:135m",
        "--served-name",
        "a",
        "--served-name",
        "b",
        "--context",
        "2048",
        "--offline",
        "--host",
        "::1",
        "--port",
        "0",
        "--api-key",
        "acme=k1",
        "--api-key",
        "k2",
        "--body-limit",
        "1MiB",
        "--queue-full-status",
        "503",
        "--timeout",
        "5s",
        "--max-questions",
        "8",
        "--samples",
        "2",
        "--layout",
        "bare",
        "--engine",
        "fake",
        "--fake-fault",
        "nan@3,hang@9=2s",
        "--device",
        "cpu",
        "--threads",
        "1",
        "--readout",
        "rows",
        "--kv-bytes",
        "512MiB",
        "--register-boundary",
        "off",
    ])
    .unwrap();
    assert_eq!(config.model.model.to_string(), "smollm2:135m");
    assert_eq!(config.model.served_names, ["a", "b"]);
    assert_eq!(config.model.context, ContextLimit::Tokens(2048));
    assert!(config.model.offline);
    assert_eq!((config.http.host.as_str(), config.http.port), ("::1", 0));
    assert_eq!(config.http.api_keys[0].tenant, "acme");
    assert_eq!(config.http.api_keys[1].secret.reveal(), "k2");
    assert_eq!(config.http.body_limit_bytes, 1 << 20);
    assert_eq!(config.http.queue_full_status, FullStatus::ServiceUnavailable);
    assert_eq!(config.decision.timeout, Duration::from_secs(5));
    assert_eq!(config.decision.samples, SamplesDefault::Count(2));
    assert_eq!(config.decision.layout, LayoutChoice::Named("bare".to_owned()));
    assert_eq!(config.engine.fake.faults, "nan@3,hang@9=2s".parse().unwrap());
    assert_eq!(config.engine.readout, Readout::Rows);
    assert_eq!(config.scheduler.kv_bytes, KvBytes::Exactly(512 << 20));
    assert_eq!(config.scheduler.register_boundary, BoundaryRegistration::Off);
}

#[test]
fn faults_of_the_typing_and_of_the_values_come_together() {
    let flags = [
        "one.gguf",
        "--model",
        "two.gguf",
        "--api-key",
        "a=b c",
        "--rows-max",
        "0",
        "--fake-step-ms",
        "1",
        "--timeout",
        "0",
        "--tls-key",
        "key.pem",
    ];
    let faults = serve(&flags).unwrap_err();
    let named: Vec<&str> = faults.0.iter().map(|fault| fault.flag).collect();
    assert_eq!(
        named,
        ["--model", "--fake-step-ms", "--tls-key", "--api-key", "--timeout", "--rows-max"]
    );
    assert!(!faults.to_string().contains("b c"), "a key is shown");
}

#[test]
fn a_key_that_came_out_empty_is_a_fault_of_its_flag() {
    for text in ["acme=", "acme==", "=s3cret", "=", ""] {
        let faults = serve(&["--api-key", text, "--api-key", "good"]).unwrap_err();
        assert_eq!(faults.0.len(), 1, "{text}");
        let message = faults.to_string();
        assert!(message.starts_with("--api-key: ") && !message.contains("s3cret"), "{message}");
    }
}

#[test]
fn one_address_gets_half_of_the_connections_unless_it_is_said_otherwise() {
    let per_address = |flags: &[&str]| {
        let http = serve(flags).unwrap().http;
        http.wire.per_address(http.connections_max)
    };
    assert_eq!(per_address(&[]), 512);
    assert_eq!(per_address(&["--connections-max", "1"]), 1);
    assert_eq!(per_address(&["--connections-per-address", "0"]), 0);
    let faults = serve(&["--connections-per-address", "65537", "--http2-streams", "0"]);
    assert_eq!(faults.unwrap_err().0.len(), 2);
}

#[test]
fn a_typed_text_is_not_split_at_commas() {
    let config = serve(&["--api-key", "a=k1,b=k2", "--served-name", "one, two"]).unwrap();
    assert_eq!(config.http.api_keys.len(), 1);
    assert_eq!(config.http.api_keys[0].secret.reveal(), "k1,b=k2");
    assert_eq!(config.model.served_names, ["one, two"]);
}

#[test]
fn a_device_that_is_none_is_named_with_what_is_one() {
    let typed = Cli::try_parse_from(["docket", "serve", "--device", "cuda:x"]);
    let message = typed.unwrap_err().to_string();
    assert!(message.contains("\"cuda:x\" is no device; write cpu, cuda or cuda:N"), "{message}");
}

#[test]
fn an_unknown_model_is_a_fault_beside_the_others() {
    let faults = serve(&["gpt-9", "--threads", "0"]).unwrap_err().to_string();
    assert!(faults.contains("--model: gpt-9") && faults.contains("--threads"), "{faults}");
}

#[test]
fn the_help_promises_the_defaults_that_hold() {
    let mut command = Cli::command();
    let serve = command.find_subcommand_mut("serve").unwrap();
    let help = |flag: &str| {
        let found = serve.get_arguments().find(|argument| argument.get_long() == Some(flag));
        found.unwrap().get_help().unwrap().to_string()
    };
    let (http, scheduler) = (HttpConfig::default(), SchedulerConfig::default());
    let decision = crate::config::DecisionConfig::default();
    let promised = [
        ("host", http.host),
        ("port", http.port.to_string()),
        ("body-limit", format!("{}MiB", http.body_limit_bytes >> 20)),
        ("connections-max", http.connections_max.to_string()),
        ("http2-streams", http.wire.http2_streams_max.to_string()),
        ("drain-timeout", format!("{:?}", http.drain_timeout)),
        ("stall-after", format!("{:?}", http.stall_after)),
        (
            "image-fetch-timeout",
            format!("{:?}", crate::config::ImagesConfig::default().fetch_timeout),
        ),
        ("trace-sample", crate::config::TracesConfig::default().sample.to_string()),
        ("timeout", format!("{:?}", decision.timeout)),
        ("device", EngineConfig::default().device.to_string()),
        ("timeout-max", format!("{:?}", decision.timeout_max)),
        ("packed-max", format!("{}GiB", EngineConfig::default().packed_bytes_max >> 30)),
        ("max-questions", decision.questions_max.to_string()),
        ("samples-max", decision.samples_max.to_string()),
        ("chunk-tokens", scheduler.chunk_tokens.to_string()),
        ("step-tokens", scheduler.step_tokens.to_string()),
        ("rows-max", scheduler.rows_max.to_string()),
        ("reads-max", scheduler.reads_max.to_string()),
        ("tenant-reads-max", scheduler.tenant_reads_max.to_string()),
        ("tenant-rate", scheduler.tenant_rate.to_string()),
        ("tenant-burst", scheduler.tenant_burst.to_string()),
        ("wait-urgent", format!("{:?}", scheduler.wait_urgent)),
        ("wait-normal", format!("{:?}", scheduler.wait_normal)),
        ("wait-batch", format!("{:?}", scheduler.wait_batch)),
        ("step-target", format!("{:?}", scheduler.step_target)),
        ("raise-after", format!("{:?}", scheduler.raise_after)),
        ("age-max", format!("{:?}", scheduler.age_max)),
        ("fake-step-ms", EngineConfig::default().fake.step_ms.to_string()),
        ("fake-token-us", EngineConfig::default().fake.token_us.to_string()),
    ];
    for (flag, default) in promised {
        assert!(help(flag).contains(&format!("[default: {default}]")), "--{flag}: {}", help(flag));
    }
}
