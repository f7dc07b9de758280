//! Memory within a limit on the address space, such as `ulimit -v`.

use std::alloc::{GlobalAlloc, Layout};
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use nix::sys::resource::{Resource, getrlimit};

/// Usual size of the stack of a first thread.
const STACK: usize = 8 * MIB;

/// Minimum size of a stack, which the deepest script needs.
const SMALLEST_STACK: usize = MIB;

/// Size from which a failed allocation is returned to the caller. Callers of smaller allocations,
/// such as words, names and rows of tables, do not expect failures.
const LARGE: usize = MIB;

const MIB: usize = 1024 * 1024;

/// Allocates a number, 0 at first, shared by this process and the processes forked later. The
/// memory is never freed.
pub fn shared_number() -> io::Result<&'static AtomicU64> {
    let size = NonZeroUsize::new(size_of::<AtomicU64>()).unwrap_or(NonZeroUsize::MIN);
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: new memory at an address chosen by the kernel, which is never unmapped. Zeroed memory
    // is a valid number, and pages are aligned.
    unsafe {
        let memory = mmap_anonymous(None, size, access, MapFlags::MAP_SHARED)?;
        Ok(memory.cast().as_ref())
    }
}

#[cfg(not(target_env = "musl"))]
use std::alloc::System as HEAP;

// The allocator of musl takes half as long again for a script.
#[cfg(target_env = "musl")]
use dlmalloc::GlobalDlmalloc as HEAP;

/// Allocator that ends the process with a message when even a small allocation fails.
///
/// The default handler of failed allocations allocates itself, and may hang. Large allocations that
/// fail are returned to the caller.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: another allocator, whose results are unchanged.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { HEAP.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { HEAP.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { HEAP.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { HEAP.dealloc(memory, layout) }
    }
}

#[inline]
fn checked(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() && size < LARGE {
        abort_out_of_memory();
    }
    memory
}

/// Aborts by a signal, so that a supervisor cleans up.
#[cold]
fn abort_out_of_memory() -> ! {
    const MESSAGE: &[u8] = b"ftsh: out of memory\n";
    let _ = rustix::io::write(rustix::stdio::stderr(), MESSAGE);
    std::process::abort()
}

/// Returns true if this many bytes can be mapped now.
pub fn has_room(bytes: usize) -> bool {
    let Some(bytes) = NonZeroUsize::new(bytes) else { return true };
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: new pages, unused until they are unmapped.
    unsafe {
        mmap_anonymous(None, bytes, access, MapFlags::MAP_PRIVATE | MapFlags::MAP_STACK)
            .and_then(|pages| munmap(pages, bytes.get()))
            .is_ok()
    }
}

/// Returns the size of a stack that takes at most half of the available memory, or `None` if that
/// is too small.
///
/// `stacker` panics if memory is missing.
fn stack_size() -> Option<usize> {
    let sizes = std::iter::successors(Some(STACK), |size| Some(size / 2));
    let mut sizes = sizes.take_while(|&size| size >= SMALLEST_STACK);
    sizes.find(|&size| has_room(2 * size))
}

/// Runs an action on a large stack, even if the limit of the process is small.
pub fn with_large_stack<R>(action: impl FnOnce() -> R) -> R {
    let is_small = |limit| limit < SMALLEST_STACK as u64;
    // musl reports only the used part of its stack, as if nothing were left.
    let wants_another = cfg!(target_env = "musl")
        || getrlimit(Resource::RLIMIT_STACK).is_ok_and(|(limit, _)| is_small(limit));
    match wants_another.then(stack_size).flatten() {
        Some(size) => stacker::grow(size, action),
        None => action(),
    }
}

/// Prepares the allocator for long scripts and for forks.
///
/// That of glibc merges freed pieces of memory at once, rather than all of them at each larger
/// request. The parser makes such requests for each line.
pub fn prepare_allocator() {
    #[cfg(target_env = "gnu")]
    // SAFETY: a plain call. A failure leaves the setting as it was.
    unsafe {
        libc::mallopt(libc::M_MXFAST, 0);
    }
    #[cfg(target_env = "musl")]
    // SAFETY: a plain call. Without memory for the handlers, only a fork during an allocation of
    // another thread is in danger.
    unsafe {
        dlmalloc::enable_alloc_after_fork();
    }
}

/// Returns true if this program is linked statically.
pub fn is_static() -> bool {
    // SAFETY: a plain call. Only a dynamic loader has an address.
    let loader = unsafe { libc::getauxval(libc::AT_BASE) };
    loader == 0
}
