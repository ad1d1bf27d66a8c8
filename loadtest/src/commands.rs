//! The commands: from what was typed to a report.

use std::time::Duration;

use anyhow::{bail, ensure};
use rustix::time::{ClockId, clock_gettime};

use crate::arrivals::{Arrivals, Pattern, Schedule};
use crate::cli::{Closed, Common, Knee, Open, Reporting, Smoke, Starting};
use crate::client::{Client, Target};
use crate::files;
use crate::interrupt::Interrupt;
use crate::knee::{self, Aim, Step};
use crate::load::{self, Load, Until};
use crate::observe::Observation;
use crate::pacer::Pacer;
use crate::report::{Loop, Report, Sweep};
use crate::workload::{Requests, Workload};

/// How long a closed loop runs where nothing says.
const DURATION_DEFAULT: Duration = Duration::from_secs(30);

/// How many requests a smoke test sends where nothing says.
const SMOKE_REQUESTS: u64 = 64;

/// The open loop.
///
/// # Errors
/// When the workload, the schedule or the server's address cannot be used.
pub(crate) async fn open(open: &Open, interrupt: &Interrupt) -> anyhow::Result<Report> {
    run_open(open, workload(&open.common, &open.starting)?, interrupt).await
}

/// An open loop of a workload that has been read.
async fn run_open(
    open: &Open,
    workload: Workload,
    interrupt: &Interrupt,
) -> anyhow::Result<Report> {
    let Open { common, starting, .. } = open;
    let connections = starting.connections;
    files::make_room("--connections", connections, common.driver.connections_each())?;
    let (pattern, burst) = (pattern(starting, &workload), workload.burst);
    let (client, mut requests) = prepare(common, workload).await?;
    let (rate, duration, seed) = (open.rate, open.duration, common.seed);
    let recorded = requests.workload().recorded.as_ref().filter(|_| starting.arrivals.is_none());
    let starts_us = recorded.and_then(|all| all.starts_us(duration.unwrap_or(Duration::MAX)));
    let (arrivals, schedule) = if let Some(starts_us) = starts_us {
        ("recorded".to_owned(), Schedule::of(starts_us, duration))
    } else {
        let told = pattern.to_string();
        (told, Arrivals { pattern, rate, burst, duration, seed }.schedule()?)
    };
    let (rate, duration, warm_up) = (schedule.rate, schedule.duration, common.warm_up);
    ensure!(warm_up < duration, "--warm-up {warm_up:?} must be below --duration {duration:?}");
    let plan = load::plan(&mut requests, &schedule.starts_us);
    let mut report = report(common, &requests, Loop::Open { rate, duration, connections })?;
    report.arrivals = arrivals;

    let load = Load::new(client, requests, warm_up);
    let _ending = interrupt.ends(&load)?;
    load.make_resident().await?;
    let observation = Observation::begin(&open.common, &load, Some(duration)).await?;
    let (cpu, starved) = (cpu_time(), starved_time());
    load.open(plan, duration, connections, Pacer::precise()?).await?;
    report.cpu = cpu_time().saturating_sub(cpu);
    report.starved = starved_time().saturating_sub(starved);
    observation.end(&mut report).await;
    (report.measures, report.load, report.whole) = load.finish();
    report.retries = load.retries();
    report.stopped = load.stopped();
    Ok(report)
}

/// The search for the highest rate that holds.
///
/// # Errors
/// When the workload has no limits, or a step cannot run.
pub(crate) async fn knee(knee: &Knee, interrupt: &Interrupt) -> anyhow::Result<Sweep> {
    let workload = workload(&knee.common, &knee.starting)?;
    let Knee { from, goodput, precision, duration, pause, .. } = *knee;
    let Common { warm_up, seed, .. } = knee.common;
    let Some(limit) = workload.limit_longest() else {
        bail!(
            "workload {} has no limit_ms, so that nothing in it is too late; --limit 500ms gives \
             every kind of request one",
            knee.common.workload
        )
    };
    ensure!(
        !matches!(pattern(&knee.starting, &workload), Pattern::Trace { .. }),
        "a trace has its own rate: knee needs --arrivals of another kind"
    );
    let burst = workload.burst;
    let aim = Aim { from, goodput, precision, burst, duration, warm_up, pause, seed };
    let step = async |Step { rate, seed }| {
        let common = Common { seed, ..knee.common.clone() };
        let starting = knee.starting.clone();
        let open = Open { common, starting, rate: Some(rate), duration: Some(duration) };
        run_open(&open, workload.clone(), interrupt).await
    };
    let mut sweep = knee::search(&aim, interrupt.clone(), step).await?;
    if limit * 2 > duration.saturating_sub(warm_up) {
        sweep.notes.push(format!(
            "the longest limit, {limit:?}, is over half of what a step measures: a queue that \
             grows too slowly to reach it in time goes unseen; lengthen --duration"
        ));
    }
    Ok(sweep)
}

