//! What goes wrong with the engine and the actors, drawn from a seed.

use actors::{ActorKind, EngineError};

use crate::fake::{FakeEngine, Fault};
use crate::workload::Dice;

/// Steps for which faults are drawn.
const STEPS: usize = 400;

/// Gives `engine` its faults; says whether it has any.
pub(crate) fn draw(dice: &mut Dice, engine: &FakeEngine, is_calm: bool) -> bool {
    if is_calm || dice.chance(40) {
        return false;
    }
    let percent = dice.one_of(&[1, 3, 20]);
    let mut faults = engine.faults.lock().unwrap();
    for _ in 0..STEPS {
        let fault = dice.chance(percent).then(|| match dice.below(40) {
            0 => Fault::Fail(EngineError::Dead("drawn".to_owned())),
            1 => Fault::Drop,
            2..20 => Fault::Fail(EngineError::OutOfMemory("drawn".to_owned())),
            20..26 => Fault::Nan,
            26..28 => Fault::Fail(EngineError::Unavailable("drawn".to_owned())),
            _ => Fault::Fail(EngineError::Forward("drawn".to_owned())),
        });
        faults.push_back(fault);
    }
    true
}

/// Has actors panic at some of their acts; more often than they are started again in a few seeds.
pub(crate) fn draw_losses(dice: &mut Dice, engine: &FakeEngine) {
    if dice.chance(70) {
        return;
    }
    let mut lost = engine.lost.lock().unwrap();
    for _ in 0..=dice.below(5) {
        lost.push((dice.one_of(&ActorKind::ALL), 1 + dice.below(60)));
    }
}
