//! What goes wrong on the wire, and to whom.

use std::time::{Duration, Instant};

use actors::EngineError;
use docket::engine::remote::Protocol;

use super::stub::{Act, Nature, Stub};
use super::{
    ALL, PATIENCE, ask, ask_one, connect, options, row, rows, runtime, started, state, step,
    submit, until_servers,
};

#[test]
fn what_was_not_executed_is_sent_again_and_what_was_is_not() {
    let runtime = runtime();
    for protocol in ALL {
        let (stub, engine) = started(&runtime, Nature::of(protocol));
        for status in [503, 429, 408] {
            stub.forget();
            stub.will(&[Act::Status(status), Act::Status(status)]);
            assert!(ask_one(&engine, 1, 1).is_ok(), "{protocol:?} {status}");
            assert_eq!(stub.record().seen.len(), 3, "{protocol:?} {status}");
        }
        for act in [Act::Close, Act::Truncated, Act::Garbage, Act::Shorter, Act::Status(500)] {
            until_servers(&engine, true);
            stub.until(|record| record.in_flight == 0);
            stub.forget();
            stub.will(std::slice::from_ref(&act));
            let error = ask_one(&engine, 2, 2).unwrap_err();
            assert!(error.is_outage(), "{protocol:?} {act:?}: {error}");
            let reads =
                stub.record().seen.iter().filter(|s| s.asked.prompt == state(2, 20)).count();
            assert_eq!(reads, 1, "{protocol:?} {act:?}");
        }
        until_servers(&engine, true);
        stub.forget();
        stub.will(&[Act::Status(400)]);
        let error = ask_one(&engine, 3, 3).unwrap_err();
        assert!(matches!(error, EngineError::Forward(_)), "{protocol:?}: {error}");
        assert!(ask_one(&engine, 4, 4).is_ok(), "{protocol:?}: it goes on");
        stub.assert_sound();
    }
}

#[test]
fn an_answer_that_is_too_long_is_not_read_to_its_end() {
    let runtime = runtime();
    let (stub, engine) = started(&runtime, Nature::of(Protocol::Vllm));
    stub.will(&[Act::Oversized]);
    let error = ask_one(&engine, 1, 1).unwrap_err();
    assert!(error.is_outage() && error.to_string().contains("over 67108864 bytes"), "{error}");
    until_servers(&engine, true);
    assert!(ask_one(&engine, 2, 1).is_ok());
}

#[test]
fn a_server_that_answers_too_late_is_given_up() {
    let runtime = runtime();
    let stub = Stub::start(runtime.handle(), Nature::of(Protocol::Sglang));
    let mut options = options(&[&stub]);
    options.timeout = Duration::from_secs(1);
    let engine = connect(&runtime, options).unwrap();
    stub.forget();
    stub.will(&[Act::Hang]);
    let error = ask_one(&engine, 1, 1).unwrap_err();
    assert!(error.to_string().contains("no whole answer within 1 s"), "{error}");
    stub.until(|record| record.aborted == 1);
    assert!(ask_one(&engine, 2, 1).is_ok());
}

