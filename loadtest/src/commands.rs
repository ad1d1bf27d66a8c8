//! The commands: from what was typed to a report.

use std::time::Duration;

use anyhow::ensure;
use rustix::time::{ClockId, clock_gettime};

use crate::arrivals::Arrivals;
use crate::cli::{Closed, Common, Open, Smoke};
use crate::client::{Client, Target};
use crate::load::{self, Load, Until};
use crate::pacer::Pacer;
use crate::report::{Loop, Report};
use crate::workload::{Requests, Workload};

/// How long a closed loop runs where nothing says.
const DURATION_DEFAULT: Duration = Duration::from_secs(30);

/// The open loop.
///
/// # Errors
/// When the workload, the schedule or the server's address cannot be used.
pub(crate) async fn open(open: &Open) -> anyhow::Result<Report> {
    let (client, mut requests) = prepare(&open.common).await?;
    let burst = requests.workload().burst;
    let Open { rate, duration, connections, .. } = *open;
    let warm_up = open.common.warm_up;
    ensure!(warm_up < duration, "--warm-up {warm_up:?} must be below --duration {duration:?}");
    let arrivals = Arrivals { rate, burst, duration, seed: open.common.seed };
    let starts_us = arrivals.starts_us()?;
    let plan = load::plan(&mut requests, &starts_us);
    let mut report = report(&open.common, &requests, Loop::Open { rate, duration, connections });

    let load = Load::new(client, requests, warm_up);
    load.make_resident().await?;
    let cpu = cpu_time();
    load.open(plan, connections, Pacer::precise()?).await?;
    report.cpu = cpu_time().saturating_sub(cpu);
    (report.measures, report.load, report.whole) = load.finish();
    Ok(report)
}

/// The closed loop.
///
/// # Errors
/// When the workload or the server's address cannot be used.
pub(crate) async fn closed(closed: &Closed) -> anyhow::Result<Report> {
    let (client, requests) = prepare(&closed.common).await?;
    let neither = closed.requests.is_none() && closed.duration.is_none();
    let duration = if neither { Some(DURATION_DEFAULT) } else { closed.duration };
    let until = Until { requests: closed.requests, duration };
    let mut report = report(&closed.common, &requests, Loop::Closed { clients: closed.clients });

    let load = Load::new(client, requests, closed.common.warm_up);
    load.make_resident().await?;
    let cpu = cpu_time();
    load.closed(closed.clients, until).await?;
    report.cpu = cpu_time().saturating_sub(cpu);
    (report.measures, report.load, report.whole) = load.finish();
    Ok(report)
}

/// The smoke test.
///
/// # Errors
/// As [`closed`].
pub(crate) async fn smoke(smoke: &Smoke) -> anyhow::Result<Report> {
    let common = Common {
        url: smoke.url.clone(),
        workload: "smoke".to_owned(),
        seed: 1,
        key: smoke.key.clone(),
        warm_up: Duration::ZERO,
        json: None,
    };
    let (clients, requests) = (smoke.clients, Some(smoke.requests));
    closed(&Closed { common, clients, requests, duration: None }).await
}

async fn prepare(common: &Common) -> anyhow::Result<(Client, Requests)> {
    let workload = Workload::load(&common.workload)?;
    let target = Target::resolve(&common.url).await?;
    let requests = Requests::new(workload, &common.keys(), &target.host, common.seed)?;
    Ok((Client::new(target), requests))
}

fn report(common: &Common, requests: &Requests, kind: Loop) -> Report {
    Report {
        kind,
        workload: common.workload.clone(),
        about: requests.workload().about.clone(),
        url: common.url.clone(),
        seed: common.seed,
        warm_up: common.warm_up,
        tenants: requests.tenant_names().to_vec(),
        ..Report::default()
    }
}

/// What this process has used of a processor.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
