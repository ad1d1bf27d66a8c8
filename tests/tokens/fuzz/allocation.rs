//! What a thread allocates while it is watched: the allocator of this test binary counts.
//!
//! Only the watched thread's own requests count, so that tests beside it do not disturb.
#![expect(unsafe_code, reason = "an allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write as _;

/// No request of a watched thread is granted above this: the process ends with the case's name in
/// place of taking the machine's memory.
const REQUEST_BYTES_MAX: usize = 4 << 30;

thread_local! {
    static WATCHED: Cell<Option<Usage>> = const { Cell::new(None) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What was allocated.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Which case, for the message of a refusal.
    case: (&'static str, u64),
    /// Bytes held more than at the begin, now.
    held: i64,
    /// The most that was held.
    pub(crate) peak: i64,
    /// The largest single request.
    pub(crate) largest: usize,
}

/// Runs `work` and says what this thread allocated for it.
pub(crate) fn watched<T>(case: (&'static str, u64), work: impl FnOnce() -> T) -> (T, Usage) {
    WATCHED.set(Some(Usage { case, ..Usage::default() }));
    let done = work();
    (done, WATCHED.take().unwrap_or_default())
}

struct Counting;

impl Counting {
    /// Counts a request; false refuses it.
    fn grants(taken: usize, freed: usize) -> bool {
        let Some(mut usage) = WATCHED.get() else { return true };
        let bytes = |count| i64::try_from(count).unwrap_or(i64::MAX);
        usage.held = usage.held.saturating_add(bytes(taken)).saturating_sub(bytes(freed));
        usage.peak = usage.peak.max(usage.held);
        usage.largest = usage.largest.max(taken);
        WATCHED.set(Some(usage));
        if taken > REQUEST_BYTES_MAX {
            let (name, seed) = usage.case;
            let _ = writeln!(std::io::stderr(), "{name} {seed}: {taken} bytes are asked for");
            return false;
        }
        true
    }
}

// SAFETY: every request goes to the system's allocator unchanged, or is refused with null.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !Self::grants(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !Self::grants(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !Self::grants(size, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::grants(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
