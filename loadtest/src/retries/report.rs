//! Retries in the report.

use std::fmt::{self, Formatter};

use serde_json::{Map, Value, json};

use super::{Retries, Stop, Tally};
use crate::report::times_json;

impl Retries {
    /// A few lines for the table; none where nothing could have been sent again.
    pub(crate) fn write(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let all = &self.all;
        if all.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "retries: {} requests were sent again, {} times in all, when the server had said; {} \
             were answered at the first",
            all.requests, all.sent, all.first_answered
        )?;
        let stops = Stop::ALL.map(|stop| format!("{} {}", all.stops[stop as usize], stop.as_str()));
        writeln!(out, "  refused for good: {}", stops.join(", "))?;
        for (reason, tally) in &self.reasons {
            row(out, reason, tally)?;
        }
        Ok(())
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        let mut all = tally(&self.all);
        let reasons: Map<_, _> =
            self.reasons.iter().map(|(reason, of)| (reason.clone(), tally(of))).collect();
        all["reasons"] = reasons.into();
        all
    }
}

fn row(out: &mut Formatter<'_>, reason: &str, tally: &Tally) -> fmt::Result {
    let Tally { requests, sent, named, admitted_after, .. } = tally;
    let honest = tally.honesty().map_or("-".to_owned(), |share| format!("{:.1}", share * 100.0));
    writeln!(
        out,
        "  {reason}: {requests} sent again, {sent} times, {honest} % not refused again; wait \
         named p50 {:.0} ms, max {:.0} ms; let in after p50 {:.0} ms, max {:.0} ms",
        named.ms(0.5),
        named.ms(1.0),
        admitted_after.ms(0.5),
        admitted_after.ms(1.0)
    )
}

fn tally(tally: &Tally) -> Value {
    let stop = |stop: Stop| (stop.as_str().to_owned(), json!(tally.stops[stop as usize]));
    json!({
        "requests": tally.requests,
        "answered_at_first": tally.first_answered,
        "sent": tally.sent,
        "refused_again": tally.refused_again,
        "honesty": tally.honesty(),
        "refused_for_good": Stop::ALL.into_iter().map(stop).collect::<Map<_, _>>(),
        "named_ms": times_json(&tally.named),
        "admitted_after_ms": times_json(&tally.admitted_after),
    })
}
