//! All servers of a remote engine: which one a state goes to, what is tried again, and when it is an
//! outage.
//!
//! A request is sent again only where nothing was executed: no connection, or a server that says it has
//! no room. That goes on for a bounded time, on other servers first. What may have been executed ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::{EngineError, Origin};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::affinity::ranked;
use super::endpoint::{Endpoint, Fault};
use super::protocol::{Ask, Protocol, Reading};
use crate::telemetry::{RemoteCall, remote_prompt, remote_retried, remote_servers};

/// How long a server that has no room is left alone, where it does not say: doubled each time.
const REST_FIRST: Duration = Duration::from_millis(50);

/// At most.
const REST_MAX: Duration = Duration::from_secs(1);

/// Limits of what is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// How long an outage is waited out, and how long a request is sent again that no server has room
    /// for.
    pub(super) retry_for: Duration,
}

/// The servers.
pub(super) struct Fleet {
    pub(super) protocol: Protocol,
    pub(super) endpoints: Vec<Arc<Endpoint>>,
    /// The model, as requests name it; none where each server's own name is taken.
    pub(super) model: Option<String>,
    patience: Patience,
    /// Rings when a server can be asked again.
    changed: Notify,
}

/// One request's tries so far.
struct Tries {
    /// When it could first not be placed.
    since: Option<Instant>,
    /// Until when each server is left alone by it: `[servers]`.
    resting: Vec<Option<Instant>>,
    /// How often it was sent away.
    busy: u32,
    /// Why it could not be placed last.
    why: Option<String>,
}

/// Where a request can go.
enum Choice {
    Ask(usize),
    /// All that are up have no room until then.
    Rest(Instant),
    /// None is up.
    Outage,
}

impl Fleet {
    pub(super) fn new(
        protocol: Protocol,
        endpoints: Vec<Arc<Endpoint>>,
        model: Option<String>,
        patience: Patience,
    ) -> Self {
        Self { protocol, endpoints, model, patience, changed: Notify::new() }
    }

    /// Whether the server that a state would go to now is believed to hold the first `tokens` of its
    /// prompts.
    pub(super) fn holds(&self, origin: Origin, tokens: u32) -> bool {
        let home = self.preferred(origin).find(|index| self.endpoints[*index].is_up());
        home.is_some_and(|home| self.endpoints[home].holds(origin.state, tokens))
    }

    /// The servers, a state's home first.
    fn preferred(&self, origin: Origin) -> impl Iterator<Item = usize> {
        let names = self.endpoints.iter().map(|endpoint| endpoint.name());
        ranked(names, origin.state).into_iter()
    }

    /// Asks the state's server, or another one.
    ///
    /// * `prefix_tokens`: tokens of the prompt that are the state's; it is noted that the server has
    ///   read them.
    ///
    /// # Errors
    /// [`EngineError`]: `Unavailable` in an outage and for what was lost on the way, `Forward` for what
    /// the server does not take, `NonFinite`.
    pub(super) async fn ask(
        &self,
        kind: RemoteCall,
        (origin, prefix_tokens): (Origin, u32),
        ask: Ask<'_>,
    ) -> Result<Reading, EngineError> {
        let mut tries = Tries::new(self.endpoints.len());
        loop {
            let index = match self.choose(origin, &tries) {
                Choice::Ask(index) => index,
                Choice::Rest(until) => {
                    self.rest(until, &mut tries).await?;
                    continue;
                }
                Choice::Outage => {
                    self.wait_out(&mut tries).await?;
                    continue;
                }
            };
            let endpoint = &self.endpoints[index];
            let place = endpoint.enter(origin.state).await;
            if !endpoint.is_up() {
                // It went down while this waited for its turn.
                continue;
            }
            let introduced = endpoint.introduction().model;
            let model = self.model.as_deref().or(introduced.as_deref()).unwrap_or_default();
            let end = endpoint.ask(kind, &Ask { model, slot: place.slot, ..ask }).await;
            drop(place);
            match end {
                Ok(reading) => {
                    endpoint.note_read(origin.state, prefix_tokens, reading.cached);
                    remote_prompt(ask.ids.len(), reading.cached.unwrap_or(0));
                    return Ok(reading);
                }
                Err(fault) => self.bear(index, fault, &mut tries)?,
            }
        }
    }

