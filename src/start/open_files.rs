//! Open files: as many as the connections need, or as many connections as there may be open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Files beside those of connections: the model's, the key file and that of usage when they are read and
/// written, the runtime's own, connections to collectors and hubs.
const RESERVE: u64 = 128;

/// The configuration with at most as many connections as the system lets files be open. Its soft limit,
/// which many shells and containers begin with at 1,024, is raised as far as is needed and allowed.
pub(super) fn fitted(config: &Config) -> Config {
    let (wanted, remote) = (config.http.connections_max, &config.engine.remote);
    // Connections to the servers of a remote engine.
    let beyond = remote.urls.len() as u64 * u64::from(remote.window);
    let needed = u64::from(wanted) + RESERVE + beyond;
    let files = raised(getrlimit(Resource::Nofile), needed);
    let mut fitted = config.clone();
    fitted.http.connections_max = served(wanted, files.saturating_sub(beyond));
    if fitted.http.connections_max < wanted {
        tracing::warn!(
            "--connections-max {wanted} needs {needed} open files and {files} may be open: {} \
             connections are served; raise the hard limit (ulimit -Hn, LimitNOFILE=, --ulimit nofile=)",
            fitted.http.connections_max
        );
    }
    fitted
}

/// How many files may be open, once that was raised as far as is needed and allowed.
fn raised(limit: Rlimit, needed: u64) -> u64 {
    let soft = limit.current.unwrap_or(u64::MAX);
    let Some(target) = target(limit, needed) else { return soft };
    match setrlimit(Resource::Nofile, Rlimit { current: Some(target), ..limit }) {
        Ok(()) => {
            tracing::info!("the limit of open files was raised from {soft} to {target}");
            target
        }
        Err(error) => {
            tracing::warn!("the limit of open files could not be raised from {soft}: {error}");
            soft
        }
    }
}

/// What the soft limit is to be, where that is more than it is.
fn target(limit: Rlimit, needed: u64) -> Option<u64> {
    let target = limit.maximum.map_or(needed, |hard| needed.min(hard));
    limit.current.is_some_and(|soft| soft < target).then_some(target)
}

/// How many connections are served where so many files may be open. Of few files half are left.
fn served(wanted: u32, files: u64) -> u32 {
    let of_connections = files - RESERVE.min(files / 2);
    u32::try_from(of_connections).unwrap_or(u32::MAX).min(wanted).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(current: Option<u64>, maximum: Option<u64>) -> Rlimit {
        Rlimit { current, maximum }
    }

    #[test]
    fn the_soft_limit_is_raised_as_far_as_is_needed_and_allowed() {
        for (current, maximum, raised) in [
            (Some(1_024), Some(4_096), Some(1_152)),
            (Some(1_024), None, Some(1_152)),
            (Some(1_024), Some(1_100), Some(1_100)),
            (Some(1_024), Some(1_024), None),
            (Some(1_152), Some(4_096), None),
            (Some(9_999), Some(9_999), None),
            (None, None, None),
        ] {
            assert_eq!(target(limit(current, maximum), 1_152), raised, "{current:?} {maximum:?}");
        }
    }

    #[test]
    fn where_too_few_files_may_be_open_fewer_connections_are_served() {
        for (wanted, files, connections) in [
            (1_024, 1_152, 1_024),
            (1_024, u64::MAX, 1_024),
            (1_024, 1_151, 1_023),
            (1_024, 1_024, 896),
            (65_536, 4_096, 3_968),
            (1_024, 256, 128),
            (1_024, 64, 32),
            (1_024, 0, 1),
            (1, 1_024, 1),
        ] {
            assert_eq!(served(wanted, files), connections, "{wanted} {files}");
        }
    }

    #[test]
    fn what_the_system_allows_is_what_is_counted_with() {
        let before = getrlimit(Resource::Nofile);
        let soft = before.current.unwrap_or(u64::MAX);
        let has = raised(before, soft.saturating_add(1));
        let after = getrlimit(Resource::Nofile);
        assert!(after.current.unwrap_or(u64::MAX) >= has && has >= soft);
        let can_be_raised =
            before.current.is_some() && before.maximum.is_none_or(|hard| hard > soft);
        assert_eq!(has > soft, can_be_raised);
        assert_eq!(before.maximum, after.maximum, "the hard limit stays");
    }
}
