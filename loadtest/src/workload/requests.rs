//! Requests: what is drawn, as a decision with the headers that it is sent with.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};

use super::decision::{Decision, Question, State};
use super::draw::{Draw, Planned};
use super::texts::Texts;
use super::{Tenants, Workload, wording};

/// The lane, in headers that only docket reads.
pub(crate) const PRIORITY: &str = "x-docket-priority";
/// The deadline, likewise.
pub(crate) const TIMEOUT: &str = "x-docket-timeout-ms";

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// Answers to questions about a state.
    Decide,
    /// That a state is read ahead of its questions.
    Prewarm,
}

/// A request that a driver can write out in its server's form and send.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) route: Route,
    /// How many decisions of the seed's sequence were drawn before this one, or before a prewarm's
    /// own.
    pub(crate) number: u64,
    /// Number of its kind of request, and of its tenant.
    pub(crate) traffic: usize,
    pub(crate) tenant: usize,
    /// Which text its state is: another number, another text.
    pub(crate) state: u64,
    pub(crate) headers: Rc<HeaderMap>,
    pub(crate) decision: Decision,
    /// Answers that must come back.
    pub(crate) questions: usize,
    /// Longest wait for the answer.
    pub(crate) patience: Duration,
    /// When its client goes away without one.
    pub(crate) leaves_after: Option<Duration>,
}

/// The endless sequence of a workload's requests under one seed.
#[derive(Debug)]
pub(crate) struct Requests {
    workload: Workload,
    tenants: Tenants,
    draw: Draw,
    texts: Texts,
    /// Questions of each kind of request.
    pools: Vec<Vec<Rc<Question>>>,
    /// `samples` of each kind of request, as JSON.
    samples: Vec<Option<Rc<str>>>,
    /// By kind of request and tenant.
    heads: Vec<Vec<Rc<HeaderMap>>>,
}

impl Requests {
    /// The sequence of `seed`, for a server at `host`.
    ///
    /// # Errors
    /// When a host or key cannot be sent as a header.
    pub(crate) fn new(
        workload: Workload,
        keys: &BTreeMap<String, String>,
        host: &str,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let tenants = Tenants::new(&workload, keys)?;
        let sets = workload.states.values().cloned().collect();
        let texts = Texts::new(seed, sets, &workload.scripts);
        let pool = |(index, traffic): (usize, &super::Traffic)| {
            wording::pool(seed, index, &traffic.questions)
        };
        let heads = workload.traffic.iter().map(|traffic| {
            tenants.keys.iter().map(|key| head(host, key.as_deref(), traffic)).collect()
        });
        // A whole number or "auto": the same in TOML and JSON.
        let samples = |traffic: &super::Traffic| {
            traffic.samples.as_ref().map(|samples| samples.to_string().into())
        };
        Ok(Self {
            draw: Draw::new(seed, &workload, &tenants),
            samples: workload.traffic.iter().map(samples).collect(),
            texts,
            pools: workload.traffic.iter().enumerate().map(pool).collect(),
            heads: heads.collect::<anyhow::Result<_>>()?,
            tenants,
            workload,
        })
    }

    /// The workload.
    pub(crate) fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Names of the tenants, by number.
    pub(crate) fn tenant_names(&self) -> &[String] {
        &self.tenants.names
    }

    /// All questions that may be asked.
    pub(crate) fn questions(&self) -> impl Iterator<Item = &Question> {
        let recorded = self.workload.recorded.iter().flat_map(|recorded| recorded.questions());
        let drawn = self.pools.iter().flatten().map(Rc::as_ref);
        // The questions of a recorded workload's kinds are never drawn.
        recorded.chain(drawn.filter(|_| self.workload.recorded.is_none()))
    }

    /// Draws the next request, or takes the next one of the user's own.
    pub(crate) fn draw(&mut self) -> Planned {
        match &self.workload.recorded {
            Some(recorded) => self.draw.recorded(recorded, self.tenants.names.len()),
            None => self.draw.next(&self.texts),
        }
    }

    /// The prewarm of a planned request's state, as that request will find it.
    pub(crate) fn prewarm_of(planned: &Planned) -> Planned {
        let (route, questions) = (Route::Prewarm, Box::default());
        Planned { route, questions, disconnects: false, ..planned.clone() }
    }

    /// Milliseconds by which a prewarm precedes the first request on this state.
    pub(crate) fn prewarm_lead_ms(&self, planned: &Planned) -> Option<u32> {
        self.workload
            .states
            .values()
            .nth(planned.text.set.into())
            .and_then(|set| set.prewarm_lead_ms)
    }

