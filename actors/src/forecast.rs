//! What would become of a decision that were sent now, without anything being queued or counted.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::ReadError;
use crate::handle::DecisionMeta;
use crate::links::{Shared, time_left};
use crate::plan::admit::{Newcomer, admit, wait};

/// What would become of a decision now.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Tokens of its prefix that are resident.
    pub prefix_resident: u64,
    /// Tokens of its prefix that nobody has computed or is about to.
    pub prefix_missing: u64,
    /// What it would wait for what is ahead of it, at the measured speed; zero where none is known.
    pub wait: Duration,
    /// Tokens a second that the engine ran of late; 0 where none are known.
    pub tokens_per_second: f64,
    /// Why it would be refused, if it would.
    pub refused: Option<ReadError>,
}

impl Shared {
    /// Looks at the published views only; takes no lock for longer than a look-up.
    pub(crate) fn forecast(&self, meta: &DecisionMeta) -> Forecast {
        let found = self.tenants.found(&meta.tenant, Instant::now());
        let backlog = self.backlog(self.entering(), found);
        let (missing, prefix_missing) = (self.missing(&meta.prefix), self.unexpected(&meta.prefix));
        let newcomer = Newcomer {
            lane: meta.lane,
            reads: meta.first_reads.max(1),
            tokens: meta.first_tokens.saturating_add(prefix_missing),
            time_left: time_left(meta.deadline, meta.deadline_is_asked),
            gives_way: self.gives_way(meta),
        };
        let entered = |()| {
            let admitted = admit(backlog, newcomer, &self.config.scheduler);
            admitted.map(|_| ()).map_err(ReadError::Rejected)
        };
        let fits = self.closed().and_then(|()| self.fits(&meta.prefix, meta.suffix_tokens_max));
        Forecast {
            prefix_resident: u64::from(meta.prefix.tokens()).saturating_sub(missing),
            prefix_missing,
            wait: wait(backlog, meta.lane),
            tokens_per_second: backlog.tokens_per_second,
            refused: fits.and_then(entered).err(),
        }
    }
}
