//! When work on a request must end: at its deadline, or soon after the server has closed.

use std::future::Future;
use std::time::Duration;

use actors::ReadError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::error::DecideError;

/// How long after its deadline a request is ended by the clock; until then the scheduler ends it, which
/// knows where its time went.
const EXPIRY_GRACE: Duration = Duration::from_millis(20);

/// How long after the server closed what has been read may take to become an answer. The last reads of
/// a drain end in the moment in which it is over, and their outcomes are under way then.
const CLOSING_GRACE: Duration = Duration::from_millis(500);

/// Runs `work` of a request that came at `since` until it is done, `deadline` passes or `closing` has
/// been true for a while.
///
/// # Errors
/// Those of `work`, [`ReadError::Expired`] and [`ReadError::Draining`].
pub(super) async fn in_time<T>(
    since: Instant,
    deadline: Instant,
    mut closing: watch::Receiver<bool>,
    work: impl Future<Output = Result<T, DecideError>>,
) -> Result<T, DecideError> {
    let is_closing = closing.clone();
    let closed = async {
        // The sender lives as long as the decider that asks.
        let _ = closing.wait_for(|closing| *closing).await;
        sleep(CLOSING_GRACE).await;
    };
    tokio::select! {
        biased;
        done = work => match done {
            // The actors have been stopped since: what needs one more read is refused like the rest.
            Err(DecideError::Read(ReadError::Unavailable)) if *is_closing.borrow() => {
                Err(ReadError::Draining.into())
            }
            done => done,
        },
        // The scheduler ends reads at the deadline and says where their time went; this is for what
        // never came to it.
        () = sleep_until(deadline + EXPIRY_GRACE) => {
            let waited = deadline.saturating_duration_since(since);
            Err(ReadError::Expired { waited, spent: None }.into())
        }
        () = closed => Err(ReadError::Draining.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    async fn ended(
        closes: bool,
        takes: Duration,
        with: Result<u8, ReadError>,
    ) -> Result<u8, DecideError> {
        let (sender, closing) = watch::channel(closes);
        let now = Instant::now();
        let work = async move {
            sleep(takes).await;
            with.map_err(DecideError::from)
        };
        let ended = in_time(now, now + LONG, closing, work).await;
        drop(sender);
        ended
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_when_the_server_closed_is_answered() {
        assert_eq!(ended(true, CLOSING_GRACE / 2, Ok(1)).await, Ok(1));
        let draining = Err(DecideError::Read(ReadError::Draining));
        assert_eq!(ended(true, CLOSING_GRACE * 2, Ok(1)).await, draining);
        assert_eq!(ended(true, Duration::ZERO, Err(ReadError::Unavailable)).await, draining);
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_at_its_deadline() {
        assert_eq!(ended(false, LONG, Ok(1)).await, Ok(1));
        let late = ended(false, LONG * 2, Ok(1)).await;
        let Err(DecideError::Read(ReadError::Expired { waited, spent: None })) = late else {
            panic!("{late:?}");
        };
        assert_eq!(waited, LONG);
        let unavailable = DecideError::Read(ReadError::Unavailable);
        assert_eq!(ended(false, LONG / 2, Err(ReadError::Unavailable)).await, Err(unavailable));
    }
}
