//! The memory that a thread holds, counted by the program's allocator.
//!
//! Memory of other threads, such as those of other tests, is not counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The bytes that this thread has allocated minus those that it has freed, and the maximum of this value so far.
    /// Memory that another thread frees is still counted.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator with counting.
#[derive(Debug)]
pub struct Counting;

fn count(bytes: isize) {
    // A thread may free memory at its end, after its thread-local values are gone.
    let _ = HELD.try_with(|held| {
        let (now, peak) = held.get();
        let now = now.saturating_add(bytes);
        held.set((now, peak.max(now)));
    });
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

// SAFETY: every call is passed to `System` unchanged. Counting allocates nothing: the thread-local value is constant
// and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(signed(size) - signed(layout.size()));
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Calls `work` and returns its result, with the maximum number of bytes that this thread held during the call in
/// addition to those that it held before.
pub(crate) fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    HELD.set((0, 0));
    let done = work();
    (usize::try_from(HELD.get().1).unwrap_or_default(), done)
}
