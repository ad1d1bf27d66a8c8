//! The user's own requests: a file with a System One body a line, sent in order, round and round.

mod line;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::decision::{Decision, Given, Question, State};
use super::draw::Planned;
use super::{Lane, Route, TextKey, Traffic, Workload};
use line::Line;

/// Most requests of a file.
pub(super) const LINES_MAX: usize = 100_000;
/// Most bytes of a file.
pub(super) const BYTES_MAX: u64 = 256 << 20;
/// Most tenants of a file: each has histograms.
pub(super) const TENANTS_MAX: usize = 64;
/// Most faults that are told of one file.
const FAULTS_SHOWN: usize = 10;
/// The tenant of lines that name none, where others do.
const UNNAMED: &str = "default";
/// A kind of request that is not drawn: what it does not say has the defaults of a workload's.
const TRAFFIC: &str = r#"
states = "requests"
questions = { count = [1, 1], kinds = { noul = 1 }, variants = 1 }
"#;

/// The requests of a file, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recorded(Vec<Recording>);

/// One of them.
#[derive(Debug, Clone, PartialEq)]
struct Recording {
    given: Rc<Given>,
    questions: Vec<Rc<Question>>,
    /// Number of its lane's kind of request.
    traffic: u16,
    /// Number of its tenant, where lines name tenants.
    tenant: Option<u16>,
    /// When it starts, microseconds from the beginning, where lines say that.
    at_us: Option<u64>,
}

/// The file at `path` as a workload: a kind of request a lane, a tenant a name.
///
/// # Errors
/// When it cannot be read, is over a limit, or lines are at fault; those are named.
pub(super) fn load(path: &str) -> anyhow::Result<Workload> {
    let file = std::fs::File::open(path).with_context(|| format!("--workload {path}"))?;
    let mut text = String::new();
    let bytes = file.take(BYTES_MAX + 1).read_to_string(&mut text);
    let bytes = bytes.with_context(|| format!("--workload {path}"))? as u64;
    ensure!(bytes <= BYTES_MAX, "{path} is over {BYTES_MAX} bytes");
    parse(path, &text)
}

fn parse(path: &str, text: &str) -> anyhow::Result<Workload> {
    let lines = lines(path, text)?;
    let timed = lines.iter().filter(|(_, line)| line.at_us.is_some()).count();
    for (number, line) in &lines {
        ensure!(
            timed == 0 || line.at_us.is_some(),
            "{path} line {number}: at is missing, which other lines have"
        );
    }
    if let Some(pair) = lines.windows(2).find(|pair| pair[1].1.at_us < pair[0].1.at_us) {
        bail!("{path} line {}: at must not be before that of the line above", pair[1].0);
    }
    let mut lanes: Vec<Option<Lane>> = lines.iter().map(|(_, line)| line.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let tenants = tenants(path, &lines)?;
    let names: Vec<&String> = tenants.keys().collect();
    let narrow = |place: usize| u16::try_from(place).unwrap_or(u16::MAX);
    let recording = |(_, line): (usize, Line)| {
        let tenant = line.tenant.as_deref().unwrap_or(UNNAMED);
        Recording {
            given: Rc::new(line.given),
            questions: line.questions.into_iter().map(Rc::new).collect(),
            traffic: narrow(lanes.iter().position(|lane| *lane == line.lane).unwrap_or(0)),
            tenant: names.iter().position(|name| *name == tenant).map(narrow),
            at_us: line.at_us,
        }
    };
    let recorded = Recorded(lines.into_iter().map(recording).collect());
    let about = format!("{} recorded requests", recorded.0.len());
    let kind = |lane: &Option<Lane>| Ok(Traffic { lane: *lane, ..toml::from_str(TRAFFIC)? });
    let traffic = lanes.iter().map(kind).collect::<anyhow::Result<_>>()?;
    let base: Workload = toml::from_str("about = \"\"\nstates = {}\ntraffic = []\n")?;
    Ok(Workload { about, traffic, tenants, recorded: Some(Rc::new(recorded)), ..base })
}

/// All lines with their numbers from 1, but the blank ones.
fn lines(path: &str, text: &str) -> anyhow::Result<Vec<(usize, Line)>> {
    let filled = || (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let count = filled().count();
    ensure!(count > 0, "{path} has no requests");
    ensure!(count <= LINES_MAX, "{path} has {count} requests, at most {LINES_MAX}");
    let (mut lines, mut faults) = (Vec::with_capacity(count), Vec::new());
    for (number, text) in filled() {
        match Line::parse(text) {
            Ok(line) => lines.push((number, line)),
            Err(fault) if faults.len() < FAULTS_SHOWN => {
                faults.push(format!("line {number}: {fault}"));
            }
            Err(_) => {}
        }
    }
    ensure!(faults.is_empty(), "{path} {}", faults.join("; "));
    Ok(lines)
}

/// The tenants that lines name, all of one share; none where no line names one.
fn tenants(path: &str, lines: &[(usize, Line)]) -> anyhow::Result<BTreeMap<String, f64>> {
    if lines.iter().all(|(_, line)| line.tenant.is_none()) {
        return Ok(BTreeMap::new());
    }
    let mut tenants = BTreeMap::new();
    for (number, line) in lines {
        tenants.insert(line.tenant.clone().unwrap_or_else(|| UNNAMED.to_owned()), 1.0);
        ensure!(
            tenants.len() <= TENANTS_MAX,
            "{path} line {number}: tenant is the {}th different one, at most {TENANTS_MAX}",
            tenants.len()
        );
    }
    Ok(tenants)
}

impl Recorded {
    /// The request that comes after `number` others; lines that name no tenant take turns among
    /// `tenants`.
    pub(super) fn planned(&self, number: u64, tenants: usize) -> Planned {
        let count = self.0.len().max(1) as u64;
        let place = number % count;
        let turn = number % tenants.max(1) as u64;
        let recording = &self.0[usize::try_from(place).unwrap_or(0)];
        Planned {
            route: Route::Decide,
            number,
            traffic: recording.traffic,
            tenant: recording.tenant.unwrap_or(u16::try_from(turn).unwrap_or(0)),
            text: TextKey { set: 0, text: u32::try_from(place).unwrap_or(0) },
            version: 0,
            questions: Box::default(),
            disconnects: false,
        }
    }

    /// What a planned request asks.
    pub(super) fn decision(&self, planned: &Planned) -> Decision {
        let recording = &self.0[planned.text.text as usize];
        let questions = match planned.route {
            Route::Decide => recording.questions.clone(),
            Route::Prewarm => Vec::new(),
        };
        Decision {
            state: State::given(Rc::clone(&recording.given)),
            questions,
            samples: None,
            given: Some(Rc::clone(&recording.given)),
        }
    }

    /// All questions.
    pub(super) fn questions(&self) -> impl Iterator<Item = &Question> {
        self.0.iter().flat_map(|recording| recording.questions.iter().map(Rc::as_ref))
    }

    /// When requests start, microseconds from the beginning, up to `duration`; none where lines do
    /// not say it.
    pub(crate) fn starts_us(&self, duration: Duration) -> Option<Vec<u64>> {
        let starts: Option<Vec<u64>> = self.0.iter().map(|recording| recording.at_us).collect();
        let end = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        starts.map(|starts| starts.into_iter().take_while(|at_us| *at_us < end).collect())
    }
}

#[cfg(test)]
mod tests;
