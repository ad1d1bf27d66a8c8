//! What fuzzing found worth keeping (tests/fuzz/README.md): every input, through the target that it was
//! found for.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::targets::ALL;

/// Inputs that a corpus has at least.
const INPUTS_MIN: usize = 20;

#[test]
fn every_input_of_the_corpora_is_taken_or_refused_as_it_should_be() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    for (name, target) in ALL {
        let entries = fs::read_dir(corpora.join(name)).unwrap();
        let mut count = 0;
        for path in entries.map(|entry| entry.unwrap().path()) {
            let input = fs::read(&path).unwrap();
            let ended = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(ended.is_ok(), "{}: see above", path.display());
            count += 1;
        }
        assert!(count >= INPUTS_MIN, "{name} has {count} inputs");
    }
}
