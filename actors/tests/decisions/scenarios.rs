//! Goal: what runs in which step, readable by a human. Method: each file in `scenarios/` is a list
//! of commands, `----`, and the steps that they lead to; the real actors run them in virtual time.
//! `UPDATE=1 cargo test -p actors --test decisions scenario` writes the steps anew.
//!
//! Commands: `config NAME VALUE`; `limit TENANT [weight=N] [reads=N] [share=X] [tokens=N]` (a minute); `at TIME submit NAME state=NAME:TOKENS suffix=TOKENS[xREADS]
//! [lane=LANE] [tenant=NAME] [cancel=TIME] [drop]`; `at TIME prewarm state=NAME:TOKENS [lane=LANE]`.
//! A step is printed as `TIME chunks STATE[from..to] rows NAME.. tokens`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actors::{
    Config, DecisionId, DecisionMeta, Handle, Lane, Prefix, PrewarmSpec, ReadError, ReadSpec,
    Register, SegmentKey, StepLogEntry, TenantId, TenantLimits, start,
};
use tokio::time::{sleep, timeout};

use crate::fake::{FakeEngine, accounted, expected, meta, prefix, spec};
use crate::support::prewarm as prewarm_spec;

/// What the names of a scenario stand for.
#[derive(Default)]
struct Names {
    states: Vec<String>,
    keys: BTreeMap<SegmentKey, String>,
    decisions: Mutex<BTreeMap<DecisionId, String>>,
}

/// One line of a scenario, as words.
struct Line<'a>(Vec<&'a str>);

