//! Columns of weights on their way into panels, one panel at a time.
//!
//! What is read of a model file is packed while it is still in a cache, in a buffer that a thread
//! uses again for its next panel: a tensor is never held as a whole beside its packed form, and the
//! kernel need not map and clear memory for one.

use std::convert::Infallible;
use std::ops::Range;

use rayon::prelude::*;

use super::PANEL_COLUMNS;

/// Fills `columns` of a matrix whose panels these are, in parallel.
///
/// `read` appends some of the columns, counted from the first one, row-major `[columns, depth]`.
/// `pack` is given a panel, its lanes that are meant and what was read for them. Which thread takes
/// which panel changes nothing in them.
///
/// # Errors
/// One of those that `read` gave; some panels are filled then and others are not.
pub(super) fn fill<'a, T: Send + 'a, E: Send>(
    panels: impl IndexedParallelIterator<Item = &'a mut [T]>,
    columns: &Range<usize>,
    read: impl Fn(Range<usize>, &mut Vec<f32>) -> Result<(), E> + Sync,
    pack: impl Fn(&mut [T], Range<usize>, &[f32]) + Sync,
) -> Result<(), E> {
    let Range { start, end } = *columns;
    let meant = panels.enumerate().take(end.div_ceil(PANEL_COLUMNS)).skip(start / PANEL_COLUMNS);
    meant.try_for_each_init(Vec::new, |values, (panel, packed)| {
        let base = panel * PANEL_COLUMNS;
        let lanes = start.max(base)..end.min(base + PANEL_COLUMNS);
        values.clear();
        read(lanes.start - start..lanes.end - start, values)?;
        pack(packed, lanes.start - base..lanes.end - base, values);
        Ok(())
    })
}

/// What [`fill`] reads columns by where all of them are in memory.
pub(super) fn held(
    weights: &[f32],
    depth: usize,
) -> impl Fn(Range<usize>, &mut Vec<f32>) -> Result<(), Infallible> + Sync {
    move |columns, values| {
        values.extend_from_slice(&weights[columns.start * depth..columns.end * depth]);
        Ok(())
    }
}