    fn choose(&self, origin: Origin, tries: &Tries) -> Choice {
        let now = Instant::now();
        let mut earliest: Option<Instant> = None;
        for index in self.preferred(origin).filter(|index| self.endpoints[*index].is_up()) {
            match tries.resting[index].filter(|until| *until > now) {
                None => return Choice::Ask(index),
                Some(until) => earliest = Some(earliest.map_or(until, |e| e.min(until))),
            }
        }
        earliest.map_or(Choice::Outage, Choice::Rest)
    }

    /// What follows from a fault: the request is tried again, or ends with the error.
    fn bear(&self, index: usize, fault: Fault, tries: &mut Tries) -> Result<(), EngineError> {
        let endpoint = &self.endpoints[index];
        let told = |why: &str| format!("{}: {why}", endpoint.name());
        match fault {
            Fault::NotExecuted { why, is_down, retry_after } => {
                let late = |since: Instant| since.elapsed() > self.patience.retry_for;
                if tries.since.is_some_and(late) {
                    return Err(EngineError::Unavailable(told(&why)));
                }
                tries.why = Some(told(&why));
                tries.since.get_or_insert_with(Instant::now);
                if is_down {
                    endpoint.put_down(&why);
                    self.show();
                } else {
                    tries.send_away(index, retry_after);
                }
                remote_retried();
                Ok(())
            }
            Fault::Refused(why) => Err(EngineError::Forward(told(&why))),
            Fault::NonFinite => Err(EngineError::NonFinite),
            Fault::Lost { why, is_down } => {
                if is_down {
                    endpoint.put_down(&why);
                    self.show();
                }
                endpoint.wake.notify_one();
                Err(EngineError::Unavailable(told(&why)))
            }
        }
    }

    /// Waits until a server may have room.
    async fn rest(&self, until: Instant, tries: &mut Tries) -> Result<(), EngineError> {
        let since = *tries.since.get_or_insert_with(Instant::now);
        let end = since + self.patience.retry_for;
        if until > end {
            let why = tries.why.take().unwrap_or_else(|| "no server has room".to_owned());
            return Err(EngineError::Unavailable(why));
        }
        // A server that comes up meanwhile may have room at once.
        let pause = until.saturating_duration_since(Instant::now());
        let _ = timeout(pause, self.changed.notified()).await;
        Ok(())
    }

    /// Waits until a server can be asked, if the outage is not too long already.
    async fn wait_out(&self, tries: &mut Tries) -> Result<(), EngineError> {
        tries.since.get_or_insert_with(Instant::now);
        let changed = self.changed.notified();
        tokio::pin!(changed);
        // From here on no ring is missed.
        changed.as_mut().enable();
        let Some((since, why)) = self.outage() else { return Ok(()) };
        let left = (since + self.patience.retry_for).saturating_duration_since(Instant::now());
        if left.is_zero() || timeout(left, changed).await.is_err() {
            return Err(EngineError::Unavailable(tries.why.take().unwrap_or(why)));
        }
        Ok(())
    }

    /// Since when no server can be asked, and why; `None` while one can.
    pub(super) fn outage(&self) -> Option<(Instant, String)> {
        let standings: Vec<_> =
            self.endpoints.iter().map(|endpoint| (endpoint.name(), endpoint.standing())).collect();
        if standings.iter().any(|(_, standing)| standing.is_up()) {
            return None;
        }
        let since = standings.iter().map(|(_, standing)| standing.since).max()?;
        let why = standings.iter().map(|(name, standing)| {
            format!("{name}: {}", standing.why.as_deref().unwrap_or_default())
        });
        Some((since, why.collect::<Vec<_>>().join("; ")))
    }

    /// A server can be asked again.
    pub(super) fn ring(&self) {
        self.show();
        self.changed.notify_waiters();
    }

    /// Shows how many servers are asked.
    pub(super) fn show(&self) {
        let up = self.endpoints.iter().filter(|endpoint| endpoint.is_up()).count();
        remote_servers(up, self.endpoints.len() - up);
    }
}

impl Tries {
    fn new(servers: usize) -> Self {
        Self { since: None, resting: vec![None; servers], busy: 0, why: None }
    }

    /// A server has no room now.
    fn send_away(&mut self, index: usize, retry_after: Option<Duration>) {
        let own = REST_FIRST.saturating_mul(1 << self.busy.min(8)).min(REST_MAX);
        self.busy += 1;
        self.resting[index] = Some(Instant::now() + retry_after.unwrap_or(own));
    }
}