impl<'a> Line<'a> {
    fn value(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    fn at(&self) -> Duration {
        millis(self.0[1])
    }

    fn lane(&self) -> Lane {
        self.value("lane").map_or(Lane::Normal, |lane| lane.parse().unwrap())
    }

    fn prefix(&self, names: &mut Names) -> Prefix {
        let (name, tokens) = self.value("state").unwrap().split_once(':').unwrap();
        let position = names.states.iter().position(|known| known == name);
        let number = position.unwrap_or_else(|| {
            names.states.push(name.to_owned());
            names.states.len() - 1
        });
        let prefix = prefix(1, u32::try_from(number).unwrap(), tokens.parse().unwrap());
        names.keys.insert(prefix.state.key, name.to_owned());
        names.keys.insert(prefix.head.key, "head".to_owned());
        prefix
    }

    fn limits(&self) -> TenantLimits {
        let number = |name| self.value(name).map(|value| value.parse::<u32>().unwrap());
        TenantLimits {
            weight: number("weight").unwrap_or(1),
            reads_max: number("reads").map(|reads| reads as usize),
            queue_share: self.value("share").map_or(1.0, |share| share.parse().unwrap()),
            tokens_per_minute: number("tokens").map(u64::from),
            ..TenantLimits::default()
        }
    }

    fn reads(&self, seed: u32) -> Vec<ReadSpec> {
        let suffix = self.value("suffix").unwrap();
        let (tokens, count) = suffix.split_once('x').unwrap_or((suffix, "1"));
        let (tokens, count): (u32, u32) = (tokens.parse().unwrap(), count.parse().unwrap());
        (0..count).map(|read| spec(seed * 100 + read, tokens)).collect()
    }
}

fn millis(text: &str) -> Duration {
    Duration::from_millis(text.strip_suffix("ms").unwrap().parse().unwrap())
}

fn configure(config: &mut Config, name: &str, value: &str) {
    match name {
        "kv_bytes" => config.cache.kv_bytes = value.parse().unwrap(),
        "step_tokens" => config.scheduler.step_tokens_max = value.parse().unwrap(),
        "rows" => config.scheduler.rows_max = value.parse().unwrap(),
        "reads" => config.scheduler.reads_max = value.parse().unwrap(),
        "wait_urgent" => config.scheduler.wait_urgent = millis(value),
        "wait_normal" => config.scheduler.wait_normal = millis(value),
        "raise_after" => config.scheduler.order.raise_after = millis(value),
        "age_max" => config.scheduler.order.age_max = millis(value),
        "oldest_every" => config.scheduler.order.oldest_every = value.parse().unwrap(),
        "quantum" => config.scheduler.order.quantum_tokens = value.parse().unwrap(),
        "register" if value == "off" => config.registration.when = Register::Off,
        "register" => config.registration.when = Register::After,
        _ => panic!("no setting {name}"),
    }
}

/// What one `submit` line does.
struct Submit {
    at: Duration,
    name: String,
    tenant: TenantId,
    prefix: Prefix,
    lane: Lane,
    reads: Vec<ReadSpec>,
    cancel: Option<Duration>,
    responds: bool,
}

async fn submit(handle: Handle, what: Submit, names: Arc<Names>) -> String {
    sleep(what.at).await;
    let tenant = what.tenant;
    let meta = DecisionMeta { tenant, ..meta(&what.prefix, what.lane, what.reads.len()) };
    let mut decision = match handle.open(meta) {
        Ok(decision) => decision,
        Err(refused) => return format!("{} {refused}", what.name),
    };
    names.decisions.lock().unwrap().insert(decision.id(), what.name.clone());
    let patience = what.cancel.map_or(Duration::MAX, |cancel| cancel.saturating_sub(what.at));
    let read = timeout(patience, decision.read(what.reads.clone())).await;
    let Ok(outcomes) = read else {
        return format!("{} cancelled", what.name);
    };
    let outcomes: Result<Vec<_>, ReadError> = outcomes.unwrap().into_iter().collect();
    let outcomes = match outcomes {
        Ok(outcomes) => outcomes,
        Err(error) => return format!("{} {error}", what.name),
    };
    for (outcome, spec) in outcomes.iter().zip(&what.reads) {
        assert_eq!(outcome.row, expected(&what.prefix, spec));
    }
    if what.responds {
        decision.responded();
    }
    let computed: u32 = outcomes.iter().map(|outcome| outcome.computed_tokens).sum();
    let cached: u32 = outcomes.iter().map(|outcome| outcome.cached_tokens).sum();
    let took = outcomes.iter().map(accounted).max().unwrap();
    format!("{} computed={computed} cached={cached} took={}ms", what.name, took.as_millis())
}

async fn prewarm(handle: Handle, at: Duration, prefix: Prefix, lane: Lane) -> String {
    sleep(at).await;
    let spec = PrewarmSpec { lane, ..prewarm_spec(&prefix, true) };
    let outcome = handle.prewarm(spec).await.unwrap();
    format!("prewarm reused={} stored={}", outcome.reused, outcome.stored)
}

fn step_line(step: &StepLogEntry, names: &Names) -> String {
    let decisions = names.decisions.lock().unwrap();
    let mut line = "step".to_owned();
    for chunk in &step.chunks {
        let (name, end) = (&names.keys[&chunk.key], chunk.from + chunk.tokens);
        write!(line, " {name}[{}..{end}]", chunk.from).unwrap();
    }
    for row in &step.rows {
        let askers: Vec<_> = row
            .iter()
            .map(|read| format!("{}.{}", decisions[&read.decision], read.index))
            .collect();
        write!(line, " {}", askers.join("=")).unwrap();
    }
    write!(line, " tokens={}", step.tokens).unwrap();
    line
}

async fn play(text: &str) -> String {
    let mut config = Config::default();
    config.cache.kv_bytes = 100_000;
    let mut names = Names::default();
    let mut limits = BTreeMap::new();
    let (mut submits, mut prewarms) = (Vec::new(), Vec::new());
    let commands = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    for (seed, line) in (0..).zip(commands) {
        let line = Line(line.split_whitespace().collect());
        match line.0[..] {
            ["config", name, value] => configure(&mut config, name, value),
            ["limit", tenant, ..] => {
                limits.insert(TenantId(tenant.into()), line.limits());
            }
            ["at", _, "submit", name, ..] => submits.push(Submit {
                at: line.at(),
                name: name.to_owned(),
                tenant: TenantId(line.value("tenant").unwrap_or("t").into()),
                prefix: line.prefix(&mut names),
                lane: line.lane(),
                reads: line.reads(line.value("seed").map_or(seed, |seed| seed.parse().unwrap())),
                cancel: line.value("cancel").map(millis),
                responds: !line.0.contains(&"drop"),
            }),
            ["at", _, "prewarm", ..] => {
                prewarms.push((line.at(), line.prefix(&mut names), line.lane()));
            }
            _ => panic!("no command {:?}", line.0),
        }
    }
    let handle = start(Arc::new(FakeEngine::new()), config).await.unwrap();
    handle.limit(limits);
    let names = Arc::new(names);
    let mut tasks = Vec::new();
    for what in submits {
        tasks.push(tokio::spawn(submit(handle.clone(), what, Arc::clone(&names))));
    }
    for (at, prefix, lane) in prewarms {
        tasks.push(tokio::spawn(prewarm(handle.clone(), at, prefix, lane)));
    }
    let mut ends = Vec::new();
    for task in tasks {
        ends.push(task.await.unwrap());
    }
    sleep(Duration::from_secs(40)).await;
    let mut lines: Vec<_> = handle.step_log().iter().map(|step| step_line(step, &names)).collect();
    lines.extend(ends);
    lines.join("\n") + "\n"
}

#[tokio::test(start_paused = true)]
async fn every_scenario_runs_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert!(files.len() >= 6, "the scenarios are gone");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (commands, right) = text.split_once("----\n").unwrap();
        let given = play(commands).await;
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, format!("{commands}----\n{given}")).unwrap();
        } else {
            assert_eq!(given, right, "{}", file.display());
        }
    }
}
