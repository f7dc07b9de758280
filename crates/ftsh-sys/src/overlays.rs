//! Overlay mounts in namespaces of their own.
//!
//! A short-lived child makes the namespaces and the mounts, and opens them in the table of
//! descriptors that the child shares with the shell. The descriptors keep the namespaces alive, so
//! no process has to stay, and the kernel removes the mounts after any end of the shell.
//!
//! The child shares the memory of a process with possibly several threads: it may only call
//! async-signal-safe functions.

use std::ffi::{CStr, CString, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libc::c_int;
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{chdir, chroot, fchdir, getegid, geteuid, getpid, getppid};
use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};

use super::descriptors::move_up;
use super::launch::StartGuard;

/// Size of the child's stack in bytes.
const STACK: usize = 64 * 1024;

/// Overlay to mount.
pub struct Overlay {
    /// Absolute path of the directory that the overlay covers.
    pub target: CString,
    /// Working directory of the mount, from which relative paths in the options are resolved. The
    /// list of mounts shows the path as the source of the overlay.
    pub layers: CString,
    /// Options of the file system.
    pub options: CString,
    /// Directory that an outer overlay covers, if that overlay hides the layers.
    pub outer: Option<CString>,
}

/// Mounts of an overlay whose layers an outer overlay hides.
#[derive(Default)]
struct HiddenMounts {
    /// The outer overlay, below the new one.
    lower: Option<OwnedFd>,
    /// The outer overlay with all mounts in it, at its place.
    again: Option<OwnedFd>,
    /// The new overlay.
    merged: Option<OwnedFd>,
}

/// Directory in the layers that shows what an outer overlay shows.
const OUTER: &CStr = c"outer";

/// Directory in the layers for an overlay over an outer one, until its target is ready.
const MERGED: &CStr = c"merged";

/// Namespaces in which overlays are mounted.
pub struct Namespaces {
    /// User namespace; `None` if the mount namespace belongs to the shell's user namespace.
    pub user: Option<OwnedFd>,
    /// Mount namespace.
    pub mount: OwnedFd,
    /// Root directory in the mount namespace.
    pub root: OwnedFd,
}

/// Step of the creation of namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountStep {
    /// Start of the child.
    Start,
    /// Creation of a user and a mount namespace.
    UserNamespace,
    /// Creation of a mount namespace only.
    MountNamespace,
    /// Mapping of the user and the group.
    Maps,
    /// Separation of the mounts from the mounts of the machine.
    Propagation,
    /// Protection of everything outside the overlays.
    Protection,
    /// Mount of the overlay with this index.
    Overlay(usize),
    /// Opening of the namespaces.
    Open,
}

/// Failed step, with its error.
#[derive(Clone, Copy, Debug)]
pub struct MountFailure {
    /// Step that failed.
    pub step: MountStep,
    /// Error of the system.
    pub errno: Errno,
}

/// Inputs and results of the child.
struct Child<'a> {
    overlays: &'a [Overlay],
    /// Namespaces that the new mount namespace is a copy of.
    within: Option<&'a Namespaces>,
    /// Directories that stay writable while everything outside the overlays is read-only.
    writable: Option<&'a [CString]>,
    /// One for each writable directory.
    kept: Vec<Option<OwnedFd>>,
    /// One for each overlay. The child does not allocate memory.
    hidden: Vec<HiddenMounts>,
    /// Lines of the maps of users and groups; `None` to stay in the shell's user namespace.
    maps: Option<(CString, CString)>,
    user: RawFd,
    mount: RawFd,
    root: RawFd,
    step: MountStep,
    result: Result<(), Errno>,
}

/// Mounts overlays in a new mount namespace, and in a new user namespace if `with_user` is true.
///
/// The new user namespace maps only the effective user and group of the shell, to themselves.
///
/// With `writable`, files outside the overlays and these directories are read-only. Devices, FIFOs
/// and sockets are not.
pub fn mount_overlays(
    overlays: &[Overlay],
    with_user: bool,
    writable: Option<&[CString]>,
) -> Result<Namespaces, MountFailure> {
    mount_in(overlays, None, with_user, writable)
}

