//! File descriptors and their limit.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use libc::{c_int, pid_t};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use nix::unistd::{Pid, tcsetpgrp};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit, setrlimit};
use rustix::termios::tcgetwinsize;

use super::children::process;
use super::signals::without_stopping;

/// Lowest number of a descriptor of the shell itself; scripts use lower numbers.
const FIRST_OWN: c_int = 10;

/// Returns a descriptor by its number.
///
/// # Safety
///
/// The number stays open while the result is used, or the result is only used for calls that do no
/// harm to another owner of the number.
unsafe fn borrow(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: as the caller promises; where the number is not open, calls fail with EBADF.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Descriptor of the script's range that this process was started with, and keeps open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inherited(RawFd);

impl Inherited {
    /// Returns the descriptor of a number of the script's range, if children inherit it.
    ///
    /// Nothing in this process owns such a descriptor, because the shell's own descriptors are
    /// closed on exec.
    pub fn of(number: RawFd) -> Option<Self> {
        (!is_own(number) && is_passed_on(number)).then_some(Self(number))
    }

    /// Returns the number of the descriptor.
    pub fn number(self) -> RawFd {
        self.0
    }
}

impl AsFd for Inherited {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: nothing owns the number, hence nothing closes it. An `exec` replaces it for the
        // new program.
        unsafe { borrow(self.0) }
    }
}

/// Duplicates a descriptor to a number outside the script's range, closed on exec.
pub fn duplicate(fd: BorrowedFd) -> io::Result<OwnedFd> {
    fcntl_dupfd_cloexec(fd, FIRST_OWN).map_err(|errno| match errno {
        // The limit is below the range of the shell, where no further descriptor can be opened.
        rustix::io::Errno::INVAL => rustix::io::Errno::MFILE.into(),
        errno => errno.into(),
    })
}

/// Returns true if a number is in the range of the shell itself.
pub fn is_own(number: RawFd) -> bool {
    number >= FIRST_OWN
}

/// Returns true if `own` descriptors of the shell, and `all` descriptors in total, can be opened
/// now.
///
/// No descriptor is opened for the answer, because other threads may need the remaining ones.
pub fn can_open(own: usize, all: usize) -> bool {
    const AT_ONCE: c_int = 256;
    let most = soft(limit()).min(FileLimit::MAX_LIMIT) as c_int;
    let (mut free, mut end) = (0, most);
    while end > FIRST_OWN && free < all {
        let start = FIRST_OWN.max(end - AT_ONCE);
        free += free_among(start..end);
        end = start;
    }
    free >= all || free >= own && free + free_among(0..FIRST_OWN.min(most)) >= all
}

fn free_among(numbers: Range<c_int>) -> usize {
    let mut polled: Vec<libc::pollfd> =
        numbers.map(|fd| libc::pollfd { fd, events: 0, revents: 0 }).collect();
    // SAFETY: the kernel reads and writes as many elements as there are.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) };
    polled.iter().filter(|it| it.revents & libc::POLLNVAL != 0).count()
}

/// Moves a descriptor out of the script's range.
pub fn move_up(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() >= FIRST_OWN { Ok(fd) } else { duplicate(fd.as_fd()) }
}

/// Duplicates a descriptor to a number that children inherit.
///
/// # Safety
///
/// Nothing in this process owns the number, or uses it expecting another file.
unsafe fn install(fd: BorrowedFd, number: RawFd) -> io::Result<()> {
    // SAFETY: as the caller promises.
    Errno::result(unsafe { libc::dup2(fd.as_raw_fd(), number) })?;
    Ok(())
}

/// Descriptors of the script's range that are replaced for a time.
pub struct Replaced {
    /// Replaced numbers, with their previous files and flags.
    kept: Vec<(RawFd, Option<(OwnedFd, FdFlag)>)>,
}

impl Replaced {
    /// Sets numbers to descriptors, of which none has one of these numbers. Restores all numbers
    /// after a failure.
    ///
    /// # Safety
    ///
    /// While the numbers are replaced, and while they are restored, nothing in this process owns them or
    /// uses them expecting another file.
    pub unsafe fn set<'a>(
        descriptors: impl IntoIterator<Item = (BorrowedFd<'a>, RawFd)>,
    ) -> io::Result<Self> {
        let mut this = Self { kept: Vec::new() };
        for (from, to) in descriptors {
            // SAFETY: only the flags are read, and the file is duplicated.
            let before = unsafe { borrow(to) };
            let kept = duplicate(before).ok().zip(flags(before));
            this.kept.push((to, kept));
            // SAFETY: as the caller promises.
            if let Err(error) = unsafe { install(from, to) } {
                this.restore();
                return Err(error);
            }
        }
        Ok(this)
    }

