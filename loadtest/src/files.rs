//! The limit of open files, of which every connection is one: raised before a run, where that is
//! allowed, so that a run does not fail by it in the middle.

use anyhow::ensure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside the connections: the terminal, reports, timers, the server's metrics and process.
const OTHERS: u64 = 64;

/// Makes room for so many connections, `each` times where that is allowed; `flag` is what asked for
/// them.
///
/// # Errors
/// When the process may not even have one file a connection.
pub(crate) fn make_room(flag: &str, connections: u32, each: usize) -> anyhow::Result<()> {
    let needed = u64::from(connections) + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if let Some(raised) = raised(&limit, u64::from(connections) * each as u64 + OTHERS) {
        // What cannot be raised may do as it is.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit });
    }
    let Some(allowed) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    ensure!(
        allowed >= needed,
        "{flag} is {connections}, which needs {needed} open files, and this process may have \
         {allowed}; see ulimit -n"
    );
    Ok(())
}

/// What the limit is raised to; none where it is high enough, or cannot be raised.
fn raised(limit: &Rlimit, wanted: u64) -> Option<u64> {
    let current = limit.current.filter(|current| *current < wanted)?;
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    (raised > current).then_some(raised)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_as_far_as_is_wanted_and_allowed() {
        let of = |current, maximum| raised(&Rlimit { current, maximum }, 2_000);
        assert_eq!(of(Some(1_024), Some(4_096)), Some(2_000));
        assert_eq!(of(Some(1_024), Some(1_500)), Some(1_500));
        assert_eq!(of(Some(1_024), None), Some(2_000));
        assert_eq!(
            [of(Some(1_024), Some(1_024)), of(Some(2_000), None), of(None, None)],
            [None; 3]
        );
    }

    #[test]
    fn a_number_of_connections_that_cannot_be_had_is_named_before_a_run() {
        let Some(most) = getrlimit(Resource::Nofile).maximum else { return };
        let Ok(over) = u32::try_from(most) else { return };
        let fault = make_room("--connections", over, 1).unwrap_err().to_string();
        assert!(fault.starts_with(&format!("--connections is {over}, which needs")), "{fault}");
    }
}
