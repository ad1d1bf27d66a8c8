//! Variables that begin as docket's do and set nothing: a limit that is misspelt is no limit.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::CommandFactory as _;

use super::file::nearest;
use crate::cli::Cli;
use crate::tenants::{Fault, shown};

/// What docket's variables begin with.
const PREFIX: &str = "DOCKET_";

/// Most unknown variables that are named; the last line says how many more there are.
const NAMED_MAX: usize = 16;

/// Variables of builds and of fuzzing, which a server may find in its environment: cargo gives some of
/// them to what it runs.
const OF_BUILDS: [&str; 6] = [
    "DOCKET_BUILD_COMMIT",
    "DOCKET_COMMIT",
    "DOCKET_FEATURES",
    "DOCKET_VERSION",
    "DOCKET_FUZZ_TARGET",
    "DOCKET_FUZZ_CASES",
];

/// What the variables of tests begin with.
const OF_TESTS: &str = "DOCKET_TEST_";

/// What Kubernetes adds to the name of a service in capitals. It sets this and others for every service
/// of a namespace, so one called `docket` gives them names like ours.
const SERVICE_HOST: &str = "_SERVICE_HOST";

/// A fault for each of these names that begins as docket's do and is none of them.
pub(super) fn unknown(names: impl Iterator<Item = OsString>) -> Vec<Fault> {
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let ours: BTreeSet<String> = names.filter(|name| name.starts_with(PREFIX)).collect();
    let services: Vec<&str> =
        ours.iter().filter_map(|name| name.strip_suffix(SERVICE_HOST)).collect();
    let known = known();
    let is_known = |name: &str| {
        known.contains(name)
            || OF_BUILDS.contains(&name)
            || name.starts_with(OF_TESTS)
            || services.iter().any(|service| is_of_service(name, service))
    };
    let unknown: Vec<&String> = ours.iter().filter(|name| !is_known(name)).collect();
    let mut faults: Vec<Fault> =
        unknown.iter().take(NAMED_MAX).map(|name| fault(name, &known)).collect();
    let more = unknown.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        let message = format!("{more} more variables that begin with {PREFIX} and set nothing");
        faults.push(Fault::new("and", message));
    }
    faults
}

/// The variables of all flags of all commands.
fn known() -> BTreeSet<String> {
    let command = Cli::command();
    let mut commands = vec![&command];
    let mut known = BTreeSet::new();
    while let Some(command) = commands.pop() {
        let variables = command.get_arguments().filter_map(clap::Arg::get_env);
        known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
        commands.extend(command.get_subcommands());
    }
    known
}

fn is_of_service(name: &str, service: &str) -> bool {
    let of_service =
        |rest: &str| rest == "_PORT" || rest.starts_with("_PORT_") || rest.starts_with("_SERVICE_");
    name.strip_prefix(service).is_some_and(of_service)
}

fn fault(name: &str, known: &BTreeSet<String>) -> Fault {
    // The prefix would make all names alike.
    let ends = known.iter().filter_map(|known| known.strip_prefix(PREFIX));
    let near = name.strip_prefix(PREFIX).and_then(|end| nearest(end, ends));
    let near = near.map_or_else(String::new, |near| format!("; {PREFIX}{near} is one"));
    let message = format!("docket has no such variable, and it sets nothing{near}");
    Fault::new(shown(name), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(names: &[&str]) -> Vec<String> {
        let faults = unknown(names.iter().map(OsString::from));
        faults.iter().map(Fault::to_string).collect()
    }

    #[test]
    fn a_misspelt_variable_is_told_with_the_nearest_known_one() {
        let told = told(&["DOCKET_TENANT_READ_MAX", "PATH", "DOCKET_ZEBRA", "docket_port"]);
        assert_eq!(
            told,
            [
                "DOCKET_TENANT_READ_MAX: docket has no such variable, and it sets nothing; \
                 DOCKET_TENANT_READS_MAX is one",
                "DOCKET_ZEBRA: docket has no such variable, and it sets nothing",
            ]
        );
    }

    #[test]
    fn what_is_used_is_known() {
        let used = [
            "DOCKET_HOME",
            "DOCKET_CONFIG",
            "DOCKET_KV_BYTES",
            "DOCKET_LOG_LEVEL",
            "DOCKET_ASK_TIMEOUT",
            "DOCKET_DAYS",
            "DOCKET_JSON",
            "DOCKET_BUILD_COMMIT",
            "DOCKET_VERSION",
            "DOCKET_TEST_REQUIRE_MODEL",
        ];
        assert_eq!(told(&used), [""; 0]);
    }

    #[test]
    fn what_kubernetes_says_of_a_service_of_our_name_is_no_fault() {
        let link = [
            "DOCKET_SERVICE_HOST",
            "DOCKET_SERVICE_PORT",
            "DOCKET_SERVICE_PORT_HTTP",
            "DOCKET_PORT_8000_TCP_ADDR",
            "DOCKET_GPU_SERVICE_HOST",
            "DOCKET_GPU_PORT",
        ];
        assert_eq!(told(&link), [""; 0]);
        assert_eq!(told(&["DOCKET_GPU_PORT", "DOCKET_PORT_8000_TCP_ADDR"]).len(), 2);
    }

    #[test]
    fn many_are_counted_and_none_is_shown_at_length() {
        let names: Vec<String> = (10..30).map(|n| format!("DOCKET_ELEPHANT_{n}")).collect();
        let all = told(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(all.len(), NAMED_MAX + 1);
        let last = "and: 4 more variables that begin with DOCKET_ and set nothing";
        assert_eq!(all.last().map(String::as_str), Some(last));
        let long = format!("DOCKET_{}", "X".repeat(10_000));
        assert!(told(&[&long])[0].len() < 300);
    }
}
