//! The output head: label log-probabilities of the rows' last states over the whole vocabulary.
//!
//! The output matrix is walked in blocks of tokens, so that neither `[rows, vocabulary]` nor a second
//! copy of the matrix is ever held. Logits are `f32` whatever the weights are stored as: rounding
//! them to `bf16` would cost more than all rounding before.

use actors::{EngineError, Row, RowOutcome};
use candle_core::{D, DType, Tensor};

use super::decoder::{Norm, multiply};
use super::plan::to_rows;
use super::segment::TensorSegment;
use crate::engine::model::{Scale, read_row};

/// Most numbers of one block of logits, and of one block of weights as `f32`: 128 MiB each.
pub(super) const NUMBERS_MAX: usize = 1 << 25;

/// The final norm and the output matrix.
#[derive(Debug)]
pub(super) struct TensorHead {
    pub(super) norm: Norm,
    /// `[vocab, hidden]`.
    pub(super) weights: Tensor,
    /// Whether only label rows of the matrix are read, but for rows that want the label mass: no
    /// log-sum-exp, no label mass.
    pub(super) labels_only: bool,
}

/// What is kept of each block of the vocabulary, on the device: `[rows]` each.
#[derive(Debug, Default)]
struct Sums {
    /// The largest logit.
    highest: Vec<Tensor>,
    /// Its token, counted from the block's first.
    best: Vec<Tensor>,
    /// Sum of `exp(logit - highest)`.
    weight: Vec<Tensor>,
    /// First token of each block.
    firsts: Vec<usize>,
}

impl TensorHead {
    /// Reads all rows; `states` is `[rows, hidden]` in `f32`, not normed yet. There is a row.
    pub(super) fn read(
        &self,
        rows: &[Row<TensorSegment>],
        states: &Tensor,
    ) -> candle_core::Result<Vec<Result<RowOutcome, EngineError>>> {
        let states = self.norm.apply(states)?;
        let block = (NUMBERS_MAX / rows.len().max(states.dims()[1])).max(1);
        let logits = self.label_logits(rows, &states, block)?;
        let is_whole = |row: &Row<TensorSegment>| !self.labels_only || row.want_mass;
        let scales = rows.iter().any(is_whole).then(|| self.scales(&states, block)).transpose()?;
        let scale = |row: usize| scales.as_ref().filter(|_| is_whole(&rows[row])).map(|s| &s[row]);
        let parts = rows.iter().zip(&logits).zip(to_rows(&states)?).enumerate();
        Ok(parts
            .map(|(at, ((row, logits), state))| {
                read_row(row, logits, scale(at), &state).map(within_one)
            })
            .collect())
    }

    /// Logits of each row's labels, in the row's order.
    fn label_logits(
        &self,
        rows: &[Row<TensorSegment>],
        states: &Tensor,
        block: usize,
    ) -> candle_core::Result<Vec<Vec<f32>>> {
        let places = places(rows);
        let mut tokens: Vec<u32> = places.iter().map(|place| place.token).collect();
        tokens.dedup();
        let mut found: Vec<Vec<f32>> =
            rows.iter().map(|row| vec![f32::NAN; row.labels.len()]).collect();
        for tokens in tokens.chunks(block) {
            let indices = Tensor::new(tokens, states.device())?;
            let weights = self.weights.index_select(&indices, 0)?.to_dtype(DType::F32)?;
            let logits = to_rows(&multiply(states, &weights)?)?;
            let column = |place: &Place| tokens.binary_search(&place.token).ok();
            let placed = places.iter().filter_map(|place| Some((place, column(place)?)));
            for (place, column) in placed {
                found[place.row][place.label] = logits[place.row][column];
            }
        }
        Ok(found)
    }

    /// What each row's logits are measured against.
    fn scales(&self, states: &Tensor, block: usize) -> candle_core::Result<Vec<Scale>> {
        let vocab = self.weights.dims()[0];
        let mut sums = Sums::default();
        for first in (0..vocab).step_by(block) {
            let weights = self.weights.narrow(0, first, block.min(vocab - first))?;
            let logits = multiply(states, &weights.to_dtype(DType::F32)?)?;
            sums.add(first, &logits)?;
        }
        sums.scales()
    }
}

impl Sums {
    fn add(&mut self, first: usize, logits: &Tensor) -> candle_core::Result<()> {
        let highest = logits.max_keepdim(D::Minus1)?;
        let weights = logits.broadcast_sub(&highest)?.exp()?;
        self.weight.push(weights.sum(D::Minus1)?);
        self.best.push(logits.argmax(D::Minus1)?);
        self.highest.push(highest.squeeze(D::Minus1)?);
        self.firsts.push(first);
        Ok(())
    }

    /// Joins the blocks of each row.
    fn scales(&self) -> candle_core::Result<Vec<Scale>> {
        let highest: Vec<Vec<f32>> = Tensor::stack(&self.highest, 0)?.to_vec2()?;
        let best: Vec<Vec<u32>> = Tensor::stack(&self.best, 0)?.to_vec2()?;
        let weight: Vec<Vec<f32>> = Tensor::stack(&self.weight, 0)?.to_vec2()?;
        let rows = highest.first().map_or(0, Vec::len);
        Ok((0..rows).map(|row| self.scale(row, &highest, &best, &weight)).collect())
    }

    fn scale(
        &self,
        row: usize,
        highest: &[Vec<f32>],
        best: &[Vec<u32>],
        weight: &[Vec<f32>],
    ) -> Scale {
        let peak = highest.iter().map(|block| f64::from(block[row])).fold(f64::MIN, f64::max);
        let part = |(block, highest): (&Vec<f32>, &Vec<f32>)| {
            f64::from(block[row]) * (f64::from(highest[row]) - peak).exp()
        };
        let sum: f64 = weight.iter().zip(highest).map(part).sum();
        let at = highest.iter().position(|block| f64::from(block[row]) >= peak);
        let best = at.map_or(0, |block| self.firsts[block] + best[block][row] as usize);
        Scale { log_sum: peak + sum.ln(), best }
    }
}

/// Where a label's logit goes.
#[derive(Debug)]
struct Place {
    token: u32,
    row: usize,
    /// Its number among the row's labels.
    label: usize,
}

/// All labels of all rows, by token.
fn places(rows: &[Row<TensorSegment>]) -> Vec<Place> {
    let of_row = |(row, read): (usize, &Row<TensorSegment>)| {
        let labels = read.labels.iter().copied().enumerate();
        labels.map(move |(label, token)| Place { token, row, label }).collect::<Vec<_>>()
    };
    let mut places: Vec<Place> = rows.iter().enumerate().flat_map(of_row).collect();
    places.sort_by_key(|place| place.token);
    places
}

/// Label logits and those of the vocabulary come from products of different sizes, whose last bits
/// may differ: no probability comes out above 1 by that.
fn within_one(mut outcome: RowOutcome) -> RowOutcome {
    for logprob in outcome.logprobs.iter_mut().chain(&mut outcome.log_mass) {
        *logprob = logprob.min(0.0);
    }
    outcome
}
