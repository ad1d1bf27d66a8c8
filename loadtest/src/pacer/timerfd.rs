//! A timer by a file descriptor, to the microsecond: Linux has it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    #[expect(
        deprecated,
        reason = "its successor is unsafe for sources that change their descriptor, which an OwnedFd cannot"
    )]
    pub(super) fn open() -> io::Result<Option<Self>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Some(Self(AsyncFd::new(timer)?)))
    }

    pub(super) async fn until(&mut self, at: Instant) -> io::Result<()> {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let it_value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: none, it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.0.readable().await?;
            let mut expirations = [0; 8];
            let read = |fd: &AsyncFd<OwnedFd>| {
                rustix::io::read(fd, &mut expirations).map_err(io::Error::from)
            };
            if let Ok(result) = ready.try_io(read) {
                return result.map(|_| ());
            }
        }
    }
}
