//! No precise timer, where the system has none that Tokio can wait for.

use std::io;

use tokio::time::Instant;

/// No such timer here.
#[derive(Debug)]
pub(super) enum Timer {}

impl Timer {
    pub(super) fn open() -> io::Result<Option<Self>> {
        Ok(None)
    }

    pub(super) async fn until(&mut self, _at: Instant) -> io::Result<()> {
        match *self {}
    }
}