    /// Returns the previous file of a number.
    pub fn before(&self, number: RawFd) -> Option<BorrowedFd<'_>> {
        let (_, kept) = self.kept.iter().find(|(replaced, _)| *replaced == number)?;
        kept.as_ref().map(|(fd, _)| fd.as_fd())
    }

    /// Restores the previous files of all numbers, also after further changes.
    pub fn restore(&self) {
        for (number, kept) in self.kept.iter().rev() {
            // SAFETY: as the caller of `set` has promised.
            unsafe {
                match kept {
                    Some((fd, flags)) => {
                        if install(fd.as_fd(), *number).is_ok() && !flags.is_empty() {
                            let _ = fcntl(borrow(*number), FcntlArg::F_SETFD(*flags));
                        }
                    }
                    None => close_number(*number),
                }
            }
        }
    }
}

fn flags(fd: BorrowedFd) -> Option<FdFlag> {
    fcntl(fd, FcntlArg::F_GETFD).ok().map(FdFlag::from_bits_retain)
}

/// Closes a number.
///
/// # Safety
///
/// Nothing in this process uses the number any more, not even to drop it.
pub unsafe fn close_number(number: RawFd) {
    // SAFETY: as the caller promises.
    unsafe { libc::close(number) };
}

/// Closes all descriptors except these.
///
/// # Safety
///
/// Nothing in this process uses another descriptor any more, not even to drop it.
pub unsafe fn close_all(but: &[BorrowedFd]) {
    let close = |number| {
        if but.iter().all(|it| it.as_raw_fd() != number) {
            // SAFETY: as the caller promises.
            unsafe { close_number(number) };
        }
    };
    // The list takes a descriptor itself, and does not exist without `/proc`.
    let mut numbers = 0..USUAL_LIMIT;
    loop {
        match (open_numbers(), numbers.next()) {
            (Ok(open), _) => return open.into_iter().for_each(close),
            (Err(_), Some(number)) => close(number),
            (Err(_), None) => return,
        }
    }
}

/// Usual limit on open files. Descriptors have lower numbers unless the limit was raised.
const USUAL_LIMIT: RawFd = 1024;

/// Returns the numbers of all open descriptors.
fn open_numbers() -> io::Result<Vec<RawFd>> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    Ok(open)
}

/// Adds status flags to an open file: `O_NONBLOCK`, `O_APPEND`.
pub fn add_flags(fd: BorrowedFd, added: OFlag) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | added))?;
    Ok(())
}

/// Returns true if a number is an open descriptor that children inherit.
pub fn is_passed_on(number: RawFd) -> bool {
    // SAFETY: only the flags are read.
    let fd = unsafe { borrow(number) };
    flags(fd).is_some_and(|flags| !flags.contains(FdFlag::FD_CLOEXEC))
}

/// Makes a group the foreground of the terminal. Returns false if the group is gone or in another
/// session.
pub fn set_foreground(tty: BorrowedFd, group: pid_t) -> bool {
    without_stopping(|| tcsetpgrp(tty, Pid::from_raw(group))).is_ok()
}

/// Limit on open descriptors, raised on demand.
///
/// Programs keep the limit that the shell was started with, because some programs cannot handle
/// high numbers.
#[derive(Default)]
pub struct FileLimit {
    raised_from: Option<Rlimit>,
    tried: bool,
    known: Option<usize>,
}

impl FileLimit {
    /// Maximum number of descriptors that the shell holds for itself, without those of commands.
    const OWN: usize = 64;
    /// Number of descriptors below which the usual limit of 1024 suffices.
    const MANY: usize = 300;
    const MAX_LIMIT: u64 = 1 << 20;

    /// Raises the limit if `count` descriptors, or a few times `count`, may exceed the limit.
    pub fn make_room_for(&mut self, count: usize) {
        if count >= Self::MANY {
            self.raise();
        }
    }

    /// Returns true if `count` descriptors, or some more, are far below the limit.
    pub fn is_far_from(&mut self, count: usize) -> bool {
        count + Self::OWN < self.usable()
    }

