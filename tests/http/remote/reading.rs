//! Readings: the server's own numbers, its cache warmed and used, its window kept.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actors::{Engine as _, PathPart, Segment};
use docket::engine::remote::Protocol;

use super::stub::{Act, Nature, Record, Stub};
use super::{
    ALL, ask, ask_one, assert_true, chunk, connect, held, options, row, rows, runtime, started,
    state, step, submit,
};

#[test]
fn readings_are_the_servers_own_numbers() {
    let runtime = runtime();
    for protocol in ALL {
        let (stub, engine) = started(&runtime, Nature::of(protocol));
        let (one, other) = (state(1, 100), state(2, 30));
        let chunks = vec![chunk(1, &one), chunk(2, &other)];
        let mut items = rows(1, &[PathPart::Chunk(0)], 3, &[5, 6, 7]);
        items.push(row(2, vec![PathPart::Chunk(1)], &[9], &[1, 2]));
        let outcome = ask(&engine, step(1, chunks, items)).unwrap();
        assert_eq!(outcome.chunks.iter().map(Segment::tokens).collect::<Vec<_>>(), [100, 30]);
        for (number, row) in outcome.rows.iter().take(3).enumerate() {
            let number = u32::try_from(number).unwrap();
            let prompt = [&one[..], &[300 + number, 7]].concat();
            assert_true(row.as_ref().unwrap(), &prompt, &[5, 6, 7]);
        }
        let prompt = [&other[..], &[9]].concat();
        assert_true(outcome.rows[3].as_ref().unwrap(), &prompt, &[1, 2]);
        stub.assert_sound();
    }
}

/// The requests that only warm a cache: of a llama-server those that list nothing.
fn warming(record: &Record, protocol: Protocol) -> Vec<usize> {
    let is_warming = |number: &usize| {
        let asked = &record.seen[*number].asked;
        asked.labels.is_empty() && (protocol != Protocol::LlamaServer || asked.top == 0)
    };
    (0..record.seen.len()).filter(is_warming).collect()
}

#[test]
fn a_state_with_several_reads_is_sent_ahead_once_and_found_by_them() {
    let runtime = runtime();
    for protocol in ALL {
        let pace = Duration::from_millis(20);
        let (stub, engine) = started(&runtime, Nature { pace, ..Nature::of(protocol) });
        let tokens = state(1, 100);
        let items = rows(1, &[PathPart::Chunk(0)], 4, &[5, 6]);
        let outcome = ask(&engine, step(1, vec![chunk(1, &tokens)], items)).unwrap();
        {
            let record = stub.record();
            let [warm] = warming(&record, protocol)[..] else { panic!("{record:?}") };
            assert_eq!(record.seen[warm].asked.prompt, tokens, "{protocol:?}");
            let end = record.seen[warm].ended.unwrap();
            let reads = record.seen.iter().filter(|seen| seen.asked.prompt.len() > tokens.len());
            assert!(reads.clone().count() >= 4 && reads.clone().all(|seen| seen.began > end));
        }
        // The next step finds the state held, and sends nothing ahead.
        stub.forget();
        let path: Vec<_> = outcome.chunks.into_iter().map(PathPart::Segment).collect();
        let outcome = ask(&engine, step(2, Vec::new(), rows(1, &path, 4, &[5, 6]))).unwrap();
        assert!(outcome.rows.iter().all(Result::is_ok));
        assert!(warming(&stub.record(), protocol).is_empty(), "{protocol:?}");
        stub.assert_sound();
    }
}

#[test]
fn a_single_read_of_a_new_state_is_sent_at_once() {
    let runtime = runtime();
    let (stub, engine) = started(&runtime, Nature::of(Protocol::Vllm));
    let items = rows(1, &[PathPart::Chunk(0)], 1, &[5, 6]);
    ask(&engine, step(1, vec![chunk(1, &state(1, 100))], items)).unwrap();
    assert_eq!(stub.record().seen.len(), 1);
    assert_eq!(stub.record().seen[0].asked.prompt.len(), 102);
    // A chunk by itself is a prewarm.
    held(&engine, 2, 3, &state(3, 64));
    assert_eq!(stub.record().seen.len(), 2);
    assert_eq!(warming(&stub.record(), Protocol::Vllm), [1]);
}

