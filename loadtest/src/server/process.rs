//! The server's process on this machine: which one it is, and what it and its children use.
//!
//! Source: Linux's proc file system. Where there is none, no process is found.

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;

/// Most processes that are looked at: the server and what it started.
const PROCESSES_MAX: usize = 64;
/// The state of a listening socket in the kernel's table.
const LISTENING: &str = "0A";

/// What a process and its children have used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) cpu: Duration,
    pub(super) rss_bytes: u64,
    /// Most that the process itself ever had.
    pub(super) rss_bytes_ever: u64,
}

/// A process that was named, if it can be read.
///
/// # Errors
/// When it cannot.
pub(super) fn checked(pid: u32) -> anyhow::Result<u32> {
    ensure!(read(pid).is_some(), "--server-pid {pid}: there is no such process to be read");
    Ok(pid)
}

/// The process that listens at an address of this machine.
pub(super) fn listening(address: SocketAddr) -> Option<u32> {
    // Only an address of this machine can be bound.
    UdpSocket::bind((address.ip(), 0)).ok()?;
    let sockets: BTreeSet<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| sockets(&table, address.port()))
        .collect();
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut owners: Vec<u32> = pids.filter(|pid| holds(*pid, &sockets)).collect();
    // A parent that hands its socket on comes before its children.
    owners.sort_unstable();
    owners.first().copied()
}

/// Names of the sockets that listen on a port, as descriptors show them.
fn sockets(table: &str, port: u16) -> Vec<String> {
    let mut found = Vec::new();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, _, _, _, _, _, inode, ..] = fields.as_slice() else { continue };
        let own = local.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        if own == Some(port) && *state == LISTENING {
            found.push(format!("socket:[{inode}]"));
        }
    }
    found
}

fn holds(pid: u32, sockets: &BTreeSet<String>) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.any(|target| target.to_str().is_some_and(|target| sockets.contains(target)))
}

/// The name of a process.
pub(super) fn name(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_owned())
}

/// What a process and those that it started, and that still run, have used; none where it has
/// ended.
pub(super) fn read(pid: u32) -> Option<Reading> {
    let mut sum = read_one(pid)?;
    let mut seen = BTreeSet::from([pid]);
    let mut left = children(pid);
    while let Some(child) = left.pop() {
        if seen.len() >= PROCESSES_MAX || !seen.insert(child) {
            continue;
        }
        let Some(reading) = read_one(child) else { continue };
        sum.cpu += reading.cpu;
        sum.rss_bytes += reading.rss_bytes;
        left.extend(children(child));
    }
    Some(sum)
}

fn read_one(pid: u32) -> Option<Reading> {
    let folder = format!("/proc/{pid}");
    let ticks = ticks(&fs::read_to_string(format!("{folder}/stat")).ok()?)?;
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Reading {
        cpu: Duration::from_secs_f64(ticks as f64 / per_second as f64),
        rss_bytes: kib(&status, "VmRSS:") << 10,
        rss_bytes_ever: kib(&status, "VmHWM:") << 10,
    })
}

/// Clock ticks of a process and of its children that have ended, from the text of `stat`.
fn ticks(stat: &str) -> Option<u64> {
    // The name before it is in brackets and may have anything in it; state is the third field.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let times = fields.get(11..15)?;
    Some(times.iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum())
}

/// A number of kibibytes in the text of `status`; 0 where it is absent.
fn kib(status: &str, field: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(field));
    value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |task: &Path| fs::read_to_string(task.join("children")).unwrap_or_default();
    let texts = tasks.map(|task| of(&task.path()));
    texts
        .flat_map(|text| {
            text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listening_socket_of_a_port_is_found_in_the_kernels_table() {
        let rest = "00000000:00000000 00:00000000 00000000 0 0";
        let table = format!(
            "  sl  local_address rem_address   st tx_queue rx_queue tr retrnsmt uid timeout inode\n\
             0: 0100007F:1F40 00000000:0000 0A {rest} 4711 1 0 100 0 0 10 0\n\
             1: 0100007F:1F40 0100007F:A0F2 01 {rest} 4712 1 0 20 4 30 10 -1\n\
             2: 0100007F:1F41 00000000:0000 0A {rest} 4713 1 0 100 0 0 10 0\n"
        );
        assert_eq!(sockets(&table, 8_000), ["socket:[4711]"]);
        assert_eq!(sockets(&table, 8_002), [""; 0]);
    }

    #[test]
    fn ticks_are_found_behind_a_name_with_brackets_and_spaces() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 9 8 7 6 100 20 3 4 20 0 9 0 12345 1 2 3";
        assert_eq!(ticks(stat), Some(127));
        assert_eq!(ticks("42 (a) S 1"), None);
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        let status = "Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(
            [kib(status, "VmRSS:"), kib(status, "VmHWM:"), kib(status, "VmSwap:")],
            [1_024, 2_048, 0]
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_found_by_a_port_that_it_listens_on() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(listening(address), Some(std::process::id()));
        let reading = read(std::process::id()).unwrap();
        assert!(reading.rss_bytes > 1 << 20 && reading.rss_bytes_ever >= reading.rss_bytes / 2);
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let fault = checked(u32::MAX).unwrap_err().to_string();
        assert!(fault.contains("--server-pid 4294967295"), "{fault}");
    }
}
