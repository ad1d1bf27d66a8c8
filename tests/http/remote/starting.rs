//! What a start finds wrong with a server, and says of it.

use std::time::Duration;

use actors::Engine as _;
use docket::engine::remote::{Expected, Protocol, RemoteEngine, RemoteError};
use hyper::header::HeaderValue;

use super::stub::{Nature, Stub};
use super::{ALL, ask_one, connect, options, runtime, truth};

/// What a start over a server of this nature says.
fn told(nature: Nature) -> String {
    let runtime = runtime();
    let stub = Stub::start(runtime.handle(), nature);
    let error = connect(&runtime, options(&[&stub])).unwrap_err();
    assert!(matches!(error, RemoteError::Wrong { .. }), "{error}");
    error.to_string()
}

#[test]
fn a_server_is_checked_and_introduces_itself() {
    let runtime = runtime();
    for protocol in ALL {
        let stub = Stub::start(runtime.handle(), Nature::of(protocol));
        let engine = connect(&runtime, options(&[&stub])).unwrap();
        let caps = engine.caps();
        assert_eq!((caps.name.as_str(), caps.context_tokens), (protocol.name(), 511));
        assert_eq!((caps.keeps_segments, caps.kv_bytes_per_token), (true, 100));
        let positions = if protocol == Protocol::LlamaServer { 1024 } else { 16_000 };
        assert_eq!(engine.kv_bytes(), Some(positions * 100), "{protocol:?}");
        stub.assert_sound();
    }
}

#[test]
fn another_tokenizer_is_a_start_error() {
    for protocol in ALL {
        let told = told(Nature { is_foreign: true, ..Nature::of(protocol) });
        assert!(told.contains("another tokenizer") && told.contains("token 3 is"), "{told}");
    }
}

#[test]
fn a_server_that_tokenises_nothing_is_asked_for_lengths_or_refused() {
    let bare = |protocol| Nature { tokenizes: false, ..Nature::of(protocol) };
    let told_of_vllm = told(bare(Protocol::Vllm));
    assert!(told_of_vllm.contains("404") && told_of_vllm.contains("/tokenize"), "{told_of_vllm}");
    let runtime = runtime();
    let stub = Stub::start(runtime.handle(), bare(Protocol::Sglang));
    connect(&runtime, options(&[&stub])).unwrap();
    let told = told(Nature { is_foreign: true, ..bare(Protocol::Sglang) });
    assert!(told.contains("2 tokens by the server"), "{told}");
}

#[test]
fn log_probabilities_after_logits_are_changed_are_a_start_error() {
    let processed = |protocol| told(Nature { is_processed: true, ..Nature::of(protocol) });
    let of_vllm = processed(Protocol::Vllm);
    assert!(of_vllm.contains("--logprobs-mode raw_logprobs"), "{of_vllm}");
    assert!(processed(Protocol::LlamaServer).contains("after logits are changed"));
}

#[test]
fn a_context_that_is_too_short_is_a_start_error() {
    let runtime = runtime();
    let stub = Stub::start(runtime.handle(), Nature::of(Protocol::Vllm));
    let expected = Expected { context_tokens: Some(512), ..truth::expected() };
    let error = RemoteEngine::connect(options(&[&stub]), expected, runtime.handle()).unwrap_err();
    assert!(error.to_string().contains("511 tokens, 512 are served"), "{error}");
}

#[test]
fn a_server_of_another_kind_is_a_start_error() {
    let runtime = runtime();
    let stub = Stub::start(runtime.handle(), Nature::of(Protocol::LlamaServer));
    let mut options = options(&[&stub]);
    options.protocol = Protocol::Vllm;
    let error = connect(&runtime, options).unwrap_err().to_string();
    assert!(error.contains("404") && error.contains("/v1/models"), "{error}");
}

#[test]
fn the_key_is_sent_and_a_wrong_one_is_a_start_error() {
    let runtime = runtime();
    let nature = Nature { key: Some("sesame"), ..Nature::of(Protocol::Vllm) };
    let stub = Stub::start(runtime.handle(), nature);
    let keyed = |key: &'static str| {
        let mut options = options(&[&stub]);
        let mut value = HeaderValue::from_static(key);
        value.set_sensitive(true);
        options.key = Some(value);
        assert!(!format!("{options:?}").contains(key), "it is never shown");
        connect(&runtime, options)
    };
    let engine = keyed("Bearer sesame").unwrap();
    assert!(ask_one(&engine, 1, 1).is_ok());
    for error in
        [keyed("Bearer other").unwrap_err(), connect(&runtime, options(&[&stub])).unwrap_err()]
    {
        assert!(error.to_string().contains("--engine-key-file"), "{error}");
    }
}

#[test]
fn a_start_waits_for_a_server_as_long_as_it_is_told_to() {
    let runtime = runtime();
    let mut stub = Stub::start(runtime.handle(), Nature::of(Protocol::Vllm));
    let address = options(&[&stub]);
    stub.kill();
    let error = connect(&runtime, address.clone()).unwrap_err();
    assert!(matches!(error, RemoteError::Away { .. }), "{error}");
    assert!(error.to_string().contains(&stub.url()), "{error}");
    let mut patient = address;
    patient.wait = Duration::from_secs(20);
    let handle = runtime.handle().clone();
    let starting = std::thread::spawn(move || {
        RemoteEngine::connect(patient, truth::expected(), &handle).map(|engine| engine.caps())
    });
    stub.listen();
    assert_eq!(starting.join().unwrap().unwrap().context_tokens, 511);
}

#[test]
fn one_server_of_two_is_enough_to_start() {
    let runtime = runtime();
    let mut stubs = [(); 2].map(|()| Stub::start(runtime.handle(), Nature::of(Protocol::Sglang)));
    let both = options(&stubs.each_ref());
    stubs[0].kill();
    let engine = connect(&runtime, both).unwrap();
    for name in 0..10 {
        assert!(ask_one(&engine, u64::from(name), name).is_ok());
    }
    stubs[0].listen();
    super::until_servers(&engine, true);
}