#[test]
fn salts_go_with_every_request_of_a_state_and_slots_with_those_of_a_llama_server() {
    let runtime = runtime();
    for protocol in ALL {
        let (stub, engine) = started(&runtime, Nature::of(protocol));
        let items = rows(1, &[PathPart::Chunk(0)], 3, &[5, 6]);
        ask(&engine, step(1, vec![chunk(1, &state(1, 50))], items)).unwrap();
        let record = stub.record();
        let salts: BTreeSet<&str> =
            record.seen.iter().map(|seen| seen.asked.salt.as_str()).collect();
        let slots: BTreeSet<_> = record.seen.iter().map(|seen| seen.asked.slot).collect();
        assert_eq!((salts.len(), slots.len()), (1, 1), "{protocol:?}");
        let salt = salts.first().unwrap();
        assert_eq!(salt.len(), if protocol == Protocol::LlamaServer { 0 } else { 64 });
        assert_eq!(slots.first().unwrap().is_some(), protocol == Protocol::LlamaServer);
    }
}

#[test]
fn the_window_is_kept() {
    let runtime = runtime();
    for protocol in [Protocol::Vllm, Protocol::Sglang] {
        let pace = Duration::from_millis(10);
        let stub = Stub::start(runtime.handle(), Nature { pace, ..Nature::of(protocol) });
        let mut options = options(&[&stub]);
        options.window = 3;
        let engine = connect(&runtime, options).unwrap();
        assert_eq!(engine.caps().rows_max, 3);
        stub.forget();
        let items = (0..12).flat_map(|name| rows(name, &[], 1, &[5, 6])).collect();
        let outcome = ask(&engine, step(1, Vec::new(), items)).unwrap();
        assert!(outcome.rows.iter().all(Result::is_ok));
        assert_eq!(stub.record().in_flight_max, 3, "{protocol:?}");
    }
}

#[test]
fn reads_of_a_state_take_turns_on_its_slot_and_states_have_slots_of_their_own() {
    let runtime = runtime();
    let pace = Duration::from_millis(10);
    let (stub, engine) = started(&runtime, Nature { pace, ..Nature::of(Protocol::LlamaServer) });
    let tokens = [state(1, 40), state(2, 40)];
    let chunks = vec![chunk(1, &tokens[0]), chunk(2, &tokens[1])];
    let items = [rows(1, &[PathPart::Chunk(0)], 4, &[5]), rows(2, &[PathPart::Chunk(1)], 4, &[5])];
    ask(&engine, step(1, chunks, items.concat())).unwrap();
    let record = stub.record();
    assert_eq!(record.in_flight_max, 2, "one on each slot");
    for slot in 0..2 {
        let of_slot = record.seen.iter().filter(|seen| seen.asked.slot == Some(slot));
        let mut spans: Vec<_> = of_slot.map(|seen| (seen.began, seen.ended.unwrap())).collect();
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 < pair[1].0), "{spans:?}");
        assert!(spans.len() >= 5, "the warming and four reads: {spans:?}");
    }
}

#[test]
fn more_labels_than_vllm_takes_are_asked_for_in_several_requests() {
    let runtime = runtime();
    let (stub, engine) = started(&runtime, Nature::of(Protocol::Vllm));
    let labels: Vec<u32> = (0..200).collect();
    let prompt = state(1, 30);
    let items = vec![row(1, Vec::new(), &prompt, &labels)];
    let outcome = ask(&engine, step(1, Vec::new(), items)).unwrap();
    assert_true(outcome.rows[0].as_ref().unwrap(), &prompt, &labels);
    let counts: Vec<_> = stub.record().seen.iter().map(|seen| seen.asked.labels.len()).collect();
    assert_eq!(counts, [128, 72]);
    stub.assert_sound();
}

#[test]
fn labels_that_a_llama_server_does_not_list_are_asked_for_and_never_guessed() {
    let runtime = runtime();
    let (stub, engine) = started(&runtime, Nature::of(Protocol::LlamaServer));
    let prompt = state(1, 30);
    let truth = super::logprobs(&prompt);
    let mut order: Vec<u32> = (0..super::truth::VOCAB).collect();
    order.sort_by(|one, other| truth[*other as usize].total_cmp(&truth[*one as usize]));
    // The most probable one, and few or many that are far from it.
    for (far, requests) in [(3, 4), (8, 9), (20, 2)] {
        stub.forget();
        let labels = [&order[..1], &order[350..350 + far]].concat();
        let items = vec![row(1, Vec::new(), &prompt, &labels)];
        let outcome = ask(&engine, step(requests, Vec::new(), items)).unwrap();
        assert_true(outcome.rows[0].as_ref().unwrap(), &prompt, &labels);
        assert_eq!(stub.record().seen.len() as u64, requests, "{far}");
    }
    let tops: Vec<_> = stub.record().seen.iter().map(|seen| seen.asked.top).collect();
    assert_eq!(tops, [128, 400]);
    stub.assert_sound();
}