/// Mounts overlays in a new mount namespace that has all mounts of other namespaces.
pub fn mount_overlays_within(
    overlays: &[Overlay],
    within: &Namespaces,
) -> Result<Namespaces, MountFailure> {
    let mut namespaces = mount_in(overlays, Some(within), false, None)?;
    namespaces.user = within
        .user
        .as_ref()
        .map(|user| move_up(user.try_clone()?))
        .transpose()
        .map_err(|error| cannot_open(&error))?;
    Ok(namespaces)
}

fn cannot_open(error: &io::Error) -> MountFailure {
    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(libc::EBADF));
    MountFailure { step: MountStep::Open, errno }
}

fn mount_in(
    overlays: &[Overlay],
    within: Option<&Namespaces>,
    with_user: bool,
    writable: Option<&[CString]>,
) -> Result<Namespaces, MountFailure> {
    let fail = |step, errno| MountFailure { step, errno };
    let start = |errno| fail(MountStep::Start, errno);
    let _start = StartGuard::begin().ok_or(start(Errno::ECANCELED))?;
    let map = |id: u32| CString::new(format!("{id} {id} 1\n")).unwrap_or_default();
    let mut child = Child {
        overlays,
        within,
        writable,
        kept: writable.unwrap_or_default().iter().map(|_| None).collect(),
        hidden: overlays.iter().map(|_| HiddenMounts::default()).collect(),
        maps: with_user.then(|| (map(geteuid().as_raw()), map(getegid().as_raw()))),
        user: -1,
        mount: -1,
        root: -1,
        step: MountStep::Start,
        result: Err(Errno::ECHILD),
    };
    let mut stack = Box::<[MaybeUninit<u128>]>::new_uninit_slice(STACK / size_of::<u128>());
    // No handler of this process runs in the child.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).map_err(start)?;
    // No signal reports the end of the child, so other waits of this process never find the child.
    // SAFETY: the stack is aligned and belongs to the child alone. Other memory of the child lives
    // and is not touched here, because this thread waits until the child ends (CLONE_VFORK).
    let result = Errno::result(unsafe {
        libc::clone(
            begin,
            stack.as_mut_ptr_range().end.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES,
            (&raw mut child).cast(),
        )
    });
    let _ = before.thread_set_mask();
    let pid = result.map_err(start)?;
    // SAFETY: the status is not wanted, so the pointer may be null.
    while Errno::result(unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WCLONE) })
        == Err(Errno::EINTR)
    {}
    let [user, mount, root] = [child.user, child.mount, child.root].map(|number| {
        // SAFETY: the child opened the number in the shared table, and nothing else owns it.
        (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) })
    });
    child.result.map_err(|errno| fail(child.step, errno))?;
    let up = |fd: Option<OwnedFd>| {
        let fd = fd.ok_or(io::ErrorKind::NotFound)?;
        move_up(fd)
    };
    Ok(Namespaces {
        user: user.map(move_up).transpose().map_err(|error| cannot_open(&error))?,
        mount: up(mount).map_err(|error| cannot_open(&error))?,
        root: up(root).map_err(|error| cannot_open(&error))?,
    })
}

extern "C" fn begin(child: *mut c_void) -> c_int {
    // SAFETY: the pointer comes from `mount_overlays`, which waits.
    let child = unsafe { &mut *child.cast::<Child>() };
    child.result = child.run();
    0
}

