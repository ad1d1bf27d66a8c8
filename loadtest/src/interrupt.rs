//! Ctrl-C: the first one ends a run as if its time were over, so that there is a report of what was
//! measured until then; the second one ends the program.

use std::io::{self, Write as _};
use std::process::exit;
use std::rc::Rc;

use anyhow::ensure;
use tokio::sync::watch;
use tokio::task::{AbortHandle, spawn_local};
use tokio::{select, signal, time};

use crate::client::Driver;
use crate::load::Load;

/// What a shell says of a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Whether Ctrl-C was pressed.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    pressed: watch::Receiver<bool>,
}

impl Interrupt {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        let (press, pressed) = watch::channel(false);
        spawn_local(async move {
            // Where the system lets nobody listen, it ends the program as ever.
            if signal::ctrl_c().await.is_err() {
                return press.closed().await;
            }
            let said = "interrupted: what is under way ends first; once more ends everything";
            let _ = writeln!(io::stderr(), "\n{said}");
            press.send_replace(true);
            let _ = signal::ctrl_c().await;
            exit(INTERRUPTED);
        });
        Self { pressed }
    }

    /// Nobody presses it.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self::by(watch::channel(false).1)
    }

    /// What `pressed` says.
    #[cfg(test)]
    pub(crate) fn by(pressed: watch::Receiver<bool>) -> Self {
        Self { pressed }
    }

    /// Whether it was pressed.
    pub(crate) fn is_pressed(&self) -> bool {
        *self.pressed.borrow()
    }

    /// Waits until it is.
    pub(crate) async fn pressed(&mut self) {
        if self.pressed.wait_for(|is_pressed| *is_pressed).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits so long, or until it is pressed.
    pub(crate) async fn sleep(&mut self, pause: time::Duration) {
        select! {
            () = time::sleep(pause) => {}
            () = self.pressed() => {}
        }
    }

    /// Ends `load` when it is pressed, until what is returned goes.
    ///
    /// # Errors
    /// When it has been.
    pub(crate) fn ends<D: Driver + 'static>(&self, load: &Rc<Load<D>>) -> anyhow::Result<Ending> {
        ensure!(!self.is_pressed(), "interrupted before anything was measured");
        let (mut interrupt, load) = (self.clone(), Rc::clone(load));
        let task = spawn_local(async move {
            interrupt.pressed().await;
            load.stop();
        });
        Ok(Ending(task.abort_handle()))
    }
}

/// Goes with the run that it may end.
#[derive(Debug)]
pub(crate) struct Ending(AbortHandle);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abort();
    }
}
