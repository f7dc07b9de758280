//! Systems with fewer features, by a filter of system calls.

use std::io;

/// Option of `prctl` that makes a process a subreaper.
const SET_SUBREAPER: u32 = libc::PR_SET_CHILD_SUBREAPER as u32;
/// Flag of `openat` for files without a name. `O_TMPFILE` also contains `O_DIRECTORY`.
const UNNAMED: u32 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;

/// Offset of the number in the description of a call, and of the lower half of an argument.
const NUMBER: u32 = 0;
const fn argument(index: u32) -> u32 {
    16 + 8 * index + if cfg!(target_endian = "big") { 4 } else { 0 }
}

const fn load(offset: u32) -> libc::sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, offset)
}

/// Continues with the next statement if the loaded value is this one; otherwise skips some.
const fn if_equal(value: u32, skipped: u8) -> libc::sock_filter {
    statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, skipped, value)
}

const fn if_set(bits: u32, skipped: u8) -> libc::sock_filter {
    statement(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, skipped, bits)
}

const fn fail(errno: i32) -> libc::sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno as u32)
}

const fn statement(code: u32, skipped: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: skipped, k }
}

/// Takes features away from this thread and from the programs that it executes: none in the way
/// `0`, pidfds in the way `pidfd`, and also subreapers and unnamed files in the way `1`. Makes only
/// system calls, so that the call may come between fork and exec.
pub(crate) fn take_features(way: &str) -> io::Result<()> {
    let allow = statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW);
    let mut filter = [
        load(NUMBER),
        if_equal(libc::SYS_pidfd_open as u32, 1),
        fail(libc::ENOSYS),
        if way == "1" { load(NUMBER) } else { allow },
        if_equal(libc::SYS_prctl as u32, 3),
        load(argument(0)),
        if_equal(SET_SUBREAPER, 1),
        fail(libc::EINVAL),
        load(NUMBER),
        if_equal(libc::SYS_openat as u32, 3),
        load(argument(2)),
        if_set(UNNAMED, 1),
        fail(libc::EOPNOTSUPP),
        allow,
    ];
    if way == "0" {
        return Ok(());
    }
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // Only root may filter calls without giving up programs with the set-uid bit.
    // SAFETY: plain calls; the filter lives until they return.
    let is_set = unsafe {
        let set =
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program);
        set() == 0 || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && set() == 0
    };
    if is_set { Ok(()) } else { Err(io::Error::last_os_error()) }
}
