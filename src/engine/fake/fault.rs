//! What goes wrong around the fake engine, and where.

use std::time::Duration;

use actors::{ActorKind, Chunk, PathPart, Row, Step};

use super::FakeSegment;

/// A fault and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// Where.
    pub place: Place,
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The forward pass panics.
    Panic,
    /// The forward pass returns an error.
    Error,
    /// A row's logits are not finite: of the step's first row, or of each that the place names.
    Nan,
    /// The step takes this much longer.
    Hang(Duration),
    /// There is not enough memory.
    OutOfMemory,
    /// An actor panics.
    Actor(ActorKind),
}

/// Where it goes wrong. Texts are looked for as bytes, which are the tokens of the fake engine's
/// tokenizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// At the step (or the act of an actor) of a number counted from 1, and from there on at each
    /// `every`-th; with `every` 0 only there.
    Nth {
        /// The first.
        first: u64,
        /// The distance to the next.
        every: u64,
    },
    /// In steps with a row whose own text has this.
    Row(String),
    /// In steps that compute a piece of a state with this; rows are hit if their state has it.
    State(String),
    /// In steps of more than so many tokens.
    Over(u32),
}

impl Fault {
    /// Whether it hits step `number`.
    pub(super) fn hits_step(&self, number: u64, step: &Step<FakeSegment>) -> bool {
        match (&self.place, self.kind) {
            (_, FaultKind::Actor(_)) => false,
            (Place::Nth { first, every }, _) => is_nth(number, *first, *every),
            (Place::State(_) | Place::Row(_), FaultKind::Nan) => !self.rows_hit(step).is_empty(),
            (Place::Row(text), _) => step.rows.iter().any(|row| has(&row.suffix, text, 0)),
            (Place::State(text), _) => step.chunks.iter().any(|chunk| computes(step, chunk, text)),
            (Place::Over(tokens), _) => step.tokens() > *tokens,
        }
    }

    /// Rows of a step that it hits which are hit.
    pub(super) fn rows_hit(&self, step: &Step<FakeSegment>) -> Vec<usize> {
        let rows = step.rows.iter().enumerate();
        let is_hit = |(index, row): &(usize, &Row<FakeSegment>)| match &self.place {
            Place::Nth { .. } | Place::Over(_) => *index == 0,
            Place::Row(text) => has(&row.suffix, text, 0),
            Place::State(text) => has(&tokens_of(step, &row.path), text, 0),
        };
        rows.filter(is_hit).map(|(index, _)| index).collect()
    }

    /// Whether it hits act `number` of an actor.
    pub(super) fn hits_actor(&self, actor: ActorKind, number: u64) -> bool {
        let Place::Nth { first, every } = self.place else { return false };
        self.kind == FaultKind::Actor(actor) && is_nth(number, first, every)
    }
}

fn is_nth(number: u64, first: u64, every: u64) -> bool {
    let Some(after) = number.checked_sub(first) else { return false };
    after == 0 || every > 0 && after.is_multiple_of(every)
}

/// Whether `tokens` have `text`, ending behind the first `before` of them.
fn has(tokens: &[u32], text: &str, before: usize) -> bool {
    let is_text = |window: &[u32]| window.iter().copied().eq(text.bytes().map(u32::from));
    let mut windows = tokens.windows(text.len().max(1)).zip(text.len()..);
    windows.any(|(window, end)| end > before && is_text(window))
}

/// Whether `chunk` is where `text` in its state ends.
fn computes(step: &Step<FakeSegment>, chunk: &Chunk<FakeSegment>, text: &str) -> bool {
    let mut tokens = tokens_of(step, &chunk.path);
    let before = tokens.len();
    tokens.extend_from_slice(&chunk.tokens);
    has(&tokens, text, before)
}

fn tokens_of(step: &Step<FakeSegment>, path: &[PathPart<FakeSegment>]) -> Vec<u32> {
    let part = |part: &PathPart<FakeSegment>| match part {
        PathPart::Segment(segment) => segment.tokens.to_vec(),
        PathPart::Chunk(index) => step.chunks[*index].tokens.to_vec(),
    };
    path.iter().flat_map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use actors::Origin;

    use super::*;

    fn tokens(text: &str) -> Arc<[u32]> {
        text.bytes().map(u32::from).collect()
    }

    fn held(text: &str) -> PathPart<FakeSegment> {
        PathPart::Segment(FakeSegment { tokens: tokens(text) })
    }

    fn row(path: Vec<PathPart<FakeSegment>>) -> Row<FakeSegment> {
        Row {
            origin: Origin::NONE,
            path,
            suffix: tokens("?"),
            labels: [1].into(),
            want_hidden: false,
            want_mass: false,
        }
    }

    #[test]
    fn a_number_is_once_from_then_on_or_every_so_many() {
        let hit = |first, every| (1..=9).filter(|n| is_nth(*n, first, every)).collect::<Vec<_>>();
        assert_eq!(hit(3, 0), [3]);
        assert_eq!(hit(7, 1), [7, 8, 9]);
        assert_eq!(hit(2, 3), [2, 5, 8]);
    }

    #[test]
    fn a_state_is_hit_where_its_text_ends_and_not_again() {
        let fault = |kind| Fault { kind, place: Place::State("poison".to_owned()) };
        let chunk = |path, text| Chunk { origin: Origin::NONE, path, tokens: tokens(text) };
        let step = |chunks, rows| Step { id: 1, epoch: 0, chunks, rows };
        let first = step(vec![chunk(Vec::new(), "some poi")], Vec::new());
        let second = step(vec![chunk(vec![held("some poi")], "son, and")], Vec::new());
        let third = step(
            vec![chunk(vec![held("some poi"), held("son, and")], " more")],
            vec![row(vec![held("sound")]), row(vec![held("some poi"), held("son")])],
        );
        let panics = [&first, &second, &third].map(|s| fault(FaultKind::Panic).hits_step(1, s));
        assert_eq!(panics, [false, true, false]);
        let not_finite = fault(FaultKind::Nan);
        assert!(!not_finite.hits_step(1, &second) && not_finite.hits_step(1, &third));
        assert_eq!(not_finite.rows_hit(&third), [1]);
    }

    #[test]
    fn a_large_step_is_hit_and_a_small_one_is_not() {
        let fault = Fault { kind: FaultKind::OutOfMemory, place: Place::Over(2) };
        let step = |rows: usize| Step {
            id: 1,
            epoch: 0,
            chunks: Vec::new(),
            rows: vec![row(Vec::new()); rows],
        };
        assert!(!fault.hits_step(1, &step(2)) && fault.hits_step(1, &step(3)));
    }
}