/// The closed loop.
///
/// # Errors
/// When the workload or the server's address cannot be used.
pub(crate) async fn closed(closed: &Closed, interrupt: &Interrupt) -> anyhow::Result<Report> {
    let each = closed.common.driver.connections_each();
    files::make_room("--clients", closed.clients, each)?;
    let workload = Workload::load(&closed.common.workload)?;
    let (client, requests) = prepare(&closed.common, workload).await?;
    let neither = closed.requests.is_none() && closed.duration.is_none();
    let duration = if neither { Some(DURATION_DEFAULT) } else { closed.duration };
    let until = Until { requests: closed.requests, duration };
    let kind = Loop::Closed { clients: closed.clients, until };
    let mut report = report(&closed.common, &requests, kind)?;

    let load = Load::new(client, requests, closed.common.warm_up);
    let _ending = interrupt.ends(&load)?;
    load.make_resident().await?;
    let observation = Observation::begin(&closed.common, &load, duration).await?;
    let cpu = cpu_time();
    load.closed(closed.clients, until).await?;
    report.cpu = cpu_time().saturating_sub(cpu);
    observation.end(&mut report).await;
    (report.measures, report.load, report.whole) = load.finish();
    report.retries = load.retries();
    report.stopped = load.stopped();
    Ok(report)
}

/// The smoke test.
///
/// # Errors
/// As [`closed`].
pub(crate) async fn smoke(smoke: &Smoke, interrupt: &Interrupt) -> anyhow::Result<Report> {
    let common = Common {
        url: smoke.url.clone(),
        driver: smoke.driver.clone(),
        workload: "smoke".to_owned(),
        seed: 1,
        key: smoke.key.clone(),
        warm_up: Duration::ZERO,
        json: None,
        reporting: Reporting { quiet: true, ..Reporting::default() },
    };
    let Smoke { clients, requests, duration, .. } = *smoke;
    let requests = requests.or(duration.is_none().then_some(SMOKE_REQUESTS));
    closed(&Closed { common, clients, requests, duration }, interrupt).await
}

/// The workload, with the limit of the command line.
fn workload(common: &Common, starting: &Starting) -> anyhow::Result<Workload> {
    let mut workload = Workload::load(&common.workload)?;
    if let Some(limit) = starting.limit {
        workload.limit(limit)?;
    }
    Ok(workload)
}

/// The command line's arrivals, else the workload's.
fn pattern(starting: &Starting, workload: &Workload) -> Pattern {
    starting.arrivals.clone().or_else(|| workload.arrivals.clone()).unwrap_or_default()
}

async fn prepare(common: &Common, workload: Workload) -> anyhow::Result<(Client, Requests)> {
    let target = Target::resolve(&common.url).await?;
    let keys = common.keys();
    let requests = Requests::new(workload, &keys, &target.host, common.seed)?;
    let key = keys.values().next().map(String::as_str);
    let client = Client::connect(target, &common.driver, key).await?;
    client.check(&requests)?;
    Ok((client, requests))
}

fn report(common: &Common, requests: &Requests, kind: Loop) -> anyhow::Result<Report> {
    let tenants = requests.tenant_names().to_vec();
    Ok(Report {
        kind,
        workload: common.workload.clone(),
        about: requests.workload().about.clone(),
        url: common.url.clone(),
        driver: common.driver.clone(),
        digest: requests.workload().digest(),
        limits_ms: requests.workload().traffic.iter().map(|kind| kind.limit_ms).collect(),
        unwarmed: !common.driver.driver.prewarms() && requests.workload().wants_prewarms(),
        seed: common.seed,
        warm_up: common.warm_up,
        weights: common.reporting.weights(&tenants)?,
        tenants,
        ..Report::default()
    })
}

/// How long this thread was ready to run and had no processor; zero where the system does not say.
///
/// Source: Linux, "Scheduler statistics": nanoseconds on a processor, and waiting for one.
fn starved_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}

/// What this process has used of a processor.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
