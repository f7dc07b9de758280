//! Memory that may not be there: the address space has a limit, `ulimit -v`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use nix::sys::resource::{Resource, getrlimit};

/// As large as the stack of a first thread usually is.
const STACK: usize = 8 * MIB;

/// What the deepest script needs.
const SMALLEST_STACK: usize = MIB;

/// Who asks for less than this doesn't expect to be refused: it is a word, a name, a table's row.
const LARGE: usize = MIB;

const MIB: usize = 1024 * 1024;

/// A number, 0 at first, that this process and those that it forks from now on share. It is there for good.
pub fn shared_number() -> io::Result<&'static AtomicU64> {
    let size = NonZeroUsize::new(size_of::<AtomicU64>()).unwrap_or(NonZeroUsize::MIN);
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: memory of its own, where the kernel has room, and nobody takes it back; all zero it is
    // such a number, and no page begins where that couldn't be.
    unsafe {
        let memory = mmap_anonymous(None, size, access, MapFlags::MAP_SHARED)?;
        Ok(memory.cast().as_ref())
    }
}

/// The system's allocator, but that the process ends with a message when not even a little memory
/// is left. What comes otherwise, allocates itself, and may hang. Large requests are refused to who
/// asks.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: the system's allocator, which does what is asked for, or nothing.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        checked(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn checked(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() && size < LARGE {
        die_of_hunger();
    }
    memory
}

/// By a signal, so that a supervisor cleans up.
#[cold]
fn die_of_hunger() -> ! {
    const WORDS: &[u8] = b"ftsh: out of memory\n";
    let _ = rustix::io::write(rustix::stdio::stderr(), WORDS);
    std::process::abort()
}

/// Returns true if this many bytes can be mapped now.
pub fn has_room(bytes: usize) -> bool {
    let Some(bytes) = NonZeroUsize::new(bytes) else { return true };
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: new pages, which nobody uses before they are given back.
    unsafe {
        mmap_anonymous(None, bytes, access, MapFlags::MAP_PRIVATE | MapFlags::MAP_STACK)
            .and_then(|pages| munmap(pages, bytes.get()))
            .is_ok()
    }
}

/// Returns the size of a stack that takes no more than half of the memory that is left; none if that is
/// too small. `stacker` panics where memory is missing.
fn stack_size() -> Option<usize> {
    let sizes = std::iter::successors(Some(STACK), |size| Some(size / 2));
    let mut sizes = sizes.take_while(|&size| size >= SMALLEST_STACK);
    sizes.find(|&size| has_room(2 * size))
}

/// Does something on a large stack, even if the limit of the process's own is small.
pub fn with_large_stack<R>(action: impl FnOnce() -> R) -> R {
    let is_small = |limit| limit < SMALLEST_STACK as u64;
    // musl says of its own only how much is used already, so that there would be none left.
    let wants_another = cfg!(target_env = "musl")
        || getrlimit(Resource::RLIMIT_STACK).is_ok_and(|(limit, _)| is_small(limit));
    match wants_another.then(stack_size).flatten() {
        Some(size) => stacker::grow(size, action),
        None => action(),
    }
}

/// Whether this program was linked statically.
pub fn is_static() -> bool {
    // SAFETY: a plain call. Only a loader of libraries has a place.
    let loader = unsafe { libc::getauxval(libc::AT_BASE) };
    loader == 0
}
