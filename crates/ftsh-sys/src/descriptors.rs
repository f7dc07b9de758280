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

/// A descriptor of the script's range that this process was started with, and keeps open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inherited(RawFd);

impl Inherited {
    /// Returns the descriptor of a number of the script's range, if children inherit it. Nothing in this
    /// process owns such a descriptor: its own are closed on exec.
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
        // SAFETY: nothing owns the number, so that nothing closes it. An `exec` replaces it for the
        // program that comes.
        unsafe { borrow(self.0) }
    }
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
    let _ = poll_numbers(&mut polled, Some(Duration::ZERO));
    polled.iter().filter(|it| it.revents & libc::POLLNVAL != 0).count()
}

/// Waits until one of these numbers is ready, or until the timeout (none: forever). A number that is not
/// open is ready with `POLLNVAL`.
pub fn poll_numbers(
    polled: &mut [libc::pollfd],
    timeout: Option<Duration>,
) -> Result<usize, Errno> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as _,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = polled.len() as libc::nfds_t;
    // SAFETY: the kernel reads and writes as many elements as there are, and only reads the time.
    let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), count, timeout, std::ptr::null()) };
    Errno::result(ready).map(|count| count as usize)
}

/// Moves a descriptor out of the script's range.
pub fn move_up(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() >= FIRST_OWN { Ok(fd) } else { duplicate(fd.as_fd()) }
}

/// Puts a descriptor at a number, which children inherit.
///
/// # Safety
///
/// Nothing in this process owns the number, or uses it expecting another file.
unsafe fn install(fd: BorrowedFd, number: RawFd) -> io::Result<()> {
    // SAFETY: as the caller promises.
    Errno::result(unsafe { libc::dup2(fd.as_raw_fd(), number) })?;
    Ok(())
}

/// Descriptors of the script's range that lead elsewhere for a time.
pub struct Replaced {
    /// The numbers, with the file and the flags that each one had.
    kept: Vec<(RawFd, Option<(OwnedFd, FdFlag)>)>,
}

impl Replaced {
    /// Sets numbers to descriptors, of which none has one of these numbers. If that fails, all is as before.
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

    /// Returns the file that a number led to before.
    pub fn before(&self, number: RawFd) -> Option<BorrowedFd<'_>> {
        let (_, kept) = self.kept.iter().find(|(replaced, _)| *replaced == number)?;
        kept.as_ref().map(|(fd, _)| fd.as_fd())
    }

    /// Makes the numbers lead where they led before, also after they were set again.
    pub fn restore(&self) {
        for (number, kept) in self.kept.iter().rev() {
            // SAFETY: as whoever set the numbers has promised.
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

/// Closes all descriptors but these.
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

/// Returns true if a number is an open descriptor that children inherit.
pub fn is_passed_on(number: RawFd) -> bool {
    // SAFETY: only the flags are read.
    let fd = unsafe { borrow(number) };
    flags(fd).is_some_and(|flags| !flags.contains(FdFlag::FD_CLOEXEC))
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
    descriptors: &[BorrowedFd],
) -> io::Result<()> {
    let byte = [parcel as u8];
    let message = [IoSlice::new(&byte)];
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
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
