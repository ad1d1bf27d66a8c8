//! How the tests start actors and make decisions.

use std::sync::Arc;
use std::time::Duration;

use actors::{
    Config, Handle, Lane, Prefix, PrewarmSpec, ReadError, ReadOutcome, ReadSpec, SegmentSpec,
    TenantId, start,
};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::fake::{FakeEngine, meta, prefix, tokens};

pub(crate) type Outcomes = Vec<Result<ReadOutcome, ReadError>>;

pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.cache.kv_bytes = 100_000;
    config
}

pub(crate) async fn started(change: impl FnOnce(&mut Config)) -> (Handle, Arc<FakeEngine>) {
    let mut config = config();
    change(&mut config);
    let engine = Arc::new(FakeEngine::new());
    (start(Arc::clone(&engine), config).await.unwrap(), engine)
}

/// A prewarm in the batch lane.
pub(crate) fn prewarm(prefix: &Prefix, wait: bool) -> PrewarmSpec {
    PrewarmSpec {
        tenant: TenantId(Arc::from("t")),
        prefix: prefix.clone(),
        lane: Lane::Batch,
        ttl: None,
        wait,
        deadline: None,
        deadline_is_asked: false,
    }
}

/// A prefix whose state has a special token in its middle.
pub(crate) fn faulty_prefix(token: u32, name: u32, count: u32) -> Prefix {
    let head = prefix(1, name, count).head;
    let mut state = tokens(name, count).to_vec();
    state[count as usize / 2] = token;
    Prefix { state: SegmentSpec::state(&head, b"faulty", state.into()), head }
}

/// Lets messages that are under way arrive.
pub(crate) async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

/// One decision of one stage, responded to.
pub(crate) async fn decide(handle: &Handle, prefix: &Prefix, reads: Vec<ReadSpec>) -> Outcomes {
    let mut decision = handle.open(meta(prefix, Lane::Normal, reads.len())).unwrap();
    let outcomes = decision.read(reads).await.unwrap();
    decision.responded();
    settle().await;
    outcomes
}

/// One decision of one read, which must succeed.
pub(crate) async fn decide_one(handle: &Handle, prefix: &Prefix, read: ReadSpec) -> ReadOutcome {
    decide(handle, prefix, vec![read]).await.remove(0).unwrap()
}

/// [`decide`] in a task of its own.
pub(crate) fn spawn(handle: &Handle, prefix: Prefix, reads: Vec<ReadSpec>) -> JoinHandle<Outcomes> {
    let handle = handle.clone();
    tokio::spawn(async move { decide(&handle, &prefix, reads).await })
}

/// [`decide_one`] in a task of its own.
pub(crate) fn spawn_one(
    handle: &Handle,
    prefix: Prefix,
    read: ReadSpec,
) -> JoinHandle<ReadOutcome> {
    let handle = handle.clone();
    tokio::spawn(async move { decide_one(&handle, &prefix, read).await })
}

/// One read in a lane; the decision is not responded to.
pub(crate) fn spawn_in(
    handle: &Handle,
    lane: Lane,
    prefix: &Prefix,
    read: ReadSpec,
) -> JoinHandle<ReadOutcome> {
    let mut decision = handle.open(meta(prefix, lane, 1)).unwrap();
    tokio::spawn(async move { decision.read(vec![read]).await.unwrap().remove(0).unwrap() })
}
