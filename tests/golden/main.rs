//! Golden and invariance tests of the engines, on tiny seeded weights.
//!
//! Goal: the `cpu` engine computes the same function as candle-transformers' models, and a read's
//! numbers depend on nothing but its own prompt (ARCHITECTURE D6). Method: the same tensors go to
//! both; then one read is arranged in many ways and must come out with the same bits.

#[cfg(test)]
mod faults;
#[cfg(test)]
mod files;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod invariance;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod packed;
#[cfg(test)]
mod real;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod tensor_faults;
#[cfg(test)]
mod tensors;
#[cfg(test)]
mod tiny;
#[cfg(test)]
mod writers;
