//! Goal: no interleaving of arrivals, cancels, expiries and engine faults breaks a promise of the
//! actors. Method: the four real actors over a fake engine in virtual time, everything drawn from
//! one seed; the same seed gives the same run.
//!
//! `SEED=17 cargo test -p actors --test simulation` replays one seed, `SEEDS=1000` runs another
//! number than the default of 1,000.

#[cfg(test)]
#[path = "../support/fake.rs"]
mod fake;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod workload;
#[cfg(test)]
mod world;

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use crate::world::run;

    /// Seeds that once found a fault; they stay. 5 and 41: a deferred state in front of the queue kept
    /// the search from those that hold the memory. 279: rows of a step that failed when a drain was over
    /// waited on.
    const KEPT: &[u64] = &[5, 41, 279];
    /// Fresh seeds of an ordinary run.
    const SEEDS: u64 = 1_000;

    #[expect(clippy::disallowed_methods, reason = "a seed is replayed from the command line")]
    fn text(name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn number(name: &str) -> Option<u64> {
        text(name)?.parse().ok()
    }

    #[test]
    fn no_seed_breaks_a_promise() {
        let seeds: Vec<u64> = match number("SEED") {
            Some(seed) => vec![seed],
            None => (0..number("SEEDS").unwrap_or(SEEDS)).chain(KEPT.iter().copied()).collect(),
        };
        for seed in seeds {
            println!("SEED={seed}");
            run(seed);
        }
    }

    #[test]
    fn a_seed_gives_one_run() {
        for seed in KEPT.iter().copied().chain(40..50) {
            println!("SEED={seed}");
            assert_eq!(run(seed), run(seed));
        }
    }

    /// The names of this test and of the variable that tells a process where to write its log.
    const TWO_PROCESSES: (&str, &str) = ("tests::two_processes_give_one_plan_log", "PLAN_LOG");

    /// Each process seeds its hash maps anew: whatever depended on their order would differ.
    #[test]
    fn two_processes_give_one_plan_log() {
        let (own_name, variable) = TWO_PROCESSES;
        if let Some(path) = text(variable) {
            let records: Vec<_> = (60..90).map(run).collect();
            return std::fs::write(path, format!("{records:#?}")).unwrap();
        }
        let [one, other] = ["one", "other"].map(|name| {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("plan-log-{name}"));
            let own_file = std::env::current_exe().unwrap();
            let mut child = Command::new(own_file);
            child.args(["--exact", own_name]).env(variable, &path);
            let output = child.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            std::fs::read_to_string(path).unwrap()
        });
        assert!(one.contains("StepLogEntry") && one.len() > 100_000, "a log of {}", one.len());
        assert!(one == other, "one seed gave two logs");
    }
}
