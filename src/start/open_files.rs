//! Room for open files: each connection is one, and the system's limit is often 1,024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is open beside connections, with room to spare: listener, model, stores, collectors, images that
/// are fetched, and files that are read again.
const RESERVE: u64 = 128;

/// How many connections may be open: `wanted`, for which this process's own limit is raised as far as
/// the system lets it, or as many as there is room for.
pub(super) fn connections(wanted: u32) -> u32 {
    let needed = u64::from(wanted) + RESERVE;
    let mut limit = getrlimit(Resource::Nofile);
    if let Some(raised) = raised(limit, needed) {
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit = raised,
            Err(error) => tracing::debug!(%error, "the limit of open files stays as it is"),
        }
    }
    let room = room(limit, wanted);
    if room < wanted {
        tracing::warn!(
            "--connections-max {wanted}: this process may have {} files open, so that {room} connections \
             are taken at most; raise its limit (`ulimit -n`, LimitNOFILE=) to {needed}",
            limit.current.unwrap_or(u64::MAX),
        );
    }
    room
}

/// The limit that is to be set for this many files; none where there is room, or no more is allowed.
fn raised(limit: Rlimit, needed: u64) -> Option<Rlimit> {
    let current = limit.current.filter(|current| *current < needed)?;
    let allowed = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    (allowed > current).then_some(Rlimit { current: Some(allowed), ..limit })
}

/// Connections for which there is room, at most `wanted`.
fn room(limit: Rlimit, wanted: u32) -> u32 {
    let Some(files) = limit.current else { return wanted };
    let room = files - RESERVE.min(files / 2);
    u32::try_from(room).unwrap_or(u32::MAX).clamp(1, wanted.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(current: u64, maximum: u64) -> Rlimit {
        Rlimit { current: Some(current), maximum: Some(maximum) }
    }

    #[test]
    fn the_limit_is_raised_as_far_as_needed_and_allowed() {
        assert_eq!(raised(limit(1_024, 524_288), 1_152), Some(limit(1_152, 524_288)));
        assert_eq!(raised(limit(1_024, 1_100), 1_152), Some(limit(1_100, 1_100)));
        assert_eq!(raised(limit(1_024, 1_024), 1_152), None);
        assert_eq!(raised(limit(4_096, 524_288), 1_152), None);
        let endless = Rlimit { current: None, maximum: None };
        assert_eq!((raised(endless, 1_152), room(endless, 1_024)), (None, 1_024));
    }

    #[test]
    fn connections_leave_room_for_other_files() {
        for (files, wanted, connections) in
            [(1_152, 1_024, 1_024), (1_024, 1_024, 896), (100, 1_024, 50), (1, 1_024, 1)]
        {
            assert_eq!(room(limit(files, files), wanted), connections, "{files}");
        }
    }

    #[test]
    fn this_process_gets_what_it_needs() {
        let before = getrlimit(Resource::Nofile);
        let room = connections(16);
        assert_eq!(room, 16);
        let after = getrlimit(Resource::Nofile);
        assert!(after.current.is_none_or(|files| files >= before.current.unwrap_or(files)));
    }
}
