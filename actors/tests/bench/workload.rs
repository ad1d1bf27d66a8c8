//! Who asks what, and when: drawn from a seed.

use std::time::Duration;

use actors::Lane;

/// A small generator of random numbers (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0x9E37_79B9_7F4A_7C15)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// In (0, 1].
    fn part(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.part().ln()).sqrt() * (std::f64::consts::TAU * self.part()).cos()
    }

    fn index(&mut self, shares: &[f64]) -> usize {
        let total: f64 = shares.iter().sum();
        let mut left = self.part() * total;
        let found = shares.iter().position(|share| {
            left -= share;
            left <= 0.0
        });
        found.unwrap_or(shares.len() - 1)
    }
}

/// Tenants; the first asks for half of everything.
pub(crate) const TENANTS: usize = 8;
/// Different states of each lane.
const STATES: usize = 300;

/// One decision that comes in.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) at: Duration,
    pub(crate) tenant: usize,
    pub(crate) lane: Lane,
    pub(crate) state: u32,
    pub(crate) state_tokens: u32,
    pub(crate) reads: u32,
    pub(crate) suffix_tokens: u32,
}

/// All arrivals of a run, at a mean rate, in order.
///
/// Lanes 20:60:20. States are drawn by Zipf's law; their lengths are lognormal with median 120 in the
/// urgent lane, where one or two questions are asked, else 350 with up to eight questions; 5 of 100 in
/// the normal and the batch lane are documents of 4,000 to 7,500 tokens.
pub(crate) fn draw(seed: u64, rate: f64, seconds: f64) -> Vec<Arrival> {
    let mut dice = Dice::new(seed);
    let zipf: Vec<f64> = (1..=STATES).map(|rank| 1.0 / rank as f64).collect();
    let mut tenants = [1.0 / (2 * (TENANTS - 1)) as f64; TENANTS];
    tenants[0] = 0.5;
    let mut at = 0.0;
    let mut arrivals = Vec::new();
    loop {
        at -= dice.part().ln() / rate;
        if at > seconds {
            return arrivals;
        }
        let lane = [Lane::Urgent, Lane::Normal, Lane::Batch][dice.index(&[0.2, 0.6, 0.2])];
        let tenant = dice.index(&tenants);
        let rank = dice.index(&zipf);
        let number = (rank * TENANTS + tenant) * 4 + lane as usize;
        arrivals.push(Arrival {
            at: Duration::from_secs_f64(at),
            tenant,
            lane,
            state: u32::try_from(number).unwrap(),
            state_tokens: length_of_state(number, lane),
            reads: 1 + u32::try_from(dice.next() % if lane == Lane::Urgent { 2 } else { 8 })
                .unwrap(),
            suffix_tokens: 30 + u32::try_from(dice.next() % 40).unwrap(),
        });
    }
}

/// A state always has the same length.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
fn length_of_state(number: usize, lane: Lane) -> u32 {
    let mut dice = Dice::new(number as u64 + 7);
    if lane != Lane::Urgent && dice.part() < 0.05 {
        return 4_000 + (dice.part() * 3_500.0) as u32;
    }
    let median = if lane == Lane::Urgent { 120.0 } else { 350.0 };
    let tokens = median * (0.6 * dice.normal()).exp();
    let longest = if lane == Lane::Urgent { 400.0 } else { 3_000.0 };
    tokens.clamp(20.0, longest) as u32
}
