//! What drivers needed for their answers, and how far these can be trusted.

use crate::exchange::Exchange;

/// Of all decisions that ended.
#[derive(Debug, Default)]
pub(crate) struct Readout {
    /// HTTP requests.
    pub(crate) parts: u64,
    /// Questions whose answers were read.
    pub(crate) answers_read: u64,
    /// Options that were not among the likeliest tokens, and whose probability is a bound.
    pub(crate) options_unseen: u64,
    /// Sum of the label masses of the decisions that have one.
    masses: f64,
    massed: u64,
}

impl Readout {
    pub(super) fn record(&mut self, exchange: &Exchange) {
        self.parts += u64::from(exchange.parts);
        self.answers_read += exchange.answers.as_ref().map_or(0, |answers| answers.len() as u64);
        let Some(reply) = &exchange.reply else { return };
        self.options_unseen += reply.options_unseen;
        if let Some(mass) = reply.label_mass {
            self.masses += mass;
            self.massed += 1;
        }
    }

    /// Mean probability of all options of a question together over the whole vocabulary; none where
    /// the driver does not know it.
    pub(crate) fn label_mass(&self) -> Option<f64> {
        (self.massed > 0).then(|| self.masses / self.massed as f64)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::exchange::{Outcome, Reply};

    #[test]
    fn the_label_mass_is_that_of_the_decisions_that_have_one() {
        let (now, mut readout) = (Instant::now(), Readout::default());
        assert_eq!(readout.label_mass(), None);
        for (parts, label_mass) in [(3, Some(0.5)), (2, None), (1, Some(1.0))] {
            let reply = Some(Reply { label_mass, options_unseen: 2, ..Reply::default() });
            let bare = Exchange::bare(Outcome::Answered, now, now);
            readout.record(&Exchange { reply, parts, ..bare });
        }
        readout.record(&Exchange::bare(Outcome::TimedOut, now, now));
        assert_eq!((readout.parts, readout.options_unseen), (7, 6));
        assert_eq!(readout.label_mass(), Some(0.75));
    }
}
