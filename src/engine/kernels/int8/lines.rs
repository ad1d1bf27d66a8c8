//! Bytes that begin on a cache line, so that no vector of weights lies across two.

/// Length of a cache line and of the widest vector.
const LINE: usize = 64;

/// A fixed number of bytes, at first zero.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Up to a line longer than what is used.
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Lines {
    pub(super) fn zeros(len: usize) -> Self {
        let bytes = vec![0; len + LINE - 1];
        // An offset that cannot be had costs speed only.
        let start = bytes.as_ptr().align_offset(LINE).min(LINE - 1);
        Self { bytes, start, len }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}
