//! Observation: what goes on beside a run, from live progress to what the server's process uses.

use std::rc::Rc;
use std::time::Duration;

use crate::cli::Common;
use crate::client::{Driver, Target};
use crate::load::Load;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::report::Report;
use crate::server::{Look, Watch};

/// The observation of one run.
#[derive(Debug)]
pub(crate) struct Observation {
    machine: Machine,
    server: Watch,
    progress: Option<Progress>,
}

impl Observation {
    /// Begins right before the load; `duration` is how long requests start, where that is known.
    ///
    /// # Errors
    /// When the process that was named is not there.
    pub(crate) async fn begin<D: Driver + 'static>(
        common: &Common,
        load: &Rc<Load<D>>,
        duration: Option<Duration>,
    ) -> anyhow::Result<Self> {
        let target = Target::resolve(&common.url).await?;
        let machine = Machine::now();
        let server = Watch::begin(Look {
            target: &target,
            keys: common.key.iter().map(|(_, key)| key.as_str()).collect(),
            pid: common.reporting.server_pid,
            warm_up: common.warm_up,
        });
        let server = server.await?;
        let progress = Progress::start(common.reporting.show(), load, duration)?;
        Ok(Self { machine, server, progress })
    }

    /// Ends right after the load, and adds what was seen to the report.
    pub(crate) async fn end(self, report: &mut Report) {
        if let Some(progress) = self.progress {
            progress.finish().await;
        }
        report.server = self.server.end().await;
        report.machine = self.machine.after();
    }
}
