//! A process that is killed: at most a second of what it counted is lost, and nothing is counted
//! twice.
//!
//! Goal: the promise of docs/OPERATIONS.md, "Usage". Method: this test starts itself as a child that
//! counts one request at a time and says each before it counts it, kills it at a random time, reads
//! the store, and starts the next one on the same store. `DOCKET_TEST_KILLS` sets how many (3).

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use actors::TenantId;
use tempfile::TempDir;

use crate::usage::{Counts, FLUSH_EVERY, Meter};

/// The folder in which the child counts; without it the child's test is none.
const FOLDER: &str = "DOCKET_TEST_USAGE_FOLDER";

/// What one request counts.
const ONE: Counts = Counts {
    requests: 1,
    answered: 1,
    refused: 0,
    failed: 0,
    questions: 2,
    reads: 3,
    computed_tokens: 100,
    cached_tokens: 50,
    images: 0,
};

/// Time between two requests of the child.
const PACE: Duration = Duration::from_millis(1);

/// The longest that a process may forget.
const LOST_MAX: Duration = Duration::from_secs(1);

#[test]
fn the_child_counts_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let meter = Meter::open(Path::new(&folder)).unwrap();
    let tenants = ["a", "a/x"].map(|name| TenantId(name.into()));
    let mut out = std::io::stdout();
    for number in 1.. {
        let status = meter.status();
        writeln!(out, "\nkill {number} {} {}", status.flushes, status.took.as_millis()).unwrap();
        out.flush().unwrap();
        meter.add(&tenants[number % 2], ONE);
        std::thread::park_timeout(PACE);
    }
}

/// What the child said: that it was about to count its `number`th request, after how many flushes,
/// and how long the slowest of them took.
#[derive(Debug, Clone, Copy)]
struct Said {
    number: u64,
    flushes: u64,
    took: Duration,
    at: Instant,
}

fn parse(line: &str, at: Instant) -> Option<Said> {
    let mut words = line.strip_prefix("kill ")?.split(' ').map(|word| word.parse::<u64>().ok());
    let mut next = || words.next().flatten();
    let (number, flushes, took) = (next()?, next()?, next()?);
    Some(Said { number, flushes, took: Duration::from_millis(took), at })
}

fn child(folder: &Path) -> (Child, Receiver<Said>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "usage::tests::killed::the_child_counts_until_it_is_killed"])
        .args(["--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for said in lines.map_while(Result::ok).filter_map(|line| parse(&line, Instant::now())) {
            let _ = sender.send(said);
        }
    });
    (child, receiver)
}

/// Requests that the store has; all its counts must be those of as many requests.
fn counted(folder: &Path) -> u64 {
    let now = SystemTime::now();
    let all = Meter::read(folder).unwrap().usage_of_all(400, now);
    let requests = all.total.requests;
    let whole = ONE.to_array().map(|count| count * requests);
    assert_eq!((all.total.to_array(), all.recent.to_array()), (whole, whole), "half a request");
    requests
}

/// Lets a child count, kills it after a time, and returns what was lost: of how many requests, and
/// how old the oldest of them was.
fn kill(folder: &Path, after: Duration, before: u64) -> (u64, Duration) {
    let (mut child, receiver) = child(folder);
    let mut said = vec![receiver.recv_timeout(Duration::from_mins(1)).expect("it counts")];
    let end = Instant::now() + after;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        said.extend(receiver.recv_timeout(left));
    }
    let killed_at = Instant::now();
    child.kill().unwrap();
    child.wait().unwrap();
    said.extend(receiver.iter());
    let counted = counted(folder) - before;
    let last = said.last().unwrap();
    assert!(counted <= last.number, "{counted} counted, {} done", last.number);
    // What it counted before it said that a flush had ended, up to the one before that.
    let flushed = said.iter().take_while(|one| one.flushes + 1 < last.flushes);
    let flushed = flushed.last().map_or(0, |one| one.number);
    assert!(counted >= flushed, "{counted} counted, {flushed} written");
    // Number `counted + 1` is the oldest that was lost; it was done when the next one was said.
    let oldest = said.iter().find(|one| one.number == counted + 2);
    let age = oldest.map_or(Duration::ZERO, |one| killed_at.saturating_duration_since(one.at));
    // A disk that is slower than a machine in use has any right to be is not what is tested.
    let slowest = said.iter().map(|one| one.took).max().unwrap_or_default();
    let allowed = LOST_MAX + slowest.saturating_sub(LOST_MAX.saturating_sub(FLUSH_EVERY) / 2);
    assert!(age <= allowed, "lost a request {age:?} old; the slowest flush took {slowest:?}");
    (last.number.saturating_sub(counted), age)
}

#[test]
fn a_killed_process_loses_a_second_at_most_and_counts_nothing_twice() {
    let folder = TempDir::new().unwrap();
    let kills = std::env::var_os("DOCKET_TEST_KILLS");
    let kills = kills.map_or(3, |kills| kills.to_str().unwrap().parse().unwrap());
    let (mut before, mut worst) = (0, Duration::ZERO);
    for number in 0..kills {
        // Spread over two flushes and what lies between them, the first one of them included.
        let after = Duration::from_millis(20 + (number * 619 + 1_100) % 1_900);
        let (lost, age) = kill(folder.path(), after, before);
        before = counted(folder.path());
        worst = worst.max(age);
        println!("killed after {after:?}: {before} counted, {lost} lost, the oldest {age:?} old");
    }
    println!("worst: {worst:?}");
    assert!(before > 0);
}
