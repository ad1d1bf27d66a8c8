//! Slots of connections: how many may be open, how many from one address, and who leaves when others
//! want in.
//!
//! A connection on which nothing is asked costs its slot only, and slots are few. So when most of them
//! are taken, those that have waited longest for a request are closed for newcomers.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::telemetry::Ending;

/// Part of the slots beyond which idle connections are closed for newcomers, in quarters.
const CROWDED_QUARTERS: usize = 3;

/// How many connections are to end where no file can be opened for one more: whoever reads a file that
/// has changed needs one too.
const FREED: usize = 8;

/// For how long no more connections are taken then than that: a file that has changed is looked at twice.
const SCARCE: Duration = Duration::from_secs(1);

/// Bits of an IPv6 address that say whose it is: one customer mostly has all addresses of a /64.
const NETWORK_BITS: u32 = 64;

/// Limits of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotLimits {
    /// Most at one time, at least 1.
    pub(super) connections_max: usize,
    /// Of these, from one address; 0 is no limit.
    pub(super) per_address: usize,
    /// How long one has been idle at least when it is closed for others.
    pub(super) idle_min: Duration,
}

/// All slots.
#[derive(Debug)]
pub(super) struct Slots {
    limits: SlotLimits,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    open: HashMap<u64, Open>,
    /// Of those that were not asked to leave, by since when they are idle.
    idle: BTreeSet<(Instant, u64)>,
    by_address: HashMap<IpAddr, usize>,
    /// How many were asked to leave for others, and are still there.
    leaving: usize,
    /// Where no file could be opened for one more: how many may be open, and until when.
    scarce: Option<(usize, Instant)>,
}

#[derive(Debug)]
struct Open {
    address: Option<IpAddr>,
    idle_since: Option<Instant>,
    leave: Arc<Leave>,
    is_leaving: bool,
}

/// Whether one more connection may be taken.
enum Room {
    Is,
    /// There may be room once a slot is freed, or at this time somebody may be asked to leave.
    May(Option<Instant>),
}

/// Asks a connection to end.
#[derive(Debug, Default)]
pub(super) struct Leave {
    why: OnceLock<Ending>,
    asked: Notify,
}

impl Leave {
    /// The first reason stays.
    pub(super) fn ask(&self, why: Ending) {
        if self.why.set(why).is_ok() {
            self.asked.notify_one();
        }
    }

    /// Why it was asked to.
    pub(super) fn why(&self) -> Option<Ending> {
        self.why.get().copied()
    }

    /// Done when it is asked to; for one caller.
    pub(super) async fn asked(&self) -> Ending {
        loop {
            if let Some(why) = self.why() {
                return why;
            }
            self.asked.notified().await;
        }
    }
}

/// A connection's place, given back when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    id: u64,
    leave: Arc<Leave>,
}

impl Slots {
    pub(super) fn new(limits: SlotLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default(), freed: Notify::new() })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Done when one more connection may be taken; makes room for it where somebody idles.
    pub(super) async fn room(&self) {
        loop {
            let again = match self.make_room() {
                Room::Is => return,
                Room::May(again) => again,
            };
            let freed = self.freed.notified();
            match again {
                // Either way there is something to look at.
                Some(at) => drop(timeout_at(at, freed).await),
                None => freed.await,
            }
        }
    }

    fn make_room(&self) -> Room {
        let mut taken = self.taken();
        let (most, until) = taken.most(self.limits.connections_max);
        if taken.open.len() < most {
            return Room::Is;
        }
        if taken.leaving > 0 {
            return Room::May(until);
        }
        let longest = taken.idle.first().map(|(since, _)| *since + self.limits.idle_min);
        if longest.is_some_and(|at| at <= Instant::now()) {
            taken.ask_one(self.limits.idle_min);
            return Room::May(until);
        }
        Room::May(longest.into_iter().chain(until).min())
    }

    /// No file could be opened for one more connection: for a while it is as if fewer might be open than
    /// are, so that those that idle leave, and some files are left for others.
    pub(super) fn out_of_files(&self) {
        let mut taken = self.taken();
        let most = taken.open.len().saturating_sub(FREED).max(1);
        taken.scarce = Some((most, Instant::now() + SCARCE));
    }

    /// A slot for a connection from `address`; none where it has too many.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let address = counted(address).filter(|_| self.limits.per_address > 0);
        let mut taken = self.taken();
        if let Some(address) = address {
            let count = taken.by_address.entry(address).or_default();
            if *count >= self.limits.per_address {
                return None;
            }
            *count += 1;
        }
        let (id, now, leave) = (taken.next, Instant::now(), Arc::new(Leave::default()));
        taken.next += 1;
        if (taken.open.len() - taken.leaving) * 4 >= self.limits.connections_max * CROWDED_QUARTERS
        {
            taken.ask_one(self.limits.idle_min);
        }
        taken.idle.insert((now, id));
        let open =
            Open { address, idle_since: Some(now), leave: Arc::clone(&leave), is_leaving: false };
        taken.open.insert(id, open);
        Some(Slot { slots: Arc::clone(self), id, leave })
    }
}

impl Taken {
    /// How many may be open now, and until when that holds if not for ever.
    fn most(&self, connections_max: usize) -> (usize, Option<Instant>) {
        match self.scarce {
            Some((most, until)) if Instant::now() < until => {
                (most.min(connections_max), Some(until))
            }
            Some(_) | None => (connections_max, None),
        }
    }

