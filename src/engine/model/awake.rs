//! Keeps the pool's threads awake while a step runs.
//!
//! A layer is some ten products and loops, each shared out to the threads and waited for. A thread that
//! goes to sleep between two of them is woken through the kernel, which on a virtual machine takes as
//! long as a small product: two threads then read a prompt of 64 tokens 1.4 times as fast as one. So
//! threads without work look for some until the step is over, and not a moment longer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rayon::{ThreadPool, Yield};

/// Looks for work in vain before a thread rests between them: some 50 us, more than there is between two
/// products. It takes longer where the machine has other things to do, and they shall be done.
const LOOKS: u32 = 500;

/// A rest.
const REST: Duration = Duration::from_micros(20);

/// Runs `step` in `pool`, whose other threads stay awake for its work.
pub(super) fn install<T: Send>(pool: &ThreadPool, step: impl FnOnce() -> T + Send) -> T {
    if pool.current_num_threads() == 1 {
        return pool.install(step);
    }
    let over = AtomicBool::new(false);
    let over = &over;
    pool.install(|| {
        rayon::scope(|scope| {
            let own = rayon::current_thread_index();
            // Each thread has one of its own: no other could wait in it for itself.
            scope.spawn_broadcast(move |_, thread| look_for_work(over, own, thread.index()));
            let _end = End(over);
            step()
        })
    })
}

/// On every thread of the pool but its `own`, which runs the step.
fn look_for_work(over: &AtomicBool, own: Option<usize>, thread: usize) {
    if own == Some(thread) {
        return;
    }
    let mut vain = 0;
    while !over.load(Ordering::Relaxed) {
        match rayon::yield_now() {
            Some(Yield::Executed) => vain = 0,
            Some(Yield::Idle) | None if vain < LOOKS => {
                vain += 1;
                std::hint::spin_loop();
            }
            Some(Yield::Idle) | None => std::thread::park_timeout(REST),
        }
    }
}

/// Ends the looking, also where the step panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use rayon::prelude::*;

    use super::*;

    fn pool(threads: usize) -> ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    #[test]
    fn a_step_runs_in_the_pool_and_gives_its_result() {
        for threads in [1, 2, 5] {
            let pool = pool(threads);
            for _ in 0..50 {
                let sum = install(&pool, || (0..1_000_u64).into_par_iter().sum::<u64>());
                assert_eq!((sum, pool.current_num_threads()), (499_500, threads));
            }
        }
    }

    #[test]
    fn a_panic_ends_the_step_and_the_next_one_runs() {
        let pool = pool(3);
        let panics = || install(&pool, || (0..64).into_par_iter().for_each(|at| assert!(at < 60)));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(install(&pool, rayon::current_num_threads), 3);
    }
}
