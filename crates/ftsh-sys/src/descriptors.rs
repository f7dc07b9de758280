//! Descriptors and their limit.

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

/// The lowest number of a descriptor of our own: those below are the script's.
const FIRST_OWN: c_int = 10;

/// A descriptor by its number: one that the shell was started with, or one that stays open while
/// the result is used.
pub fn borrow(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the shell never closes the descriptors it was started with; where one isn't open,
    // using it gives EBADF.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Duplicates a descriptor to a number outside the script's range, closed on exec.
pub fn duplicate(fd: BorrowedFd) -> io::Result<OwnedFd> {
    fcntl_dupfd_cloexec(fd, FIRST_OWN).map_err(|errno| match errno {
        // The limit is below the numbers of our own: no further descriptor can be opened either.
        rustix::io::Errno::INVAL => rustix::io::Errno::MFILE.into(),
        errno => errno.into(),
    })
}

/// Whether a descriptor has a number of our own.
pub fn is_own(number: RawFd) -> bool {
    number >= FIRST_OWN
}

/// Whether so many descriptors of our own can be opened now, and so many in all. None is opened for
/// the answer: other threads may need those that are left.
pub fn can_open(own: usize, all: usize) -> bool {
    const AT_ONCE: c_int = 256;
    let most = soft(limit()).min(FileLimit::HIGHEST) as c_int;
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
    // SAFETY: the kernel reads and writes as many elements as there are; nothing is waited for.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) };
    polled.iter().filter(|it| it.revents & libc::POLLNVAL != 0).count()
}

/// Moves a descriptor out of the script's range.
pub fn move_up(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() >= FIRST_OWN { Ok(fd) } else { duplicate(fd.as_fd()) }
}

/// Puts a descriptor at a number of the script's range, for an `exec`.
pub fn install(fd: RawFd, number: RawFd) -> io::Result<()> {
    // SAFETY: what is replaced is the script's, or kept and put back before anything of ours uses
    // it: a pidfd may have a low number.
    if unsafe { libc::dup2(fd, number) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What was open at a number that `install` replaces.
pub struct Kept {
    fd: OwnedFd,
    closed_on_exec: bool,
}

impl Kept {
    /// Keeps what is open at a number; none if nothing is.
    pub fn of(number: RawFd) -> Option<Self> {
        let fd = duplicate(borrow(number)).ok()?;
        Some(Self { fd, closed_on_exec: !is_passed_on(number) })
    }

    /// The descriptor that keeps it open.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Puts it back.
    pub fn restore(&self, number: RawFd) {
        if install(self.fd.as_raw_fd(), number).is_ok() && self.closed_on_exec {
            let flags = FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC);
            let _ = fcntl(borrow(number), flags);
        }
    }
}

/// Closes a number of the script's range.
pub fn close_number(number: RawFd) {
    // SAFETY: what is closed was put there by `install`, or nobody in this process uses it any more.
    unsafe { libc::close(number) };
}

/// Closes all descriptors but these. Nobody in this process may use another one any more, not even to drop it.
pub fn close_all(but: &[BorrowedFd]) {
    let close = |number| {
        if but.iter().all(|it| it.as_raw_fd() != number) {
            close_number(number);
        }
    };
    // The list takes a descriptor itself, and there is none without `/proc`.
    let mut numbers = 0..USUAL_LIMIT;
    loop {
        match (open_numbers(), numbers.next()) {
            (Ok(open), _) => return open.into_iter().for_each(close),
            (Err(_), Some(number)) => close(number),
            (Err(_), None) => return,
        }
    }
}

/// Descriptors have lower numbers, unless the limit on open files was raised.
const USUAL_LIMIT: RawFd = 1024;

/// The numbers of all open descriptors.
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

/// Whether a number is an open descriptor that children inherit.
pub fn is_passed_on(number: RawFd) -> bool {
    fcntl(borrow(number), FcntlArg::F_GETFD).is_ok_and(|flags| flags & libc::FD_CLOEXEC == 0)
}

/// Makes a group the terminal's foreground. Returns false if the group is gone or not of this session.
pub fn set_foreground(tty: BorrowedFd, group: pid_t) -> bool {
    without_stopping(|| tcsetpgrp(tty, Pid::from_raw(group))).is_ok()
}

/// The limit on open descriptors, raised when more are needed. Programs keep the one that the
/// shell was started with: some can't cope with high numbers.
#[derive(Default)]
pub struct FileLimit {
    raised_from: Option<Rlimit>,
    tried: bool,
    known: Option<usize>,
}

impl FileLimit {
    /// The shell itself never holds more, but for commands.
    const OWN: usize = 64;
    /// Below this many, the usual limit of 1024 serves.
    const MANY: usize = 300;
    const HIGHEST: u64 = 1 << 20;

    /// Raises the limit if this many descriptors, or a few times as many, may be too many.
    pub fn make_room_for(&mut self, count: usize) {
        if count >= Self::MANY {
            self.raise();
        }
    }

    /// Whether this many descriptors, or some more, are far from being too many.
    pub fn is_far_from(&mut self, count: usize) -> bool {
        count + Self::OWN < self.usable()
    }

    /// How many there may be besides those of scripts.
    pub fn usable(&mut self) -> usize {
        let read = || usize::try_from(soft(limit())).unwrap_or(usize::MAX);
        self.known.get_or_insert_with(read).saturating_sub(FIRST_OWN as usize)
    }

    /// Raises the limit as far as it can be; false if that was tried before or can't be done.
    pub fn raise(&mut self) -> bool {
        if std::mem::replace(&mut self.tried, true) {
            return false;
        }
        let old = limit();
        let wanted = old.maximum.unwrap_or(u64::MAX).min(Self::HIGHEST);
        let new = Rlimit { current: Some(wanted.max(soft(old))), ..old };
        if setrlimit(Resource::Nofile, new).is_ok() {
            self.raised_from = Some(old);
            self.known = None;
            return wanted > soft(old);
        }
        false
    }

    /// Gives a new child the limit that the shell was started with.
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

/// How many descriptors a message holds at most: a table, and one more.
const MOST_SENT: usize = 11;

/// What descriptors are sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parcel {
    /// A program that is to be executed.
    Program = b'x' as isize,
    /// A lock that is to be held as well.
    Lock = b'l' as isize,
}

/// Sends descriptors to another process, in one message.
pub fn send_descriptors(
    socket: &UnixStream,
    parcel: Parcel,
    descriptors: &[RawFd],
) -> io::Result<()> {
    let byte = [parcel as u8];
    let message = [IoSlice::new(&byte)];
    let rights = [ControlMessage::ScmRights(descriptors)];
    sendmsg::<()>(socket.as_raw_fd(), &message, &rights, MsgFlags::empty(), None)?;
    Ok(())
}

/// Takes descriptors that another process sent; does not wait for any.
pub fn receive_descriptors(socket: &UnixStream) -> io::Result<(Parcel, Vec<OwnedFd>)> {
    let mut byte = [0];
    let mut message = [IoSliceMut::new(&mut byte)];
    let mut space = nix::cmsg_space!([RawFd; MOST_SENT]);
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut message, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: they have only just come into being, and belong to nobody else.
            descriptors
                .extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    let is = |parcel: &Parcel| received.bytes == 1 && byte[0] == *parcel as u8;
    let parcel = [Parcel::Program, Parcel::Lock].into_iter().find(is);
    Ok((parcel.ok_or(io::ErrorKind::UnexpectedEof)?, descriptors))
}

/// Waits with the sharpness of nanoseconds (Linux 5.11), no longer than `timeout` (none: forever);
/// says how many events there were.
pub fn epoll_wait(
    epoll: BorrowedFd,
    events: &mut [libc::epoll_event],
    timeout: Option<Duration>,
) -> Result<usize, Errno> {
    // The kernel's own structure: 64 bits each on every machine.
    let timeout: Option<[i64; 2]> =
        timeout.map(|timeout| [timeout.as_secs() as i64, timeout.subsec_nanos().into()]);
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel writes no more events than there is room for, and only reads the time; no
    // signal mask is given.
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
