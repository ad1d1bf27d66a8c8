//! Live progress: one line on the terminal, redrawn twice a second while a run goes on.
//!
//! The figures are those that the measures hold at the moment. Writing is left to a thread, and a
//! line that finds it busy is left out, so that a slow terminal does not keep requests from
//! starting.

use std::collections::VecDeque;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::task::{JoinHandle as Task, spawn_local};
use tokio::time::interval;

use crate::client::Driver;
use crate::exchange::Outcome;
use crate::load::Load;
use crate::measure::{Measures, Stage};

/// Time between two lines on a terminal.
const EVERY: Duration = Duration::from_millis(500);
/// Lines of which one is written where it is no terminal: every five seconds.
const LINES_EACH: u32 = 10;
/// Lines over which the rate is taken: two seconds.
const RATE_LINES: usize = 4;
/// Columns where the terminal does not say how many it has.
const COLUMNS: usize = 80;

/// Whether progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// Where standard error is a terminal.
    OnTerminal,
    Always,
    Never,
}

/// Progress that is being shown.
#[derive(Debug)]
pub(crate) struct Progress {
    task: Task<()>,
    writer: JoinHandle<()>,
}

impl Progress {
    /// Starts to show a run; `duration` is how long requests start, where that is known.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start<D: Driver + 'static>(
        show: Show,
        load: &Rc<Load<D>>,
        duration: Option<Duration>,
    ) -> std::io::Result<Option<Self>> {
        let is_terminal = stderr().is_terminal();
        if show == Show::Never || (show == Show::OnTerminal && !is_terminal) {
            return Ok(None);
        }
        // One line waits at most: older ones are worth nothing.
        let (lines, written) = sync_channel(1);
        let writer = thread::Builder::new().name("progress".to_owned());
        let writer = writer.spawn(move || write(&written, is_terminal))?;
        let task = spawn_local(draw(Rc::clone(load), duration, lines, is_terminal));
        Ok(Some(Self { task, writer }))
    }

    /// Ends it, and leaves the terminal's line empty.
    pub(crate) async fn finish(self) {
        self.task.abort();
        // The lines' sender goes with the task.
        let _ = self.task.await;
        let _ = self.writer.join();
    }
}

async fn draw<D: Driver + 'static>(
    load: Rc<Load<D>>,
    duration: Option<Duration>,
    lines: SyncSender<String>,
    is_terminal: bool,
) {
    let (mut line, mut ticks, mut number) = (Line::new(duration), interval(EVERY), 0);
    loop {
        ticks.tick().await;
        let text = load.with(|measures, elapsed, warm_up| line.text(measures, elapsed, warm_up));
        number += 1;
        if is_terminal || number % LINES_EACH == 0 {
            // A writer that is busy misses this one.
            let _ = lines.try_send(text);
        }
    }
}

fn write(lines: &Receiver<String>, is_terminal: bool) {
    let mut out = stderr().lock();
    for line in lines {
        // A terminal that went away is no reason to stop the run.
        let _ = if is_terminal {
            let columns = rustix::termios::tcgetwinsize(stderr()).map_or(0, |size| size.ws_col);
            let columns = if columns > 1 { usize::from(columns) } else { COLUMNS };
            let line: String = line.chars().take(columns - 1).collect();
            write!(out, "\r{line}\x1b[K")
        } else {
            writeln!(out, "{line}")
        };
        let _ = out.flush();
    }
    if is_terminal {
        let _ = write!(out, "\r\x1b[K").and_then(|()| out.flush());
    }
}

/// What the line is made of.
#[derive(Debug)]
struct Line {
    duration: Option<Duration>,
    /// When lines were drawn, and what had been answered by then.
    answered: VecDeque<(Duration, u64)>,
}

impl Line {
    fn new(duration: Option<Duration>) -> Self {
        Self { duration, answered: VecDeque::from([(Duration::ZERO, 0)]) }
    }

