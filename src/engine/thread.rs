//! The OS thread that owns a model and runs one step at a time.
//!
//! The channel to it holds one step, so that the next one can be handed over while one runs; more
//! than that would only be work that can no longer be replanned. A panic inside a step ends that
//! step, not the thread.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use actors::{Completion, EngineError, Step, StepOutcome};
use crossbeam_channel::{Receiver, Sender, TrySendError};

/// A step and the way back for its outcome.
type Work<S> = (Step<S>, Completion<S>);

/// Handle of the thread; dropping it ends the thread after the step under way.
#[derive(Debug)]
pub(super) struct EngineThread<S>(Sender<Work<S>>);

impl<S: Send + 'static> EngineThread<S> {
    /// Starts the thread; `run` answers each step.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub(super) fn spawn(
        run: impl FnMut(&Step<S>) -> Result<StepOutcome<S>, EngineError> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        thread::Builder::new().name("engine-0".to_owned()).spawn(move || serve(&receiver, run))?;
        Ok(Self(sender))
    }

    /// Hands over a step without waiting.
    pub(super) fn submit(&self, step: Step<S>, done: Completion<S>) {
        match self.0.try_send((step, done)) {
            Ok(()) => {}
            Err(TrySendError::Full((step, done))) => {
                let message = format!("step {} was submitted while another one waits", step.id);
                done.finish(Err(EngineError::Forward(message)));
            }
            Err(TrySendError::Disconnected((_, done))) => {
                done.finish(Err(EngineError::Dead("the engine thread has ended".to_owned())));
            }
        }
    }
}

fn serve<S>(
    receiver: &Receiver<Work<S>>,
    mut run: impl FnMut(&Step<S>) -> Result<StepOutcome<S>, EngineError>,
) {
    for (step, done) in receiver {
        // What a step changes besides its outcome is scratch that the next one overwrites.
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&step)));
        let outcome = outcome.unwrap_or_else(|panic| {
            crate::telemetry::engine_panicked();
            Err(EngineError::Panic(panic_message(&*panic)))
        });
        drop(step);
        if catch_unwind(AssertUnwindSafe(|| done.finish(outcome))).is_err() {
            tracing::error!("the receiver of a step's outcome panicked");
        }
    }
}

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn step(id: u64) -> Step<()> {
        Step { id, epoch: 1, chunks: Vec::new(), rows: Vec::new() }
    }

    fn answer(thread: &EngineThread<()>, id: u64) -> Result<StepOutcome<()>, EngineError> {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        thread.submit(step(id), Completion::new(move |outcome| sender.send(outcome).unwrap()));
        receiver.recv_timeout(Duration::from_secs(10)).unwrap()
    }

    fn nothing() -> StepOutcome<()> {
        StepOutcome { chunks: Vec::new(), rows: Vec::new(), elapsed: Duration::ZERO }
    }

    #[test]
    fn a_panic_ends_its_step_and_not_the_thread() {
        let thread = EngineThread::spawn(|step| {
            assert!(step.id != 1, "step one is cursed");
            Ok(nothing())
        });
        let thread = thread.unwrap();
        let failed = answer(&thread, 1).unwrap_err();
        assert_eq!(failed, EngineError::Panic("step one is cursed".to_owned()));
        assert!(answer(&thread, 2).is_ok());
    }

    #[test]
    fn a_step_too_many_is_refused_at_once() {
        let (release, gate) = crossbeam_channel::bounded::<()>(0);
        let thread = EngineThread::spawn(move |_| {
            let _ = gate.recv(); // ends when the test drops its side
            Ok(nothing())
        });
        let thread = thread.unwrap();
        let (sender, receiver) = crossbeam_channel::unbounded();
        for id in 0..9 {
            let sender = sender.clone();
            thread.submit(step(id), Completion::new(move |end| sender.send((id, end)).unwrap()));
        }
        let (_, refused) = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(matches!(refused, Err(EngineError::Forward(_))));
        drop(release);
        drop(sender);
        assert_eq!(receiver.iter().count(), 8);
    }

    #[test]
    fn a_receiver_that_panics_does_not_end_the_thread() {
        let thread = EngineThread::spawn(|_| Ok(nothing())).unwrap();
        thread.submit(step(1), Completion::new(|_| panic!("no one home")));
        while let Err(error) = answer(&thread, 2) {
            assert!(matches!(error, EngineError::Forward(_)), "{error}");
        }
    }
}