    /// Asks the one that is idle longest to leave, if that is long enough.
    fn ask_one(&mut self, idle_min: Duration) {
        let Some(&(since, id)) = self.idle.first() else { return };
        if since.elapsed() < idle_min {
            return;
        }
        self.idle.remove(&(since, id));
        if let Some(open) = self.open.get_mut(&id) {
            open.is_leaving = true;
            open.leave.ask(Ending::Room);
            self.leaving += 1;
        }
    }
}

impl Slot {
    pub(super) fn leave(&self) -> &Arc<Leave> {
        &self.leave
    }

    /// A request began on it.
    pub(super) fn busy(&self) {
        let mut taken = self.slots.taken();
        let Some(open) = taken.open.get_mut(&self.id) else { return };
        if let Some(since) = open.idle_since.take() {
            taken.idle.remove(&(since, self.id));
        }
    }

    /// Nothing is asked on it any more.
    pub(super) fn idle(&self, since: Instant) {
        let mut taken = self.slots.taken();
        let Some(open) = taken.open.get_mut(&self.id) else { return };
        let (before, is_leaving) = (open.idle_since.replace(since), open.is_leaving);
        if let Some(before) = before {
            taken.idle.remove(&(before, self.id));
        }
        if !is_leaving {
            taken.idle.insert((since, self.id));
        }
        if taken.open.len() >= taken.most(self.slots.limits.connections_max).0 {
            self.slots.freed.notify_one();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        let Some(open) = taken.open.remove(&self.id) else { return };
        if let Some(since) = open.idle_since {
            taken.idle.remove(&(since, self.id));
        }
        taken.leaving -= usize::from(open.is_leaving);
        if let Some(address) = open.address
            && let Some(count) = taken.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                taken.by_address.remove(&address);
            }
        }
        self.slots.freed.notify_one();
    }
}

/// Under what an address is counted: itself, its network for IPv6, and nothing for this machine's own,
/// on which a proxy for all others may run.
fn counted(address: IpAddr) -> Option<IpAddr> {
    match address.to_canonical() {
        own if own.is_loopback() => None,
        IpAddr::V4(address) => Some(address.into()),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> NETWORK_BITS << NETWORK_BITS;
            Some(Ipv6Addr::from_bits(network).into())
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn slots(connections_max: usize, per_address: usize) -> Arc<Slots> {
        Slots::new(SlotLimits { connections_max, per_address, idle_min: SECOND })
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// One of many.
    pub(in crate::http) fn slot() -> Slot {
        slots(1_000, 0).take(address("127.0.0.1")).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_its_share_and_gets_it_back() {
        let slots = slots(100, 2);
        let first = slots.take(address("192.0.2.1")).unwrap();
        let _second = slots.take(address("::ffff:192.0.2.1")).unwrap();
        assert!(slots.take(address("192.0.2.1")).is_none());
        let _other = slots.take(address("192.0.2.2")).unwrap();
        drop(first);
        let _third = slots.take(address("192.0.2.1")).unwrap();
        assert!(slots.take(address("192.0.2.1")).is_none());
        let _six = [slots.take(address("2001:db8::1")), slots.take(address("2001:db8::f:2"))];
        assert!(slots.take(address("2001:db8::ffff:0:0:3")).is_none(), "the same network");
        assert!(slots.take(address("2001:db8:0:1::1")).is_some());
        let own: Vec<_> = (0..9).map(|_| slots.take(address("127.0.0.1")).unwrap()).collect();
        drop(own);
        assert!(slots.taken().by_address.len() <= 3);
    }

    #[tokio::test(start_paused = true)]
    async fn when_most_are_taken_the_longest_idle_leaves_for_a_newcomer() {
        let slots = slots(8, 0);
        let mut open = Vec::new();
        for _ in 0..6 {
            open.push(slots.take(address("127.0.0.1")).unwrap());
            advance(SECOND).await;
        }
        let asked = |open: &[Slot]| -> Vec<bool> {
            open.iter().map(|slot| slot.leave().why().is_some()).collect()
        };
        assert_eq!(asked(&open), [false; 6]);
        // The first is asked something, the second was asked something a moment ago.
        open[0].busy();
        open[1].busy();
        open[1].idle(Instant::now());
        open.push(slots.take(address("127.0.0.1")).unwrap());
        assert_eq!(asked(&open), [false, false, true, false, false, false, false]);
        assert_eq!(open[2].leave().asked().await, Ending::Room);
        drop(open.remove(2));
        assert_eq!(slots.taken().leaving, 0);
        // Nobody leaves who has only just come.
        for slot in &open {
            slot.busy();
            slot.idle(Instant::now());
        }
        open.push(slots.take(address("127.0.0.1")).unwrap());
        assert!(asked(&open).iter().all(|asked| !asked));
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_house_waits_until_somebody_idles_long_enough() {
        let slots = slots(2, 0);
        let first = slots.take(address("127.0.0.1")).unwrap();
        let second = slots.take(address("127.0.0.1")).unwrap();
        first.busy();
        second.busy();
        let own = Arc::clone(&slots);
        let waiting = tokio::spawn(async move { own.room().await });
        advance(9 * SECOND).await;
        assert!(!waiting.is_finished() && second.leave().why().is_none());
        let start = Instant::now();
        second.idle(start);
        assert_eq!(second.leave().asked().await, Ending::Room);
        assert_eq!(start.elapsed(), SECOND);
        drop(second);
        waiting.await.unwrap();
        assert!(first.leave().why().is_none());
    }
}
