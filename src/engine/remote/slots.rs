//! Which of a llama-server's slots a state goes to.
//!
//! A slot keeps the keys and values of the prompt that it read last. Reads of one state go to one slot,
//! one after the other, so that each finds the state there; reads of other states go to other slots at
//! the same time. A state without a slot takes the one with the least to do, and of these the one used
//! longest ago.

use actors::SegmentKey;

/// The slots of one server.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Counts choices.
    clock: u64,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    /// Whose prompt it read last, or will have read when all that waits for it is done.
    state: Option<SegmentKey>,
    /// Requests that use it or wait for it.
    users: usize,
    used: u64,
}

impl Slots {
    /// So many, all empty.
    pub(super) fn new(count: usize) -> Self {
        Self { slots: vec![Slot::default(); count], clock: 0 }
    }

    /// The slot for a request on `state`, which is a user of it until [`leave`](Self::leave); `None`
    /// where the server has none.
    pub(super) fn enter(&mut self, state: SegmentKey) -> Option<usize> {
        let of_state = self.slots.iter().position(|slot| slot.state == Some(state));
        let order = |(_, slot): &(usize, &Slot)| (slot.users, slot.used);
        let idlest = || self.slots.iter().enumerate().min_by_key(order).map(|(index, _)| index);
        let index = of_state.or_else(idlest)?;
        self.clock += 1;
        let slot = &mut self.slots[index];
        (slot.state, slot.used) = (Some(state), self.clock);
        slot.users += 1;
        Some(index)
    }

    /// A request is done with its slot.
    pub(super) fn leave(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.users = slot.users.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: u8) -> SegmentKey {
        SegmentKey::root(&[name])
    }

    #[test]
    fn a_state_stays_on_its_slot_and_others_take_the_idlest() {
        let mut slots = Slots::new(2);
        assert_eq!(slots.enter(state(1)), Some(0));
        assert_eq!(slots.enter(state(1)), Some(0));
        assert_eq!(slots.enter(state(2)), Some(1));
        assert_eq!(slots.enter(state(3)), Some(1), "it has one user, the other has two");
        slots.leave(0);
        slots.leave(0);
        assert_eq!(slots.enter(state(1)), Some(0), "it is there still");
    }

    #[test]
    fn of_idle_slots_the_one_used_longest_ago_is_taken() {
        let mut slots = Slots::new(2);
        for name in [1, 2] {
            let slot = slots.enter(state(name)).unwrap();
            slots.leave(slot);
        }
        assert_eq!(slots.enter(state(3)), Some(0));
        slots.leave(0);
        assert_eq!(slots.enter(state(2)), Some(1));
    }

    #[test]
    fn a_server_without_slots_gives_none() {
        assert_eq!(Slots::default().enter(state(1)), None);
    }
}
