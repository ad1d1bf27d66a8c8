//! The server as it is seen from outside while it is under load: what its process used of processor
//! and memory, and what its metrics page counted.
//!
//! All of it is optional: what cannot be known is left out, never guessed.

mod page;
mod process;
mod sampler;

use std::time::Duration;

use tokio::time::timeout;

use crate::client::Target;
use page::Page;
use sampler::Sampler;
pub(crate) use sampler::Usage;

/// docket's count of state tokens that were computed although they were resident.
const DUPLICATE_TOKENS: &str = "docket_state_duplicate_prefill_tokens_total";
/// docket's series whose labels say what was built.
const BUILD: &str = "docket_build_info";
/// docket's count of connections that it ended, and the reason of those that were too many.
const ENDED: &str = "docket_http_connections_ended_total";
const TOO_MANY: (&str, &str) = ("reason", "address");
/// What Prometheus' client libraries say of their process.
const CPU_SECONDS: &str = "process_cpu_seconds_total";
const RESIDENT_BYTES: &str = "process_resident_memory_bytes";
/// Most keys that are tried on the metrics page.
const KEYS_MAX: usize = 8;
/// Longest wait for the metrics page, all keys together.
const PAGE_WAIT: Duration = Duration::from_secs(5);

/// How to look at a server.
#[derive(Debug)]
pub(crate) struct Look<'l> {
    pub(crate) target: &'l Target,
    /// Keys, of which one may be allowed to read the metrics.
    pub(crate) keys: Vec<&'l str>,
    /// The process, where it is told.
    pub(crate) pid: Option<u32>,
    /// Time at the beginning of the run that does not count.
    pub(crate) warm_up: Duration,
}

/// What was seen of the server over a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Seen {
    /// None where its process is not on this machine, and its metrics do not tell.
    pub(crate) usage: Option<Usage>,
    /// State tokens computed again while they were resident, by the server's own count.
    pub(crate) duplicate_tokens: Option<u64>,
    /// Connections that it closed as one address had too many, by its own count.
    pub(crate) turned_away: Option<u64>,
    /// Version and commit, by its metrics.
    pub(crate) build: Option<String>,
}

/// A server that is watched.
#[derive(Debug)]
pub(crate) struct Watch {
    target: Target,
    key: Option<String>,
    before: Option<Page>,
    sampler: Option<Sampler>,
}

impl Watch {
    /// Begins to watch; fails at nothing but a process that was named and is not there.
    ///
    /// # Errors
    /// When the process of `pid` cannot be read.
    pub(crate) async fn begin(look: Look<'_>) -> anyhow::Result<Self> {
        let pid = match look.pid {
            Some(pid) => Some(process::checked(pid)?),
            None => process::listening(look.target.address()),
        };
        let keys = if look.keys.is_empty() {
            vec![None]
        } else {
            look.keys.into_iter().map(Some).collect()
        };
        let read = readable(look.target, keys);
        let found = timeout(PAGE_WAIT, read).await.ok().flatten();
        let (key, before) = found.map_or((None, None), |(key, page)| (key, Some(page)));
        let sampler = pid.map(|pid| Sampler::start(pid, look.warm_up)).transpose()?;
        Ok(Self { target: look.target.clone(), key, before, sampler })
    }

    /// Stops, and says what was seen.
    pub(crate) async fn end(self) -> Seen {
        let own = self.sampler.and_then(Sampler::stop);
        let Some(before) = self.before else { return Seen { usage: own, ..Seen::default() } };
        let after = timeout(PAGE_WAIT, Page::get(&self.target, self.key.as_deref())).await;
        let Ok(Some(after)) = after else { return Seen { usage: own, ..Seen::default() } };
        let rise =
            |name: &str| Some(after.sum(name)? - before.sum(name)?).filter(|rise| *rise >= 0.0);
        let told = || {
            Some(Usage {
                cpu: Duration::try_from_secs_f64(rise(CPU_SECONDS)?).ok()?,
                over: after.read_at.saturating_duration_since(before.read_at),
                rss_bytes_max: after.sum(RESIDENT_BYTES).map_or(0, whole),
                ..Usage::default()
            })
        };
        Seen {
            usage: own.or_else(told),
            turned_away: turned_away(&before, &after),
            duplicate_tokens: rise(DUPLICATE_TOKENS).map(whole),
            build: after.labels(BUILD).map(|labels| build(&labels)),
        }
    }
}

/// A series that was not there before has risen from 0.
fn turned_away(before: &Page, after: &Page) -> Option<u64> {
    let now = after.sum_of(ENDED, TOO_MANY)?;
    let then = before.sum_of(ENDED, TOO_MANY).unwrap_or(0.0);
    Some(whole((now - then).max(0.0)))
}

/// The metrics page, and the first key that may read it.
async fn readable(target: &Target, keys: Vec<Option<&str>>) -> Option<(Option<String>, Page)> {
    for key in keys.into_iter().take(KEYS_MAX) {
        if let Some(page) = Page::get(target, key).await {
            return Some((key.map(str::to_owned), page));
        }
    }
    None
}

/// Version, and commit where there is one.
fn build(labels: &[(String, String)]) -> String {
    let label = |wanted: &str| {
        let found = labels.iter().find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    };
    let words = ["version", "commit"].map(label);
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counters and bytes are whole, not negative and far below 2^63"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests;