impl Child<'_> {
    fn run(&mut self) -> Result<(), Errno> {
        if self.maps.is_some() {
            self.step = MountStep::UserNamespace;
            unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
        } else {
            self.step = MountStep::MountNamespace;
            if let Some(outer) = self.within {
                outer.enter()?;
            }
            unshare(libc::CLONE_NEWNS)?;
        }
        if let Some((users, groups)) = &self.maps {
            self.step = MountStep::Maps;
            write(c"/proc/self/setgroups", c"deny")?;
            write(c"/proc/self/uid_map", users)?;
            write(c"/proc/self/gid_map", groups)?;
        }
        self.step = MountStep::Propagation;
        mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_PRIVATE, c"")?;
        self.step = MountStep::Protection;
        self.protect().map_err(|errno| Errno::from_raw(errno.raw_os_error()))?;
        for (index, overlay) in self.overlays.iter().enumerate() {
            if overlay.outer.is_none() {
                self.step = MountStep::Overlay(index);
                chdir(overlay.layers.as_c_str())?;
                mount(&overlay.layers, &overlay.target, c"overlay", 0, &overlay.options)?;
            }
        }
        self.mount_hidden().map_err(|errno| Errno::from_raw(errno.raw_os_error()))?;
        self.step = MountStep::Open;
        if self.maps.is_some() {
            self.user = open(c"/proc/self/ns/user", libc::O_RDONLY)?;
        }
        self.mount = open(c"/proc/self/ns/mnt", libc::O_RDONLY)?;
        self.root = open(c"/", libc::O_PATH | libc::O_DIRECTORY)?;
        Ok(())
    }
}

impl Child<'_> {
    /// Makes all mounts read-only, except for copies of the writable directories.
    fn protect(&mut self) -> Result<(), rustix::io::Errno> {
        let Some(writable) = self.writable else { return Ok(()) };
        for (kept, path) in self.kept.iter_mut().zip(writable) {
            *kept = Some(copy(path, OpenTreeFlags::AT_RECURSIVE)?);
        }
        make_read_only(c"/")?;
        for (kept, path) in self.kept.iter_mut().zip(writable) {
            place(kept.take(), path)?;
        }
        Ok(())
    }

    /// Mounts the overlays whose layers an outer overlay hides. The outer ones are taken away until
    /// the new ones are mounted among the layers.
    fn mount_hidden(&mut self) -> Result<(), rustix::io::Errno> {
        let overlays = self.overlays;
        let hidden = || {
            let all = overlays.iter().enumerate();
            all.filter_map(|(index, overlay)| Some((index, overlay, overlay.outer.as_deref()?)))
        };
        let is_first = |index: usize, outer: &CStr| {
            overlays[..index].iter().all(|overlay| overlay.outer.as_deref() != Some(outer))
        };
        for (index, _, outer) in hidden() {
            self.step = MountStep::Overlay(index);
            self.hidden[index].lower = Some(copy(outer, OpenTreeFlags::empty())?);
            if is_first(index, outer) {
                self.hidden[index].again = Some(copy(outer, OpenTreeFlags::AT_RECURSIVE)?);
            }
        }
        for (index, _, outer) in hidden() {
            if is_first(index, outer) {
                self.step = MountStep::Overlay(index);
                unmount(outer, UnmountFlags::DETACH)?;
            }
        }
        for (index, overlay, _) in hidden() {
            self.step = MountStep::Overlay(index);
            rustix::process::chdir(overlay.layers.as_c_str())?;
            place(self.hidden[index].lower.take(), OUTER)?;
            mount(&overlay.layers, MERGED, c"overlay", 0, &overlay.options)
                .map_err(|errno| rustix::io::Errno::from_raw_os_error(errno as i32))?;
            self.hidden[index].merged = Some(copy(MERGED, OpenTreeFlags::empty())?);
        }
        for (index, _, outer) in hidden() {
            place(self.hidden[index].again.take(), outer)?;
        }
        for (index, overlay, _) in hidden() {
            place(self.hidden[index].merged.take(), &overlay.target)?;
        }
        Ok(())
    }
}

