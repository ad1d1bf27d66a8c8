//! What makes a run's numbers doubtful: whatever in them is the generator's, or its machine's.

use super::{Loop, Report};

/// Lag of the 99th percentile above which the generator's own delay is no longer negligible, where it
/// is also over [`LAG_SHARE_MAX`] of the latency.
const LAG_MS_MAX: f64 = 1.0;
/// Share of the latency's 99th percentile.
const LAG_SHARE_MAX: f64 = 0.05;
/// Share of one core above which one thread is about to be too slow.
const CPU_SHARE_MAX: f64 = 0.8;
/// Share of the time without a processor above which connections may have run out for that.
const STARVED_SHARE_MAX: f64 = 0.2;
/// Load average for each core, before the run, above which the machine had other things to do.
const LOAD_PER_CORE_MAX: f64 = 2.0;

impl Report {
    /// Whether the numbers are the server's, in words; nothing where there is no doubt.
    pub(super) fn doubts(&self) -> Vec<String> {
        let mut doubts: Vec<String> = self.interrupted().into_iter().collect();
        doubts.extend(self.unprepared());
        match self.kind {
            Loop::Open { connections, .. } => doubts.extend(self.late(connections)),
            Loop::Closed { .. } => doubts.push(
                "closed loop: a server that stalls is asked less, so percentiles look better than \
                 users' (coordinated omission); use it for capacity"
                    .to_owned(),
            ),
        }
        doubts.extend(self.denied());
        doubts.extend(self.busy().into_iter().chain(self.disturbed()));
        doubts
    }

    /// That it did not go on as long as it was to; nothing where it did.
    pub(crate) fn interrupted(&self) -> Option<String> {
        let stopped = self.stopped?;
        let warm_up = match self.sent() {
            0 => ", before anything was measured",
            _ => "",
        };
        Some(format!("it was interrupted after {:.1} s{warm_up}", stopped.as_secs_f64()))
    }

    /// What made requests of an open loop late.
    fn late(&self, connections: u32) -> Vec<String> {
        let mut doubts = Vec::new();
        let waited = self.measures.connection_wait.count();
        if waited > 0 {
            let unsent = match self.measures.unsent {
                0 => String::new(),
                unsent => format!(", {unsent} of them until their clients gave up"),
            };
            doubts.push(format!(
                "{waited} requests found none of --connections {connections} free{unsent}: their wait \
                 is in the latency, but the server did not see it"
            ));
        }
        // Late starts are then charged to the connections, but it is the machine that has no time.
        let starved = self.starved_share();
        if waited > 0 && starved > STARVED_SHARE_MAX {
            doubts.push(format!(
                "the generator is the bottleneck, its machine is too busy: it waited {:.0} % of \
                 the time for a processor",
                starved * 100.0
            ));
        }
        let (lag_ms, latency_ms) = (self.measures.lag.ms(0.99), self.measures.all.latency.ms(0.99));
        if lag_ms > LAG_MS_MAX.max(LAG_SHARE_MAX * latency_ms) {
            doubts.push(format!(
                "the generator is the bottleneck, or its machine is too busy: its start lag p99 is \
                 {lag_ms:.2} ms, and the latency's {latency_ms:.2} ms"
            ));
        }
        doubts
    }

    /// Connections that failed for the number of them, and not for what was asked over them.
    fn denied(&self) -> Vec<String> {
        let denials = &self.measures.denials;
        let mut doubts = Vec::new();
        if denials.own > 0 {
            doubts.push(format!(
                "connection errors of the generator's own making: {}, as its machine had no more open \
                 files (ulimit -n) or ports for it",
                denials.own
            ));
        }
        let by_server = self.server.turned_away.filter(|count| *count > 0);
        let advice =
            "fewer --connections or --clients, or a higher --connections-per-address of docket";
        if let Some(count) = by_server {
            doubts.push(format!(
                "connection errors of the generator's own making: the server says that it closed \
                 {count} connections, as one address had too many: {advice}"
            ));
        } else if denials.closed > 0 {
            doubts.push(format!(
                "{} new connections were closed before anything came over them, with {} or more \
                 open: where the server is well, it lets one address have no more: {advice}",
                denials.closed, denials.open_min
            ));
        }
        doubts
    }

    fn unprepared(&self) -> Option<String> {
        self.unwarmed.then(|| {
            format!(
                "--driver {} cannot read a state ahead of its questions: states that the workload wants \
                 resident or prewarmed were not",
                self.driver.driver.as_str()
            )
        })
    }

    /// A run of this program just before counts too, as long as its load is in the average.
    fn disturbed(&self) -> Option<String> {
        let (load, cores) = (self.machine.load_before?, self.machine.cores?);
        (load > LOAD_PER_CORE_MAX * cores as f64).then(|| {
            format!(
                "the generator's machine was busy: its load average was {load:.2} before the run, on \
                 {cores} cores, be it with other work or with a run just before"
            )
        })
    }

    fn busy(&self) -> Option<String> {
        let share = self.cpu_share();
        (share > CPU_SHARE_MAX).then(|| {
            format!(
                "the generator is the bottleneck: it used {:.0} % of its one core, over {:.0} %",
                share * 100.0,
                CPU_SHARE_MAX * 100.0
            )
        })
    }
}
