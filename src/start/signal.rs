//! The signals that stop the server.

use std::future::Future;
use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// A future that is done at the first SIGTERM or SIGINT. A second one ends the process at once: the
/// operator has lost patience.
///
/// # Errors
/// When the system gives no handler.
pub fn stop(runtime: &Runtime) -> io::Result<impl Future<Output = ()> + use<>> {
    let _inside = runtime.enter();
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let (first, stopped) = tokio::sync::oneshot::channel();
    runtime.spawn(async move {
        let mut first = Some(first);
        loop {
            tokio::select! {
                biased;
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            match first.take() {
                // The receiver is gone only when the server has stopped already.
                Some(first) => drop(first.send(())),
                None => std::process::exit(130),
            }
        }
    });
    Ok(async move {
        // A sender that is gone means that the runtime is stopping too.
        let _ = stopped.await;
    })
}