/// Makes a mount and all mounts below read-only. Needs Linux 5.12.
fn make_read_only(path: &CStr) -> Result<(), rustix::io::Errno> {
    /// `struct mount_attr` of the kernel.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user: u64,
    }
    const READ_ONLY: u64 = 1;
    let attributes = Attributes { set: READ_ONLY, clear: 0, propagation: 0, user: 0 };
    // SAFETY: the path and the structure are live, and the kernel gets the size of the structure.
    let result = Errno::result(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    });
    result.map(drop).map_err(|errno| rustix::io::Errno::from_raw_os_error(errno as i32))
}

/// Copies a mount, which is then at no place.
fn copy(path: &CStr, flags: OpenTreeFlags) -> Result<OwnedFd, rustix::io::Errno> {
    let flags = flags | OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    open_tree(CWD, path, flags)
}

/// Places a copied mount, if there is one.
fn place(mount: Option<OwnedFd>, path: &CStr) -> Result<(), rustix::io::Errno> {
    match mount {
        Some(mount) => move_mount(mount, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH),
        None => Ok(()),
    }
}

fn unshare(flags: c_int) -> Result<(), Errno> {
    // SAFETY: the call changes only this child.
    Errno::result(unsafe { libc::unshare(flags) }).map(drop)
}

fn mount(
    source: &CStr,
    target: &CStr,
    kind: &CStr,
    flags: libc::c_ulong,
    options: &CStr,
) -> Result<(), Errno> {
    // SAFETY: the strings are live.
    Errno::result(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    })
    .map(drop)
}

fn open(path: &CStr, flags: c_int) -> Result<RawFd, Errno> {
    // SAFETY: the string is live, and the flags need no mode.
    Errno::result(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) })
}

/// Writes a file of `/proc` in one call, as the kernel requires.
fn write(path: &CStr, text: &CStr) -> Result<(), Errno> {
    let file = open(path, libc::O_WRONLY)?;
    let bytes = text.to_bytes();
    // SAFETY: the buffer is live and has this length.
    let result = Errno::result(unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) });
    // SAFETY: the number was opened above, and nothing else owns it.
    unsafe { libc::close(file) };
    result.map(drop)
}

impl Namespaces {
    /// Creates a command that runs in the namespaces, in this directory, and receives SIGTERM if the
    /// calling thread ends before.
    pub fn command(&self, program: &str, directory: &Path) -> io::Result<Command> {
        let user = self.user.as_ref().map(OwnedFd::try_clone).transpose()?;
        let own = Self { user, mount: self.mount.try_clone()?, root: self.root.try_clone()? };
        let directory = CString::new(directory.as_os_str().as_bytes())?;
        let mut command = Command::new(program);
        let parent = getpid();
        let enter = move || {
            own.enter()?;
            // After the change of namespaces, which removes the request.
            set_pdeathsig(Signal::SIGTERM)?;
            if getppid() != parent {
                return Err(Errno::ECANCELED.into());
            }
            Ok(chdir(directory.as_c_str())?)
        };
        // SAFETY: only async-signal-safe functions run between fork and exec.
        unsafe { command.pre_exec(enter) };
        Ok(command)
    }

    /// Moves the calling process into the namespaces. Its working directory becomes the root.
    ///
    /// The function is async-signal-safe. The process has one thread, and shares neither its
    /// working directory nor its root with another process.
    pub fn enter(&self) -> Result<(), Errno> {
        if let Some(user) = &self.user {
            set_namespace(user.as_raw_fd(), libc::CLONE_NEWUSER)?;
        }
        set_namespace(self.mount.as_raw_fd(), libc::CLONE_NEWNS)?;
        // The kernel selects the topmost root, which differs in a `chroot`.
        fchdir(&self.root)?;
        chroot(c".")
    }
}

fn set_namespace(number: RawFd, kind: c_int) -> Result<(), Errno> {
    // SAFETY: the call changes only this process.
    Errno::result(unsafe { libc::setns(number, kind) }).map(drop)
}
