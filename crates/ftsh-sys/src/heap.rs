//! Heap of programs linked with musl, whose own allocator takes half as long again for a script.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use dlmalloc::Dlmalloc;

/// Tries to take the lock before a thread sleeps. Another thread holds it for the time of one
/// allocation, unless it is preempted.
const TRIES: u32 = 100;

/// Sleep between later tries, which lets even a thread of lower priority return the lock.
const PAUSE: Duration = Duration::from_micros(50);

/// Heap of the program.
#[cfg(target_env = "musl")]
pub(super) static HEAP: Heap = Heap::new();

/// Lets processes allocate that are forked while another thread allocates.
#[cfg(target_env = "musl")]
pub(super) fn allow_forks() {
    extern "C" fn lock() {
        HEAP.lock();
    }
    extern "C" fn unlock() {
        HEAP.unlock();
    }
    // SAFETY: the lock that is taken before a fork is returned in both processes. Without memory
    // for the list of handlers, only such processes are in danger.
    unsafe { libc::pthread_atfork(Some(lock), Some(unlock), Some(unlock)) };
}

/// Heap with a lock that costs a single atomic operation. A mutex takes as long as an allocation.
pub(super) struct Heap {
    is_locked: AtomicBool,
    memory: UnsafeCell<Dlmalloc>,
}

// SAFETY: only the thread that holds the lock uses the memory's state.
unsafe impl Sync for Heap {}

impl Heap {
    pub(super) const fn new() -> Self {
        Self { is_locked: AtomicBool::new(false), memory: UnsafeCell::new(Dlmalloc::new()) }
    }

    fn lock(&self) {
        let mut tries = 0;
        while self.is_locked.swap(true, Ordering::Acquire) {
            tries += 1;
            if tries < TRIES { spin_loop() } else { sleep(PAUSE) }
        }
    }

    fn unlock(&self) {
        self.is_locked.store(false, Ordering::Release);
    }

    fn with<R>(&self, action: impl FnOnce(&mut Dlmalloc) -> R) -> R {
        self.lock();
        // SAFETY: this thread holds the lock, and the allocator does not call itself.
        let result = action(unsafe { &mut *self.memory.get() });
        self.unlock();
        result
    }
}

// SAFETY: the methods of dlmalloc have the contracts of this trait.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        self.with(|memory| unsafe { memory.malloc(layout.size(), layout.align()) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        self.with(|memory| unsafe { memory.calloc(layout.size(), layout.align()) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        self.with(|memory| unsafe { memory.realloc(old, layout.size(), layout.align(), size) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        self.with(|memory| unsafe { memory.free(old, layout.size(), layout.align()) });
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Allocates, grows and frees pieces of many sizes, whose bytes must stay as they are.
    fn churn(heap: &Heap, seed: usize) {
        let mut pieces = Vec::new();
        for round in 1..2000 {
            let size = (seed * round * 7919) % 5000 + 1;
            let layout = Layout::from_size_align(size, 8 << (round % 4)).expect("a layout");
            // SAFETY: each piece is written within its size, and freed once with its layout.
            unsafe {
                let piece = heap.alloc(layout);
                piece.write_bytes(seed as u8, size);
                let larger = heap.realloc(piece, layout, size + 100);
                larger.add(size).write_bytes(seed as u8, 100);
                let layout = Layout::from_size_align_unchecked(size + 100, layout.align());
                pieces.push((larger, layout));
                if round % 3 == 0 {
                    let (piece, layout) = pieces.swap_remove(seed * round % pieces.len());
                    let bytes = std::slice::from_raw_parts(piece, layout.size());
                    assert!(bytes.iter().all(|&byte| byte == seed as u8));
                    assert_eq!(piece.addr() % layout.align(), 0);
                    heap.dealloc(piece, layout);
                }
            }
        }
        for (piece, layout) in pieces {
            // SAFETY: as above.
            unsafe {
                let bytes = std::slice::from_raw_parts(piece, layout.size());
                assert!(bytes.iter().all(|&byte| byte == seed as u8));
                heap.dealloc(piece, layout);
            }
        }
    }

    #[test]
    fn threads_do_not_share_pieces() {
        static HEAP: Heap = Heap::new();
        thread::scope(|scope| {
            for seed in 1..=4 {
                scope.spawn(move || churn(&HEAP, seed));
            }
        });
    }

    #[test]
    fn zeroed_memory_is_zero_after_use() {
        let heap = Heap::new();
        let layout = Layout::from_size_align(1000, 8).expect("a layout");
        // SAFETY: each piece is used within its size, and freed once with its layout.
        unsafe {
            let used = heap.alloc(layout);
            used.write_bytes(1, 1000);
            heap.dealloc(used, layout);
            let zeroed = heap.alloc_zeroed(layout);
            assert_eq!(std::slice::from_raw_parts(zeroed, 1000), [0; 1000]);
            heap.dealloc(zeroed, layout);
        }
    }
}
