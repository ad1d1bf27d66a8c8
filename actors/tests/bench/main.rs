//! Benches of the actors: what planning costs, how many reads pass in a second, what the order of the
//! queue does for those who wait.
//!
//! `cargo bench -p actors -- plan|throughput|policy [SEED]`; all of them without a word.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints, reads the real clock and ends when something breaks"
)]

mod engine;
mod plan;
mod policy;
mod throughput;
mod workload;

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_asked = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    if is_asked("plan") {
        plan::run();
    }
    if is_asked("throughput") {
        throughput::run();
    }
    if is_asked("policy") {
        let seed = words.iter().find_map(|word| word.parse().ok());
        policy::run(seed.unwrap_or(1));
    }
}
