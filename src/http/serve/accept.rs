//! Taking connections from the listener, also while no file is left for one.

use std::future::Future;
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use tokio::time::Instant;

use crate::http::slots::Slots;

/// Pause after a failed accept: what failed is tried again, and would most likely fail at once.
const PAUSE: Duration = Duration::from_millis(50);

/// Time without a failure after which the next one is the first again.
const FORGOTTEN: Duration = Duration::from_mins(1);

/// Failures to take a connection, told of ever more rarely: with no file left there are twenty a second.
#[derive(Debug, Default)]
pub(super) struct Failures {
    count: u64,
    last: Option<Instant>,
}

impl Failures {
    /// Counts one; its number where it is to be told: the first, second, fourth, eighth and so on.
    fn add(&mut self, now: Instant) -> Option<u64> {
        let is_old = |last: Instant| now.duration_since(last) > FORGOTTEN;
        if self.last.replace(now).is_some_and(is_old) {
            self.count = 0;
        }
        self.count += 1;
        self.count.is_power_of_two().then_some(self.count)
    }
}

/// Waits for room and then for a connection.
///
/// * `next`: takes one from the listener.
pub(super) async fn accept<T, F: Future<Output = io::Result<T>>>(
    slots: &Slots,
    failures: &mut Failures,
    next: impl Fn() -> F,
) -> T {
    loop {
        slots.room().await;
        let error = match next().await {
            Ok(accepted) => return accepted,
            Err(error) => error,
        };
        if let Some(count) = failures.add(Instant::now()) {
            tracing::warn!(%error, failures = count, "a connection could not be accepted");
        }
        if is_out_of_files(&error) {
            slots.out_of_files();
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether it would help that other connections end.
fn is_out_of_files(error: &io::Error) -> bool {
    let scarce = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| scarce.contains(&errno))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::http::slots::{Slot, SlotLimits};

    const OWN: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn failures_are_told_ever_more_rarely_until_there_were_none_for_a_while() {
        let (mut failures, start) = (Failures::default(), Instant::now());
        let told = (0..1_000).filter_map(|_| failures.add(start));
        assert_eq!(told.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
        assert_eq!(failures.add(start + FORGOTTEN), None);
        assert_eq!(failures.add(start + 3 * FORGOTTEN), Some(1));
    }

    #[test]
    fn only_what_others_hold_is_made_room_for() {
        let of = |errno: Errno| is_out_of_files(&errno.into());
        assert!(of(Errno::MFILE) && of(Errno::NFILE) && of(Errno::NOBUFS) && of(Errno::NOMEM));
        assert!(!of(Errno::CONNABORTED) && !of(Errno::PERM));
        assert!(!is_out_of_files(&io::Error::other("something else")));
    }

    /// A house of ten connections at a system that lets twelve files be open, two of which are taken by
    /// others.
    struct House {
        slots: Arc<Slots>,
        open: Arc<Mutex<Vec<Slot>>>,
        tries: AtomicUsize,
    }

    impl House {
        fn full() -> Self {
            let second = Duration::from_secs(1);
            let limits = SlotLimits { connections_max: 100, per_address: 0, idle_min: second };
            let slots = Slots::new(limits);
            let open = (0..10).map(|_| slots.take(OWN).unwrap()).collect();
            Self { slots, open: Arc::new(Mutex::new(open)), tries: AtomicUsize::new(0) }
        }

        /// Each connection ends when it is asked to.
        fn leave_when_asked(&self) {
            tokio::spawn(leaving(Arc::clone(&self.open)));
        }

        async fn accept(&self) {
            let next = || {
                self.tries.fetch_add(1, Ordering::SeqCst);
                let is_full = self.open.lock().unwrap().len() + 2 >= 12;
                let full = || io::Error::from(Errno::MFILE);
                std::future::ready((!is_full).then_some(()).ok_or_else(full))
            };
            accept(&self.slots, &mut Failures::default(), next).await;
        }
    }

    async fn leaving(open: Arc<Mutex<Vec<Slot>>>) {
        loop {
            open.lock().unwrap().retain(|slot| slot.leave().why().is_none());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn where_no_file_is_left_those_who_idle_make_room() {
        let house = House::full();
        house.leave_when_asked();
        tokio::time::sleep(Duration::from_secs(2)).await;
        house.accept().await;
        assert_eq!(house.tries.load(Ordering::SeqCst), 2, "no try without hope");
        let left = house.open.lock().unwrap().len();
        assert!((1..=2).contains(&left), "files for others too: {left} connections are left");
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_are_asked_something_it_is_tried_once_a_while_until_one_ends() {
        let house = House::full();
        house.leave_when_asked();
        house.open.lock().unwrap().iter().for_each(Slot::busy);
        let ended = async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            house.open.lock().unwrap().pop();
        };
        tokio::join!(house.accept(), ended);
        assert_eq!(house.open.lock().unwrap().len(), 9, "nobody is cut off");
        let tries = house.tries.load(Ordering::SeqCst);
        assert!((30..=70).contains(&tries), "{tries}");
    }
}
