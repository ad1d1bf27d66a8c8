//! The draw: which request comes next, as a pure function of the workload and the seed.

use std::collections::HashMap;

use super::recorded::Recorded;
use super::texts::{TextKey, Texts};
use super::{Route, StateSet, Tenants, Workload};
use crate::random::{Random, Shares};

/// Name of the stream of random numbers.
const STREAM: u64 = 0xd4a3;

/// A request that is drawn but not yet written out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Planned {
    pub(crate) route: Route,
    /// How many decisions of the seed's sequence were drawn before this one, or before a prewarm's
    /// own.
    pub(crate) number: u64,
    /// Number of its kind of request.
    pub(crate) traffic: u16,
    /// Number of its tenant.
    pub(crate) tenant: u16,
    pub(crate) text: TextKey,
    /// Which version of the text.
    pub(crate) version: u32,
    /// Numbers of the questions in the pool.
    pub(crate) questions: Box<[u16]>,
    /// Whether its client goes away.
    pub(crate) disconnects: bool,
}

impl Planned {
    /// A number for the text of its state in its version: set, text and version side by side.
    pub(crate) fn state(&self) -> u64 {
        let version = u16::try_from(self.version).unwrap_or(u16::MAX);
        u64::from(self.text.set) << 48 | u64::from(self.text.text) << 16 | u64::from(version)
    }
}

/// What is drawn from, and how far it has come.
#[derive(Debug)]
pub(super) struct Draw {
    random: Random,
    /// Decisions that have been drawn.
    drawn: u64,
    traffic: Shares,
    tenants: Shares,
    sets: Vec<SetDraw>,
    kinds: Vec<Kind>,
}

/// What a kind of request is drawn with.
#[derive(Debug)]
struct Kind {
    set: u16,
    tenant: Option<u16>,
    questions: [u32; 2],
    variants: u32,
    disconnect_share: f64,
}

#[derive(Debug)]
struct SetDraw {
    count: u32,
    pick: Pick,
    /// How far the transcript of each state has come; empty where states do not grow.
    transcripts: HashMap<u32, Transcript>,
}

#[derive(Debug)]
enum Pick {
    Zipf(Shares),
    InTurn { each: u32, taken: u64 },
}

#[derive(Debug, Clone, Copy, Default)]
struct Transcript {
    /// Transcripts of this state that have ended.
    ended: u32,
    version: u32,
}

impl Draw {
    pub(super) fn new(seed: u64, workload: &Workload, tenants: &Tenants) -> Self {
        let set_number = |name: &str| workload.states.keys().position(|known| known == name);
        let kind = |traffic: &super::Traffic| Kind {
            set: narrow(set_number(&traffic.states).unwrap_or(0)),
            tenant: traffic.tenant.as_ref().and_then(|name| tenants.number(name)).map(narrow),
            questions: traffic.questions.count,
            variants: traffic.questions.variants,
            disconnect_share: traffic.disconnect.as_ref().map_or(0.0, |leaves| leaves.share),
        };
        Self {
            random: Random::of(seed, &[STREAM]),
            drawn: 0,
            traffic: Shares::of(workload.traffic.iter().map(|traffic| traffic.share)),
            tenants: Shares::of(tenants.shares.iter().copied()),
            sets: workload.states.values().map(SetDraw::new).collect(),
            kinds: workload.traffic.iter().map(kind).collect(),
        }
    }

    /// The next request.
    pub(super) fn next(&mut self, texts: &Texts) -> Planned {
        let number = self.drawn;
        self.drawn += 1;
        let random = &mut self.random;
        let traffic = self.traffic.pick(random);
        let kind = &self.kinds[traffic];
        // Drawn even where it is fixed, so that one kind of request does not shift the others.
        let tenant = narrow(self.tenants.pick(random));
        let (text, version) = self.sets[usize::from(kind.set)].next(kind.set, random, texts);
        let count = random.between(kind.questions);
        let variants = kind.variants as usize;
        Planned {
            route: Route::Decide,
            number,
            traffic: narrow(traffic),
            tenant: kind.tenant.unwrap_or(tenant),
            text,
            version,
            questions: (0..count).map(|_| narrow(random.below(variants))).collect(),
            disconnects: random.unit() <= kind.disconnect_share && kind.disconnect_share > 0.0,
        }
    }

    /// The next of the user's own requests, in their order, round and round.
    pub(super) fn recorded(&mut self, recorded: &Recorded, tenants: usize) -> Planned {
        let number = self.drawn;
        self.drawn += 1;
        recorded.planned(number, tenants)
    }
}

impl SetDraw {
    fn new(set: &StateSet) -> Self {
        let pick = match set.in_turn {
            Some(each) => Pick::InTurn { each, taken: 0 },
            None => Pick::Zipf(Shares::zipf(set.count, set.zipf.unwrap_or(0.0))),
        };
        Self { count: set.count, pick, transcripts: HashMap::new() }
    }

    fn next(&mut self, set: u16, random: &mut Random, texts: &Texts) -> (TextKey, u32) {
        let state = match &mut self.pick {
            Pick::Zipf(shares) => shares.pick(random) as u64,
            Pick::InTurn { each, taken } => {
                *taken += 1;
                (*taken - 1) / u64::from(*each) % u64::from(self.count)
            }
        };
        let state = u32::try_from(state).unwrap_or(0);
        let transcript = self.transcripts.get(&state).copied().unwrap_or_default();
        let text =
            TextKey { set, text: state.wrapping_add(transcript.ended.wrapping_mul(self.count)) };
        let versions = texts.versions(text);
        let next = match transcript.version + 1 {
            version if version < versions => Transcript { version, ..transcript },
            _ => Transcript { ended: transcript.ended + 1, version: 0 },
        };
        if texts.grows(set) {
            self.transcripts.insert(state, next);
        }
        (text, transcript.version)
    }
}

/// Numbers of sets, kinds, tenants and questions are bounded far below 65,536 by the rules.
fn narrow(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
