//! Who looks after the servers: the checks at the start, and for each server a task that asks whether it
//! is well and has it checked again when it comes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::sleep;

use super::RemoteError;
use super::check::{CheckFault, Expected, TRY_EVERY, check};
use super::fleet::Fleet;
use super::standing::Look;

/// Checks all servers, again and again until one can be asked.
///
/// # Errors
/// [`RemoteError::Wrong`] of the first that answers and is not what it should be,
/// [`RemoteError::Away`] where none answers within `wait`.
pub(super) async fn first_checks(
    fleet: &Fleet,
    expected: &Expected,
    wait: Duration,
) -> Result<(), RemoteError> {
    let began = Instant::now();
    loop {
        let model = fleet.model.as_deref();
        let checks = fleet.endpoints.iter().map(|endpoint| check(endpoint, expected, model));
        for (endpoint, end) in fleet.endpoints.iter().zip(join_all(checks).await) {
            match end {
                Ok(introduction) => endpoint.put_up(introduction),
                Err(CheckFault::Away(why)) => endpoint.put_down(&why),
                Err(CheckFault::Wrong(why)) => {
                    return Err(RemoteError::Wrong { server: endpoint.name().to_owned(), why });
                }
            }
        }
        fleet.show();
        let Some((_, why)) = fleet.outage() else { return Ok(()) };
        let waited = began.elapsed();
        if waited >= wait {
            return Err(RemoteError::Away { waited, why });
        }
        tracing::info!("waiting for a server of the remote engine: {why}");
        sleep(TRY_EVERY.min(wait.saturating_sub(waited))).await;
    }
}

/// Looks after one server, for ever.
pub(super) async fn keep(fleet: Arc<Fleet>, index: usize, expected: Arc<Expected>) {
    let endpoint = Arc::clone(&fleet.endpoints[index]);
    loop {
        tokio::select! {
            biased;
            () = endpoint.wake.notified() => {}
            () = sleep(endpoint.next_look()) => {}
        }
        let look = endpoint.look().await;
        if endpoint.is_up() {
            endpoint.looked(look);
            fleet.show();
            continue;
        }
        let why = match look {
            Look::Well => match check(&endpoint, &expected, fleet.model.as_deref()).await {
                Ok(introduction) => {
                    endpoint.put_up(introduction);
                    fleet.ring();
                    continue;
                }
                Err(fault) => fault.to_string(),
            },
            Look::Away(why) | Look::Silent(why) => why,
        };
        // Its reason may be another one by now.
        endpoint.put_down(&why);
    }
}
