//! Seeded choices, and the damage that any bytes can take.

/// Numbers at which counts, lengths and offsets go wrong.
pub(crate) const EXTREMES: [u64; 18] = [
    0,
    1,
    3,
    31,
    255,
    65_535,
    65_536,
    (1 << 24) - 1,
    (1 << 24) + 1,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 32,
    1 << 40,
    1 << 61,
    (1 << 62) + 1,
    1 << 63,
    u64::MAX - 7,
    u64::MAX,
];

/// Choices from a seed (splitmix64).
#[derive(Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `limit`, or 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit as u64).max(1)).unwrap()
    }

    /// One of several.
    pub(crate) fn pick<'a, T>(&mut self, several: &'a [T]) -> &'a T {
        &several[self.below(several.len())]
    }

    /// An extreme number, or one near `now`.
    pub(crate) fn extreme(&mut self, now: u64) -> u64 {
        match self.below(6) {
            0 => now.wrapping_add(1),
            1 => now.wrapping_sub(1),
            2 => now ^ (1 << self.below(64)),
            _ => *self.pick(&EXTREMES),
        }
    }

    /// Flips one to eight bits.
    pub(crate) fn flip(&mut self, bytes: &mut [u8]) {
        if bytes.is_empty() {
            return;
        }
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            bytes[at] ^= 1 << self.below(8);
        }
    }

    /// Cuts off, leaves out, doubles or puts in a few bytes.
    pub(crate) fn shift(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        let end = (at + 1 + self.below(64)).min(bytes.len());
        match self.below(4) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            _ => {
                let byte = u8::try_from(self.below(256)).unwrap();
                drop(bytes.splice(at..at, vec![byte; end - at]));
            }
        }
    }

    /// Puts patterns that are infinite or no number in 16 or 32 bits into weights.
    pub(crate) fn poison(&mut self, bytes: &mut [u8]) {
        let patterns: [[u8; 4]; 3] = [[0, 0x7c, 0, 0x7c], [0, 0, 0x80, 0x7f], [0xff; 4]];
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len().saturating_sub(4)) / 2 * 2;
            let pattern = *self.pick(&patterns);
            if let Some(room) = bytes.get_mut(at..at + 4) {
                room.copy_from_slice(&pattern);
            }
        }
    }
}
