//! Connections that failed for the number of them.

use crate::exchange::Denied;

/// How many, by why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Denials {
    /// For want of files or ports on the generator's machine.
    pub(crate) own: u64,
    /// New ones that were closed before anything came over them.
    pub(crate) closed: u64,
    /// Fewest that were open when that happened.
    pub(crate) open_min: u32,
}

impl Denials {
    /// Counts one.
    pub(crate) fn add(&mut self, denied: Denied) {
        match denied {
            Denied::Own => self.own += 1,
            Denied::Closed { open } => {
                self.open_min = if self.closed == 0 { open } else { self.open_min.min(open) };
                self.closed += 1;
            }
        }
    }
}
