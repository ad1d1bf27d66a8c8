//! The sampler: reads once a second what the server's process uses, on a thread of its own, so that
//! the generator's thread is not kept from starting requests.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::process::{self, Reading};

/// Time between two readings.
const EVERY: Duration = Duration::from_secs(1);

/// What the server used over the measured part of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Usage {
    /// Its process and the name of that, where it is on this machine.
    pub(crate) pid: Option<u32>,
    pub(crate) name: Option<String>,
    /// Processor time, children included, and over how long.
    pub(crate) cpu: Duration,
    pub(crate) over: Duration,
    /// Most resident memory seen, children included; the most that the process ever had, itself.
    pub(crate) rss_bytes_max: u64,
    pub(crate) rss_bytes_ever: Option<u64>,
}

impl Usage {
    /// Processor cores that it kept busy, on average.
    pub(crate) fn cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.over.as_secs_f64().max(1e-9)
    }
}

/// A thread that reads.
#[derive(Debug)]
pub(super) struct Sampler {
    stop: SyncSender<()>,
    thread: JoinHandle<Option<Usage>>,
}

impl Sampler {
    /// Starts to read a process once the warm-up is over.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(pid: u32, warm_up: Duration) -> std::io::Result<Self> {
        let (stop, stopped) = sync_channel(1);
        let thread = thread::Builder::new().name("sampler".to_owned());
        let thread = thread.spawn(move || watch(pid, warm_up, &stopped))?;
        Ok(Self { stop, thread })
    }

    /// Stops; none where the run ended within the warm-up, or the process did.
    pub(super) fn stop(self) -> Option<Usage> {
        // A thread that has ended already does not take it.
        let _ = self.stop.try_send(());
        self.thread.join().ok().flatten()
    }
}

fn watch(pid: u32, warm_up: Duration, stopped: &Receiver<()>) -> Option<Usage> {
    let goes_on = |wait| matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
    if !warm_up.is_zero() && !goes_on(warm_up) {
        return None;
    }
    let (name, first, began) = (process::name(pid), process::read(pid)?, Instant::now());
    let (mut last, mut ended) = (first, began);
    let mut rss_bytes_max = first.rss_bytes;
    loop {
        let is_last = !goes_on(EVERY);
        // One that has ended keeps what was last seen of it.
        if let Some(reading) = process::read(pid) {
            (last, ended) = (reading, Instant::now());
            rss_bytes_max = rss_bytes_max.max(reading.rss_bytes);
        }
        if is_last {
            break;
        }
    }
    let Reading { cpu, rss_bytes_ever, .. } = last;
    Some(Usage {
        pid: Some(pid),
        name,
        cpu: cpu.saturating_sub(first.cpu),
        over: ended - began,
        rss_bytes_max,
        rss_bytes_ever: (rss_bytes_ever > 0).then_some(rss_bytes_ever),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_run_shorter_than_a_second_has_its_first_and_its_last_reading() {
        let sampler = Sampler::start(std::process::id(), Duration::ZERO).unwrap();
        let usage = sampler.stop().unwrap();
        assert!(usage.rss_bytes_max > 1 << 20 && usage.name.is_some());
    }

    #[test]
    fn a_run_that_ends_within_its_warm_up_has_none() {
        let sampler = Sampler::start(std::process::id(), Duration::from_hours(1)).unwrap();
        assert_eq!(sampler.stop(), None);
    }

    #[test]
    fn cores_are_processor_time_over_time() {
        let usage =
            Usage { cpu: Duration::from_secs(3), over: Duration::from_secs(2), ..Usage::default() };
        assert!((usage.cores() - 1.5).abs() < 1e-9);
    }
}
