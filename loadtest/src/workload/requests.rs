//! Requests: what is drawn, written out as the headers and bodies of the wire.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};

use super::draw::{Draw, Planned};
use super::texts::Texts;
use super::{Tenants, Workload, wording};

const PRIORITY: &str = "x-docket-priority";
const TIMEOUT: &str = "x-docket-timeout-ms";

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// `POST /v1/systemone`.
    Decide,
    /// `POST /v1/prewarm`.
    Prewarm,
}

/// A request ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) route: Route,
    /// How many decisions of the seed's sequence were drawn before this one, or before a prewarm's own.
    pub(crate) number: u64,
    /// Number of its kind of request, and of its tenant.
    pub(crate) traffic: usize,
    pub(crate) tenant: usize,
    pub(crate) headers: Rc<HeaderMap>,
    pub(crate) body: Bytes,
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
    /// Questions of each kind of request, as JSON.
    pools: Vec<Vec<String>>,
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
        let texts = Texts::new(seed, workload.states.values().cloned().collect());
        let pool = |(index, traffic): (usize, &super::Traffic)| {
            wording::pool(seed, index, &traffic.questions)
        };
        let heads = workload.traffic.iter().map(|traffic| {
            tenants.keys.iter().map(|key| head(host, key.as_deref(), traffic)).collect()
        });
        Ok(Self {
            draw: Draw::new(seed, &workload, &tenants),
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

    /// Draws the next request.
    pub(crate) fn draw(&mut self) -> Planned {
        self.draw.next(&self.texts)
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
        self.texts.get(planned.text);
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

    /// Writes a planned request out.
    pub(crate) fn write(&mut self, planned: &Planned) -> Request {
        let traffic = usize::from(planned.traffic);
        let (kind, pool) = (&self.workload.traffic[traffic], &self.pools[traffic]);
        let text = self.texts.get(planned.text);
        let state = text.version(planned.version);
        let mut body = Vec::with_capacity(state.len() + 64 + planned.questions.len() * 160);
        body.extend_from_slice(b"{\"state\":\"");
        body.extend_from_slice(state.as_bytes());
        body.push(b'"');
        if planned.route == Route::Decide {
            write_questions(&mut body, &planned.questions, pool);
            // A whole number or "auto": the same in TOML and JSON.
            let samples = kind.samples.iter().map(|samples| format!(",\"samples\":{samples}"));
            samples.for_each(|samples| body.extend_from_slice(samples.as_bytes()));
        }
        body.push(b'}');
        let leaves = kind.disconnect.as_ref().filter(|_| planned.disconnects);
        Request {
            route: planned.route,
            number: planned.number,
            traffic,
            tenant: planned.tenant.into(),
            headers: self.headers(planned),
            body: Bytes::from(body),
            questions: planned.questions.len(),
            patience: Duration::from_millis(kind.patience_ms.into()),
            leaves_after: leaves.map(|leaves| Duration::from_millis(leaves.after_ms.into())),
        }
    }
}

fn write_questions(body: &mut Vec<u8>, questions: &[u16], pool: &[String]) {
    body.extend_from_slice(b",\"questions\":{");
    for (index, question) in questions.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        body.extend_from_slice(format!("{comma}\"q{index}\":").as_bytes());
        body.extend_from_slice(pool[usize::from(*question)].as_bytes());
    }
    body.push(b'}');
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

fn head(host: &str, key: Option<&str>, traffic: &super::Traffic) -> anyhow::Result<Rc<HeaderMap>> {
    let mut head = HeaderMap::new();
    head.insert(HOST, HeaderValue::from_str(host).context("the host of --url")?);
    head.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
            .context("a --key has characters that a header cannot carry")?;
        value.set_sensitive(true);
        head.insert(AUTHORIZATION, value);
    }
    if let Some(lane) = traffic.lane {
        head.insert(PRIORITY, HeaderValue::from_static(lane.as_str()));
    }
    if let Some(timeout_ms) = traffic.timeout_ms {
        head.insert(TIMEOUT, HeaderValue::from(timeout_ms));
    }
    Ok(Rc::new(head))
}