#[test]
fn a_busy_server_is_passed_over_for_one_that_has_room() {
    let runtime = runtime();
    let stubs = [(); 2].map(|()| Stub::start(runtime.handle(), Nature::of(Protocol::Vllm)));
    let engine = connect(&runtime, options(&stubs.each_ref())).unwrap();
    stubs.iter().for_each(Stub::forget);
    for stub in &stubs {
        stub.will(&[Act::Status(429)]);
    }
    // One of them is asked first and sends it away, then the other one does, then there is room.
    assert!(ask_one(&engine, 1, 1).is_ok());
    let counts = stubs.each_ref().map(|stub| stub.record().seen.len());
    assert_eq!(counts.iter().sum::<usize>(), 3, "{counts:?}");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn a_server_that_never_has_room_ends_the_read_in_time() {
    let runtime = runtime();
    let stub = Stub::start(runtime.handle(), Nature::of(Protocol::Vllm));
    let mut options = options(&[&stub]);
    options.retry_for = Duration::from_millis(400);
    let engine = connect(&runtime, options).unwrap();
    stub.forget();
    stub.will_always(&Act::Status(503));
    let began = Instant::now();
    assert!(ask_one(&engine, 1, 1).unwrap_err().is_outage());
    assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
    let tries = stub.record().seen.len();
    assert!((2..20).contains(&tries), "{tries}");
}

#[test]
fn a_killed_server_ends_what_runs_makes_unready_and_is_asked_again_when_it_returns() {
    let runtime = runtime();
    for protocol in ALL {
        let (mut stub, engine) = started(&runtime, Nature::of(protocol));
        stub.will(&[Act::Hang, Act::Hang]);
        let items = (0..2).map(|name| row(name, Vec::new(), &state(name, 20), &[5])).collect();
        let coming = submit(&engine, step(1, Vec::new(), items));
        stub.until(|record| record.in_flight == 2);
        stub.kill();
        let ended = coming.recv_timeout(PATIENCE).unwrap();
        assert!(ended.unwrap_err().is_outage(), "{protocol:?}: nothing came of it");
        until_servers(&engine, false);
        let reason = engine.status().outage().unwrap();
        assert!(reason.contains("none of 1 servers"), "{reason}");
        // A short outage is waited out by whoever asks meanwhile.
        let coming = submit(&engine, step(2, Vec::new(), rows(5, &[], 1, &[5])));
        stub.listen();
        assert!(coming.recv_timeout(PATIENCE).unwrap().unwrap().rows[0].is_ok(), "{protocol:?}");
        until_servers(&engine, true);
        assert_eq!(engine.status().outage(), None);
        stub.assert_sound();
    }
}

#[test]
fn a_long_outage_ends_reads_at_once() {
    let runtime = runtime();
    let mut stub = Stub::start(runtime.handle(), Nature::of(Protocol::Vllm));
    let mut options = options(&[&stub]);
    options.retry_for = Duration::from_millis(50);
    let engine = connect(&runtime, options).unwrap();
    stub.kill();
    let first = ask_one(&engine, 1, 1).unwrap_err();
    assert!(first.is_outage(), "{first}");
    let began = Instant::now();
    for id in 2..30 {
        assert!(ask_one(&engine, id, 1).unwrap_err().is_outage());
    }
    assert!(began.elapsed() < PATIENCE / 2);
    stub.listen();
    until_servers(&engine, true);
    assert!(ask_one(&engine, 40, 1).is_ok());
}

#[test]
fn a_server_that_comes_back_as_another_model_is_not_asked() {
    let runtime = runtime();
    let (mut stub, engine) = started(&runtime, Nature::of(Protocol::LlamaServer));
    stub.kill();
    assert!(ask_one(&engine, 1, 1).is_err());
    stub.change(|nature| nature.is_foreign = true);
    stub.listen();
    let told = |engine: &docket::engine::remote::RemoteEngine| {
        engine.status().servers()[0].down.clone().unwrap_or_default()
    };
    let began = Instant::now();
    while !told(&engine).contains("another tokenizer") {
        assert!(began.elapsed() < PATIENCE, "{}", told(&engine));
        std::thread::yield_now();
    }
    stub.change(|nature| nature.is_foreign = false);
    until_servers(&engine, true);
    assert!(ask_one(&engine, 2, 1).is_ok());
}

#[test]
fn a_prompt_that_is_too_long_fails_alone_and_is_not_sent() {
    let runtime = runtime();
    let (stub, engine) = started(&runtime, Nature::of(Protocol::Sglang));
    let items =
        vec![row(1, Vec::new(), &state(1, 600), &[5]), row(2, Vec::new(), &state(2, 20), &[5])];
    let outcome = ask(&engine, step(1, Vec::new(), items)).unwrap();
    let error = outcome.rows[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("600 tokens, at most 511 fit"), "{error}");
    assert!(outcome.rows[1].is_ok());
    assert_eq!(stub.record().seen.len(), 1);
}