    /// The prewarms of all states that are resident before the run: one a state and tenant.
    pub(crate) fn residents(&self) -> Vec<Planned> {
        let mut wanted = BTreeSet::new();
        for (number, traffic) in self.workload.traffic.iter().enumerate() {
            let sets = self.workload.states.iter().enumerate();
            let Some((set, count)) = sets
                .filter(|(_, (name, set))| **name == traffic.states && set.resident)
                .map(|(index, (_, set))| (index, set.count))
                .next()
            else {
                continue;
            };
            let only = traffic.tenant.as_ref().and_then(|name| self.tenants.number(name));
            let tenants =
                (0..self.tenants.names.len()).filter(|t| only.is_none_or(|only| only == *t));
            for tenant in tenants {
                wanted.extend((0..count).map(|text| (set, text, tenant, number)));
            }
        }
        // Two kinds of request that share a set need its states once.
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        wanted.dedup_by_key(|(set, text, tenant, _)| (*set, *text, *tenant));
        wanted.into_iter().map(resident).collect()
    }

    /// Makes the texts of planned requests ahead of the run, as far as they are kept.
    pub(crate) fn prepare(&mut self, planned: &Planned) {
        if self.workload.recorded.is_none() {
            self.texts.get(planned.text);
        }
    }

    /// A prewarm leaves lane and deadline to the server: it is not the request that it prepares.
    fn headers(&self, planned: &Planned) -> Rc<HeaderMap> {
        let head = &self.heads[usize::from(planned.traffic)][usize::from(planned.tenant)];
        if planned.route == Route::Decide {
            return Rc::clone(head);
        }
        let mut head = HeaderMap::clone(head);
        head.remove(PRIORITY);
        head.remove(TIMEOUT);
        Rc::new(head)
    }

    /// A planned request with all that a driver needs to write and send it.
    pub(crate) fn write(&mut self, planned: &Planned) -> Request {
        let traffic = usize::from(planned.traffic);
        let decision = self.decision(planned);
        let kind = &self.workload.traffic[traffic];
        let leaves = kind.disconnect.as_ref().filter(|_| planned.disconnects);
        Request {
            route: planned.route,
            number: planned.number,
            traffic,
            tenant: planned.tenant.into(),
            state: planned.state(),
            headers: self.headers(planned),
            questions: decision.questions.len(),
            decision,
            patience: Duration::from_millis(kind.patience_ms.into()),
            leaves_after: leaves.map(|leaves| Duration::from_millis(leaves.after_ms.into())),
        }
    }

    fn decision(&mut self, planned: &Planned) -> Decision {
        if let Some(recorded) = &self.workload.recorded {
            return recorded.decision(planned);
        }
        let traffic = usize::from(planned.traffic);
        let pool = &self.pools[traffic];
        let question = |number: &u16| Rc::clone(&pool[usize::from(*number)]);
        Decision {
            state: State::prose(self.texts.get(planned.text), planned.version),
            questions: planned.questions.iter().map(question).collect(),
            samples: self.samples[traffic].clone(),
            given: None,
        }
    }
}

fn resident((set, text, tenant, traffic): (usize, u32, usize, usize)) -> Planned {
    let narrow = |number| u16::try_from(number).unwrap_or(u16::MAX);
    Planned {
        route: Route::Prewarm,
        number: 0,
        traffic: narrow(traffic),
        tenant: narrow(tenant),
        text: super::TextKey { set: narrow(set), text },
        version: 0,
        questions: Box::default(),
        disconnects: false,
    }
}

/// The headers of a kind of request.
fn head(host: &str, key: Option<&str>, traffic: &super::Traffic) -> anyhow::Result<Rc<HeaderMap>> {
    let mut head = headers(host, key)?;
    if let Some(lane) = traffic.lane {
        head.insert(PRIORITY, HeaderValue::from_static(lane.as_str()));
    }
    if let Some(timeout_ms) = traffic.timeout_ms {
        head.insert(TIMEOUT, HeaderValue::from(timeout_ms));
    }
    Ok(Rc::new(head))
}

/// The headers that every request to `host` has.
///
/// # Errors
/// When a header cannot carry the host or the key.
pub(crate) fn headers(host: &str, key: Option<&str>) -> anyhow::Result<HeaderMap> {
    let mut head = HeaderMap::new();
    head.insert(HOST, HeaderValue::from_str(host).context("the host of --url")?);
    head.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
            .context("a --key has characters that a header cannot carry")?;
        value.set_sensitive(true);
        head.insert(AUTHORIZATION, value);
    }
    Ok(head)
}
