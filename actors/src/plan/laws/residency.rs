//! Laws of scheduler and ledger together, for states that begin alike.

use super::*;
use crate::plan::path::path_of;

/// Tokens of all chunks of the steps that a world ran.
fn chunk_tokens(world: &mut World) -> u32 {
    let mut tokens = 0;
    for _ in 0..10_000 {
        if !world.to_cache.is_empty() {
            world.deliver_to_cache();
        } else if !world.to_scheduler.is_empty() {
            world.deliver_to_scheduler();
        } else if let Some(step) = &world.step {
            tokens += step.chunks.iter().map(|chunk| chunk.tokens.len()).sum::<usize>();
            world.finish_step(true);
        } else {
            return u32::try_from(tokens).unwrap();
        }
    }
    panic!("it never comes to rest");
}

/// Tokens of head and states when what they share is counted once.
fn unique_tokens(names: &[u32]) -> u32 {
    let mut pieces = BTreeMap::new();
    for segment in names.iter().flat_map(|name| path_of(&state(*name))) {
        let mut done = 0;
        while done < segment.len() {
            let (key, end) = segment.piece(done);
            pieces.insert(key, end - done);
            done = end;
        }
    }
    pieces.values().sum()
}

/// State tokens computed for one decision on each state, one after the other or all at once.
fn computed_for(names: &[u32], apart: bool) -> u32 {
    let mut world = World::new(100_000);
    let mut tokens = 0;
    for (lane, name) in [Lane::Batch, Lane::Urgent, Lane::Normal].into_iter().zip(names) {
        world.submit(*name, lane, 2);
        tokens += if apart { chunk_tokens(&mut world) } else { 0 };
    }
    tokens += chunk_tokens(&mut world);
    assert_eq!(world.answered.len(), 2 * names.len());
    tokens
}

#[test]
fn states_that_begin_alike_are_computed_once() {
    for names in [vec![4, 6, 8], vec![6, 4, 8], vec![8, 6, 4], vec![3, 7], vec![7, 3]] {
        for apart in [true, false] {
            let computed = computed_for(&names, apart);
            assert_eq!(computed, unique_tokens(&names), "{names:?}, apart: {apart}");
        }
    }
}

#[test]
fn a_state_that_comes_while_another_is_computed_takes_over_what_it_shares() {
    let mut world = World::new(100_000);
    world.submit(4, Lane::Batch, 1);
    for _ in 0..4 {
        while !world.to_cache.is_empty() || !world.to_scheduler.is_empty() {
            world.deliver_to_cache();
            world.deliver_to_scheduler();
        }
        world.finish_step(true);
    }
    // The answer to this lease will be older than the step that ends meanwhile.
    world.submit(6, Lane::Urgent, 1);
    world.deliver_to_cache();
    world.finish_step(true);
    chunk_tokens(&mut world);
    assert_eq!(
        world.scheduler.view().totals.computed_tokens,
        u64::from(unique_tokens(&[4, 6])) + suffixes()
    );
}

/// Suffix tokens of the two reads above.
fn suffixes() -> u64 {
    [Lane::Batch, Lane::Urgent].map(|lane| u64::from(1 + lane as u32)).iter().sum()
}

#[test]
fn a_reader_that_comes_back_goes_on_where_the_last_one_left() {
    let mut world = World::new(100_000);
    world.submit(4, Lane::Normal, 1);
    for _ in 0..3 {
        while !world.to_cache.is_empty() || !world.to_scheduler.is_empty() {
            world.deliver_to_cache();
            world.deliver_to_scheduler();
        }
        world.finish_step(true);
    }
    world.close(0);
    chunk_tokens(&mut world);
    let before = world.scheduler.view().totals.computed_tokens;
    assert!(before > 100, "some of it was computed");
    assert_eq!((world.cache.view().leased, world.cache.view().reserved), (0, 0));
    world.submit(4, Lane::Normal, 1);
    chunk_tokens(&mut world);
    let after = world.scheduler.view().totals.computed_tokens;
    assert_eq!(after, u64::from(unique_tokens(&[4])) + 2, "nothing was computed twice");
}

#[test]
fn a_want_that_another_state_fulfils_gives_its_lease_back() {
    let mut world = World::new(100_000);
    for name in [4, 8] {
        world.prewarm(name, Lane::Normal);
    }
    assert_eq!(chunk_tokens(&mut world), unique_tokens(&[4, 8]));
    assert_eq!((world.cache.view().leased, world.scheduler.view().wants_waiting), (0, 0));
    assert_eq!(world.cache.view().prewarms_waiting, 0);
}