    fn text(&mut self, measures: &Measures, elapsed: Duration, warm_up: Duration) -> String {
        let counts = &measures.all.counts;
        let answered = counts.of(Outcome::Answered);
        let rate = self.rate(elapsed, answered);
        let of =
            self.duration.map_or(String::new(), |whole| format!(" of {:.0}", whole.as_secs_f64()));
        let warm = if elapsed < warm_up { " warm-up" } else { "" };
        let latency = &measures.all.latency;
        let latency = (answered > 0)
            .then(|| format!(", p50 {:.1} p99 {:.1} ms", latency.ms(0.5), latency.ms(0.99)));
        let mean = |stage| measures.all.stages.mean_ms(stage);
        let waits = mean(Stage::Queue).zip(mean(Stage::EngineWait));
        let waits = waits
            .map(|(queue, engine)| format!(", mean wait: queue {queue:.1} engine {engine:.1} ms"));
        format!(
            "{:.1}{of} s{warm}, {} started, {answered} answered, {} refused, {} failed, \
             {rate:.0}/s{}{}",
            elapsed.as_secs_f64(),
            measures.started,
            counts.of(Outcome::Refused),
            counts.lost(),
            latency.unwrap_or_default(),
            waits.unwrap_or_default(),
        )
    }

    /// Answered requests a second over the last lines.
    fn rate(&mut self, elapsed: Duration, answered: u64) -> f64 {
        self.answered.push_back((elapsed, answered));
        while self.answered.len() > RATE_LINES + 1 {
            self.answered.pop_front();
        }
        let (from, before) = self.answered.front().copied().unwrap_or_default();
        let time_s = elapsed.saturating_sub(from).as_secs_f64();
        if time_s > 0.0 { answered.saturating_sub(before) as f64 / time_s } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::exchange::{Exchange, Reply, Stages};
    use crate::measure::Label;

    #[test]
    fn the_line_says_what_has_ended_so_far() {
        let (now, mut measures) = (Instant::now(), Measures::new(1));
        let ended = now + Duration::from_millis(12);
        let stages =
            Stages { queue_us: Some(3_000), engine_wait_us: Some(1_500), ..Stages::default() };
        let reply = Some(Reply { stages: Some(stages), ..Reply::default() });
        let answered = Exchange::bare(Outcome::Answered, now, ended);
        measures.record(Label::of(now), Exchange { reply, ..answered });
        for outcome in [Outcome::Refused, Outcome::TimedOut, Outcome::Failed] {
            measures.record(Label::of(now), Exchange::bare(outcome, now, ended));
        }
        measures.started = 6;
        let mut line = Line::new(Some(Duration::from_secs(30)));
        let text = line.text(&measures, Duration::from_millis(500), Duration::from_secs(1));
        assert_eq!(
            text,
            "0.5 of 30 s warm-up, 6 started, 1 answered, 1 refused, 2 failed, 2/s, \
             p50 12.0 p99 12.0 ms, mean wait: queue 3.0 engine 1.5 ms"
        );
    }

    #[test]
    fn nothing_is_claimed_of_latency_before_the_first_answer() {
        let text = Line::new(None).text(&Measures::new(1), Duration::ZERO, Duration::ZERO);
        assert_eq!(text, "0.0 s, 0 started, 0 answered, 0 refused, 0 failed, 0/s");
    }

    #[test]
    fn the_rate_is_that_of_the_last_two_seconds() {
        let mut line = Line::new(None);
        let rates = (1..=20).map(|half| {
            // 10 a second for five seconds, then 100 a second.
            let answered = if half <= 10 { half * 5 } else { 50 + (half - 10) * 50 };
            line.rate(EVERY * u32::try_from(half).unwrap(), answered)
        });
        let rates: Vec<f64> = rates.collect();
        assert_eq!((rates[8], rates[19]), (10.0, 100.0));
    }
}