/// Which servers were asked about each state.
fn homes(stubs: &[Stub; 3]) -> BTreeMap<Vec<u32>, BTreeSet<usize>> {
    let mut homes: BTreeMap<_, BTreeSet<usize>> = BTreeMap::new();
    for (number, stub) in stubs.iter().enumerate() {
        for seen in &stub.record().seen {
            homes.entry(seen.asked.prompt.clone()).or_default().insert(number);
        }
    }
    homes
}

#[test]
fn states_keep_to_a_server_each_and_go_elsewhere_only_while_it_is_away() {
    let runtime = runtime();
    let nature = || Nature::of(Protocol::Sglang);
    let mut stubs = [(); 3].map(|()| Stub::start(runtime.handle(), nature()));
    let engine = connect(&runtime, options(&stubs.each_ref())).unwrap();
    stubs.iter().for_each(Stub::forget);
    for name in (0..60).chain(0..60) {
        assert!(ask_one(&engine, 1, name).is_ok());
    }
    let before = homes(&stubs);
    assert!(before.len() == 60 && before.values().all(|home| home.len() == 1), "{before:?}");
    let used = |number| before.values().filter(|home| home.contains(&number)).count();
    assert!((0..3).all(|number| used(number) >= 8), "{before:?}");
    stubs[1].kill();
    stubs.iter().for_each(Stub::forget);
    for name in 0..60 {
        assert!(ask_one(&engine, 2, name).is_ok(), "what was not executed goes elsewhere");
    }
    let meanwhile = homes(&stubs);
    let moved = before.iter().filter(|(state, home)| meanwhile[*state] != **home).count();
    assert_eq!(moved, used(1), "no others move");
    stubs[1].listen();
    super::until_servers(&engine, true);
    stubs.iter().for_each(Stub::forget);
    for name in 0..60 {
        assert!(ask_one(&engine, 3, name).is_ok());
    }
    assert_eq!(homes(&stubs), before, "each is home again");
}

#[test]
fn a_read_that_nobody_waits_for_is_given_up_and_its_neighbours_are_not() {
    let runtime = runtime();
    for protocol in ALL {
        let (stub, engine) = started(&runtime, Nature::of(protocol));
        stub.will(&[Act::Hang]);
        // States of their own: one after the other would wait for the slot of a llama-server.
        let items =
            vec![row(1, Vec::new(), &state(1, 20), &[5]), row(2, Vec::new(), &state(2, 20), &[5])];
        let coming = submit(&engine, step(1, Vec::new(), items));
        stub.until(|record| record.seen.len() == 2);
        let is_first = stub.record().seen[0].asked.prompt == state(1, 20);
        let (hangs, answers) = if is_first { (0, 1) } else { (1, 0) };
        engine.abandon(7, hangs); // of a step that does not run
        engine.abandon(1, 9); // of no row
        engine.abandon(1, hangs);
        let outcome = coming.recv_timeout(super::PATIENCE).unwrap().unwrap();
        assert!(outcome.rows[hangs].as_ref().unwrap_err().is_outage(), "{protocol:?}");
        assert!(outcome.rows[answers].is_ok(), "{protocol:?}");
        stub.until(|record| record.aborted == 1);
        assert!(ask_one(&engine, 2, 3).is_ok());
    }
}

#[test]
fn an_engine_that_is_dropped_gives_up_what_runs() {
    let runtime = runtime();
    let (stub, engine) = started(&runtime, Nature::of(Protocol::Vllm));
    stub.will(&[Act::Hang]);
    let coming = submit(&engine, step(1, Vec::new(), rows(1, &[], 1, &[5])));
    stub.until(|record| record.in_flight == 1);
    drop(engine);
    stub.until(|record| record.aborted == 1);
    assert!(coming.recv_timeout(super::PATIENCE).unwrap().is_err());
}
