//! The report in one sentence or two: what was run, what came of it, and whether to believe it.

use super::{Loop, Report};
use crate::exchange::Outcome;

impl Report {
    /// What was run, in a few words.
    pub(crate) fn title(&self) -> String {
        let Self { workload, .. } = self;
        match self.kind {
            Loop::Open { rate, .. } => format!("{workload}, open loop at {rate}/s"),
            Loop::Closed { clients, .. } => format!("{workload}, closed loop of {clients} clients"),
        }
    }

    /// What came of it.
    pub(crate) fn verdict(&self) -> String {
        let (sent, answered) = (self.sent(), self.answered());
        if answered == 0 {
            let fault = self.measures.first_fault.as_ref().map(|fault| format!(": {fault}"));
            return format!("None of {sent} requests was answered{}.", fault.unwrap_or_default());
        }
        let (achieved, all) = (self.achieved_rate(), &self.measures.all);
        let (times, from, offered) = match self.kind {
            Loop::Open { .. } => {
                let offered = format!("Of {:.1} requests/s offered", self.offered_rate());
                (&all.latency, "their intended start", offered)
            }
            Loop::Closed { clients, .. } => {
                (&self.measures.service, "sending", format!("With {clients} clients"))
            }
        };
        let (p50, p99) = (time(times.ms(0.5)), time(times.ms(0.99)));
        let good = all.goodput().map(|good| format!("; {} within the limit", percent(good)));
        format!(
            "{offered}, {achieved:.1}/s were answered while requests started; half of all answers \
             came within {p50} and 99 % within {p99} of {from}{}. {}",
            good.unwrap_or_default(),
            self.losses()
        )
    }

    /// Whether the numbers are the server's.
    pub(crate) fn trust(&self) -> String {
        match self.doubts().as_slice() {
            [] => "The generator kept its times: the numbers are the server's.".to_owned(),
            doubts => format!("Read with care: {}.", doubts.join("; ")),
        }
    }

    fn losses(&self) -> String {
        let (sent, counts) = (self.sent().max(1) as f64, &self.measures.all.counts);
        let (refused, lost) = (counts.of(Outcome::Refused), counts.lost());
        if refused + lost == 0 {
            return "None was refused or failed.".to_owned();
        }
        let part = |count: u64, words: &str| {
            (count > 0).then(|| format!("{} {words}", percent(count as f64 / sent)))
        };
        let parts = [part(refused, "were refused"), part(lost, "failed or came too late")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let why = match self.measures.reason_words() {
            words if words.is_empty() => String::new(),
            words => format!(" (the server's reasons: {words})"),
        };
        format!("Of all that were sent, {}{why}.", parts.join(" and "))
    }
}

/// Milliseconds to three digits, in a unit that suits them.
pub(crate) fn time(ms: f64) -> String {
    let (value, unit) = if ms >= 1_000.0 { (ms / 1e3, "s") } else { (ms, "ms") };
    format!("{} {unit}", short(value))
}

/// A share as percent, to three digits but never rounded to all or nothing.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let is_near = |end: f64| (value - end).abs() < 0.051 && value.total_cmp(&end).is_ne();
    if is_near(100.0) {
        return "99.9 %".to_owned();
    }
    if is_near(0.0) {
        return "0.1 %".to_owned();
    }
    let digits = usize::from(value.fract().abs() > 1e-9);
    format!("{value:.digits$} %")
}

/// A number to three digits; thousands are written out.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size.total_cmp(&0.0).is_eq() => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_times_their_unit() {
        assert_eq!(
            [0.0, 0.0123, 4.126, 41.26, 4_126.0].map(short),
            ["0", "0.012", "4.13", "41.3", "4126"]
        );
        assert_eq!([4.126, 999.0, 4_126.0].map(time), ["4.13 ms", "999 ms", "4.13 s"]);
    }

    #[test]
    fn a_share_that_is_not_all_is_not_called_all() {
        let shares = [1.0, 0.9995, 0.9999, 0.5, 0.123, 0.0001, 0.0];
        assert_eq!(
            shares.map(percent),
            ["100 %", "99.9 %", "99.9 %", "50 %", "12.3 %", "0.1 %", "0 %"]
        );
    }
}
