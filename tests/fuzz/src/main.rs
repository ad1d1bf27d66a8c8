//! libFuzzer on one target, the one that `DOCKET_FUZZ_TARGET` names.
#![no_main]

use std::sync::LazyLock;

use docket_fuzz::targets::ALL;

/// What is tried.
static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var_os("DOCKET_FUZZ_TARGET").unwrap_or_default();
    let found = ALL.iter().find(|(known, _)| name == *known);
    let names: Vec<&str> = ALL.iter().map(|(known, _)| *known).collect();
    found.unwrap_or_else(|| panic!("DOCKET_FUZZ_TARGET must be one of {names:?}, not {name:?}")).1
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (*TARGET)(input));