    /// Returns the maximum number of descriptors, without those of scripts.
    pub fn usable(&mut self) -> usize {
        let read = || usize::try_from(soft(limit())).unwrap_or(usize::MAX);
        self.known.get_or_insert_with(read).saturating_sub(FIRST_OWN as usize)
    }

    /// Raises the limit to the possible maximum. Returns false if that was tried before or fails.
    pub fn raise(&mut self) -> bool {
        if std::mem::replace(&mut self.tried, true) {
            return false;
        }
        let old = limit();
        let wanted = old.maximum.unwrap_or(u64::MAX).min(Self::MAX_LIMIT);
        let new = Rlimit { current: Some(wanted.max(soft(old))), ..old };
        if setrlimit(Resource::Nofile, new).is_ok() {
            self.raised_from = Some(old);
            self.known = None;
            return wanted > soft(old);
        }
        false
    }

    /// Sets the limit of a new child to the limit that the shell was started with.
    pub fn restore_in(&self, pid: pid_t) {
        if let (Some(old), Some(pid)) = (self.raised_from, process(pid)) {
            let _ = prlimit(Some(pid), Resource::Nofile, old);
        }
    }
}

fn limit() -> Rlimit {
    getrlimit(Resource::Nofile)
}

fn soft(limit: Rlimit) -> u64 {
    limit.current.unwrap_or(u64::MAX)
}

/// Maximum number of descriptors in a message: a table, and one more.
const MAX_SENT: usize = 11;

/// Purpose of sent descriptors, or a message without descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parcel {
    /// A program to execute.
    Program,
    /// A lock to hold as well.
    Lock,
    /// The sender ends with this exit status.
    Exited(u8),
    /// The sender ends by this signal.
    Signaled(u8),
}

impl Parcel {
    fn to_bytes(self) -> [u8; 2] {
        match self {
            Self::Program => [b'x', 0],
            Self::Lock => [b'l', 0],
            Self::Exited(code) => [b'e', code],
            Self::Signaled(signal) => [b's', signal],
        }
    }

    fn from_bytes(bytes: [u8; 2]) -> Option<Self> {
        match bytes {
            [b'x', 0] => Some(Self::Program),
            [b'l', 0] => Some(Self::Lock),
            [b'e', code] => Some(Self::Exited(code)),
            [b's', signal] => Some(Self::Signaled(signal)),
            _ => None,
        }
    }
}

/// Sends descriptors to another process, in one message.
pub fn send_descriptors(
    socket: &UnixStream,
    parcel: Parcel,
    descriptors: &[BorrowedFd],
) -> io::Result<()> {
    let bytes = parcel.to_bytes();
    let message = [IoSlice::new(&bytes)];
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    sendmsg::<()>(socket.as_raw_fd(), &message, &rights, MsgFlags::empty(), None)?;
    Ok(())
}

/// Receives descriptors from another process, without waiting.
pub fn receive_descriptors(socket: &UnixStream) -> io::Result<(Parcel, Vec<OwnedFd>)> {
    let mut bytes = [0; 2];
    let mut message = [IoSliceMut::new(&mut bytes)];
    let mut space = nix::cmsg_space!([RawFd; MAX_SENT]);
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut message, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the descriptors are new, and belong to no other code.
            descriptors
                .extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    let is_whole = received.bytes == 2;
    let parcel = Parcel::from_bytes(bytes).filter(|_| is_whole);
    Ok((parcel.ok_or(io::ErrorKind::UnexpectedEof)?, descriptors))
}

/// Waits at most for `timeout` (`None`: forever), with a resolution of nanoseconds (Linux 5.11).
/// Returns the number of events.
pub fn epoll_wait(
    epoll: BorrowedFd,
    events: &mut [libc::epoll_event],
    timeout: Option<Duration>,
) -> Result<usize, Errno> {
    // The kernel's own structure: 64 bits for each field, on every machine.
    let timeout: Option<[i64; 2]> =
        timeout.map(|timeout| [timeout.as_secs() as i64, timeout.subsec_nanos().into()]);
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel writes at most as many events as there is room for, and only reads the
    // time; no signal mask is given.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            events.len() as c_int,
            timeout,
            std::ptr::null::<libc::sigset_t>(),
            0,
        )
    };
    Errno::result(count).map(|count| count as usize)
}

/// Returns the rows and columns of a terminal that reports them.
pub fn size(tty: &impl AsFd) -> Option<(u16, u16)> {
    let size = tcgetwinsize(tty).ok()?;
    (size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}
