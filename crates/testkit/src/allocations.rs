//! A global allocator that counts, for tests that show that a loop allocates nothing.
#![expect(
    unsafe_code,
    reason = "the only way to see allocations is to be the allocator; every call goes to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting for each thread. To be installed by the test binary:
///
/// ```
/// use ackclock_testkit::{CountingAllocator, allocations};
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let boxed = allocations(|| drop(Box::new(1)));
/// assert_eq!(boxed.count, 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountingAllocator;

/// The allocations of a closure on its own thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Calls that asked for memory, for more of it or for less.
    pub count: u64,
    /// The bytes that these calls asked for, old contents included.
    pub bytes: u64,
}

thread_local! {
    // Constant and without a destructor: reading it never allocates.
    static SO_FAR: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

/// Counts the allocations of `work`; none without [`CountingAllocator`] installed.
pub fn allocations(work: impl FnOnce()) -> Allocations {
    let before = SO_FAR.get();
    work();
    let after = SO_FAR.get();
    Allocations { count: after.count - before.count, bytes: after.bytes - before.bytes }
}

fn book(bytes: usize) {
    let before = SO_FAR.get();
    SO_FAR.set(Allocations { count: before.count + 1, bytes: before.bytes + bytes as u64 });
}

// SAFETY: every method hands its arguments to the system's allocator unchanged and returns what
// that returns.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        book(layout.size());
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        book(layout.size());
        // SAFETY: as for the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        book(size);
        // SAFETY: as for the caller.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as for the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}
