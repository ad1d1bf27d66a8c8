//! Whether a server is asked, and when it is looked at next. No clock and no socket.

use std::time::{Duration, Instant};

/// How often a server that answers is asked whether it is well.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// After what time a server that does not is looked at first; doubled each time, up to
/// [`LOOK_EVERY`].
const LOOK_FIRST: Duration = Duration::from_millis(250);

/// How many looks in a row without an answer put a server down that still answers what it is asked.
const MISSES_MAX: u32 = 2;

/// What is known of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    /// Why it is not asked; `None` while it is.
    pub(super) why: Option<String>,
    /// Since when.
    pub(super) since: Instant,
    /// Looks without an answer in a row.
    misses: u32,
    /// Looks since it went down.
    looks: u32,
}

/// What a look at a server found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// It is well.
    Well,
    /// Nobody listens, or it says that it is not ready.
    Away(String),
    /// It did not answer in time.
    Silent(String),
}

impl Standing {
    /// Of a server that has not been looked at.
    pub(super) fn unknown(now: Instant) -> Self {
        Self { why: Some("it was not asked yet".to_owned()), since: now, misses: 0, looks: 0 }
    }

    pub(super) fn is_up(&self) -> bool {
        self.why.is_none()
    }

    /// It is not to be asked; says whether it was until now.
    pub(super) fn put_down(&mut self, why: String, now: Instant) -> bool {
        let was_up = self.is_up();
        if was_up {
            (self.since, self.looks) = (now, 0);
        }
        self.why = Some(why);
        was_up
    }

    /// It can be asked; says whether it could not until now.
    pub(super) fn put_up(&mut self, now: Instant) -> bool {
        let was_down = !self.is_up();
        if was_down {
            self.since = now;
        }
        (self.why, self.misses, self.looks) = (None, 0, 0);
        was_down
    }

    /// Takes in a look at a server that is asked; why it is not to be any more, if so.
    pub(super) fn looked(&mut self, look: Look) -> Option<String> {
        match look {
            Look::Well => {
                self.misses = 0;
                None
            }
            Look::Away(why) => Some(why),
            Look::Silent(why) => {
                self.misses += 1;
                (self.misses >= MISSES_MAX).then_some(why)
            }
        }
    }

    /// When to look next; each call is one look.
    pub(super) fn next_look(&mut self) -> Duration {
        if self.is_up() {
            return LOOK_EVERY;
        }
        let pause = LOOK_FIRST.saturating_mul(1 << self.looks.min(8));
        self.looks += 1;
        pause.min(LOOK_EVERY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_server_that_is_away_is_looked_at_ever_more_rarely() {
        let mut standing = Standing::unknown(start());
        standing.put_up(start());
        assert_eq!(standing.next_look(), LOOK_EVERY);
        assert!(standing.put_down("gone".to_owned(), start()));
        assert!(!standing.put_down("still".to_owned(), start()), "it was down already");
        let pauses: Vec<u128> = (0..7).map(|_| standing.next_look().as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
        assert!(standing.put_up(start()) && standing.is_up());
        standing.put_down("again".to_owned(), start());
        assert_eq!(standing.next_look().as_millis(), 250);
    }

    #[test]
    fn one_silent_look_is_borne_and_two_are_not() {
        let mut standing = Standing::unknown(start());
        standing.put_up(start());
        let silent = || Look::Silent("slow".to_owned());
        assert_eq!(standing.looked(silent()), None);
        assert_eq!(standing.looked(Look::Well), None);
        assert_eq!(standing.looked(silent()), None);
        assert_eq!(standing.looked(silent()), Some("slow".to_owned()));
        assert_eq!(standing.looked(Look::Away("x".to_owned())), Some("x".to_owned()));
    }

    #[test]
    fn how_long_it_is_down_is_counted_from_the_first_time() {
        let (begin, later) = (start(), start() + Duration::from_secs(9));
        let mut standing = Standing::unknown(begin);
        standing.put_up(begin);
        standing.put_down("gone".to_owned(), begin);
        standing.put_down("gone".to_owned(), later);
        assert_eq!(standing.since, begin);
        standing.put_up(later);
        assert_eq!(standing.since, later);
    }
}
