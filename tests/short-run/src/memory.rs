//! The memory that a thread holds, counted by the program's allocator.
//!
//! Other tests of the program run on other threads, and what they hold does not count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// What this thread has allocated more than it has freed, and the most of it so far. Freed elsewhere, it stays counted.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, which counts.
#[derive(Debug)]
pub struct Counting;

fn count(bytes: isize) {
    // A thread that ends may free after its locals are gone.
    let _ = HELD.try_with(|held| {
        let (now, peak) = held.get();
        let now = now.saturating_add(bytes);
        held.set((now, peak.max(now)));
    });
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

// SAFETY: every call goes to `System` as it came. Counting allocates nothing: the local is constant and has no destructor.
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

/// Calls `work`; also returns the most bytes that this thread held during the call, beyond those that it held before.
pub(crate) fn peak<T>(work: impl FnOnce() -> T) -> (usize, T) {
    HELD.set((0, 0));
    let done = work();
    (usize::try_from(HELD.get().1).unwrap_or_default(), done)
}
