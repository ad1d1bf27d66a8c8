//! How far a download is: a bar on a terminal, a log line every few seconds elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

/// Time between two log lines.
const LINE_PERIOD: Duration = Duration::from_secs(5);

/// Where progress goes.
#[derive(Debug)]
pub enum Progress {
    /// Nowhere.
    Silent,
    /// A bar on the terminal.
    Bar(ProgressBar),
    /// Log lines.
    Lines(Lines),
}

/// The state of progress by log lines.
#[derive(Debug)]
pub struct Lines {
    what: String,
    total_bytes: Option<u64>,
    printed: Option<Instant>,
}

impl Progress {
    /// A bar when standard error is a terminal, else log lines.
    pub fn detect() -> Self {
        if std::io::stderr().is_terminal() {
            Self::Bar(ProgressBar::hidden())
        } else {
            Self::Lines(Lines { what: String::new(), total_bytes: None, printed: None })
        }
    }

    /// Begins a file of `total_bytes`, where that is known.
    pub fn start(&mut self, what: &str, total_bytes: Option<u64>) {
        match self {
            Self::Silent => {}
            Self::Bar(bar) => {
                bar.finish_and_clear();
                *bar = new_bar(what, total_bytes);
            }
            Self::Lines(lines) => {
                *lines = Lines { what: what.to_owned(), total_bytes, printed: None };
            }
        }
    }

    /// Says that `bytes` of the file are here.
    pub fn set_bytes(&mut self, bytes: u64) {
        match self {
            Self::Silent => {}
            Self::Bar(bar) => bar.set_position(bytes),
            Self::Lines(lines) => lines.set_bytes(bytes),
        }
    }

    /// Says something that is worth a line of its own.
    pub fn note(&self, message: &str) {
        match self {
            Self::Silent => {}
            Self::Bar(bar) => bar.suspend(|| tracing::info!("{message}")),
            Self::Lines(_) => tracing::info!("{message}"),
        }
    }

    /// Ends the file.
    pub fn finish(&mut self) {
        match self {
            Self::Bar(bar) => bar.finish_and_clear(),
            Self::Silent | Self::Lines(_) => {}
        }
    }
}

impl Lines {
    fn set_bytes(&mut self, bytes: u64) {
        if self.printed.is_some_and(|printed| printed.elapsed() < LINE_PERIOD) {
            return;
        }
        self.printed = Some(Instant::now());
        let (what, here) = (&self.what, HumanBytes(bytes));
        match self.total_bytes {
            Some(total) if total > 0 => {
                let percent = bytes.saturating_mul(100) / total;
                tracing::info!("{what}: {here} of {} ({percent} %)", HumanBytes(total));
            }
            _ => tracing::info!("{what}: {here}"),
        }
    }
}

fn new_bar(what: &str, total_bytes: Option<u64>) -> ProgressBar {
    let template = if total_bytes.is_some() {
        "{msg} {wide_bar} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left"
    } else {
        "{msg} {spinner} {bytes}, {binary_bytes_per_sec}"
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = total_bytes.map_or_else(ProgressBar::no_length, ProgressBar::new);
    bar.with_style(style).with_message(what.to_owned())
}
