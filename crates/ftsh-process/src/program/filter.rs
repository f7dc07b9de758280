//! Execution of a filter of `json` in a process of its own.
//!
//! A single step of a filter can take any time and memory, and cannot be interrupted. The shell
//! therefore executes itself with an option that only shells use. A worker waits for the process and
//! kills the process of a canceled query. The process ends with the worker's shell.
//!
//! Call and results are in anonymous files, so neither side waits for the other one to read.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use bstr::{BString, ByteSlice};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::close;

use crate::buffers::FileBuffer;
use crate::paths::FdError;
use crate::workers::Control;
use ftsh_machine::effect::FilterCall;
use ftsh_machine::event::Reply;
use ftsh_machine::size::can_allocate;
use ftsh_syntax::slug::Slug;
use ftsh_sys::{self as sys, CStringArray, ExitStatus};

/// Option of a process that executes a filter. The process id of the shell follows.
const OPTION: &str = "--filter";
/// Maximum memory of the process in bytes, the program included.
const MAX_MEMORY: u64 = 1024 * 1024 * 1024;
/// First byte of the results: words, or a failure.
const WORDS: u8 = b'+';
const FAILED: u8 = b'-';
/// Length of a number that states a length.
const LEN: usize = size_of::<u64>();
/// Memory that a word needs besides its bytes, rounded up.
const WORD_OVERHEAD: usize = 64;
/// Exit status after a panic.
const PANICKED: i32 = 101;

/// Executes a filter, and returns its results.
pub(crate) fn filter_results(call: &FilterCall, control: &Control) -> Result<Reply, FdError> {
    let output = FileBuffer::new().map_err(FdError::Filter)?;
    let pid = start(call, &output).map_err(FdError::Filter)?;
    let ended = loop {
        match sys::wait_for_end(pid) {
            Err(Errno::EINTR) if control.is_cancelled() => _ = sys::kill(pid, libc::SIGKILL),
            Err(Errno::EINTR) => {}
            ended => break ended.map_err(|errno| FdError::Filter(errno.into()))?,
        }
    };
    match ended {
        ExitStatus::Exited(0) => {
            decode(&output.content().map_err(FdError::Filter)?).map_err(FdError::Filter)
        }
        ended => Ok(explain(ended)),
    }
}

/// Returns the failure of a process that ended without results.
fn explain(ended: ExitStatus) -> Reply {
    match ended {
        ExitStatus::Signaled(libc::SIGSEGV | libc::SIGBUS) => {
            Reply::Failed(Slug::Filter, ftsh_filter::failure(ftsh_filter::TOO_DEEP))
        }
        // The allocator aborts, and the kernel kills if memory runs out.
        ExitStatus::Signaled(libc::SIGABRT | libc::SIGKILL) => {
            let message = "the filter of `json` needs more memory than there is, or than 1 GiB";
            Reply::Failed(Slug::NoMemory, message.into())
        }
        _ => Reply::Failed(Slug::Filter, ftsh_filter::failure("its process ended unexpectedly")),
    }
}

fn start(call: &FilterCall, output: &FileBuffer) -> io::Result<i32> {
    let input = FileBuffer::new()?;
    input.append(&(call.filter.len() as u64).to_le_bytes())?;
    input.append(&call.filter)?;
    input.append(&call.text)?;
    let input = input.reader()?;
    let null: OwnedFd = OpenOptions::new().write(true).open("/dev/null")?.into();
    let (null, output) = (sys::move_up(null)?, output.writer());
    let mut arguments = CStringArray::default();
    let parent = std::process::id().to_string();
    for word in ["ftsh", OPTION, &parent] {
        arguments.push(&[word.as_bytes()]);
    }
    let launch = sys::Launch {
        program: c"/proc/self/exe",
        arguments: &arguments,
        environment: &CStringArray::default(),
        directory: None,
        descriptors: &[(input.as_fd(), 0), (output.as_fd(), 1), (null.as_fd(), 2)],
        umask: None,
    };
    Ok(sys::spawn(&launch)?)
}

/// Returns the results from the output of the process.
fn decode(output: &[u8]) -> io::Result<Reply> {
    match output.split_first() {
        Some((&WORDS, mut rest)) => {
            let mut words = Vec::new();
            while let Some((word, after)) = split_word(rest) {
                if !can_allocate(word.len() + WORD_OVERHEAD) {
                    return Err(io::ErrorKind::OutOfMemory.into());
                }
                words.push(BString::from(word));
                rest = after;
            }
            Ok(Reply::Words(words))
        }
        Some((&FAILED, rest)) => {
            let (slug, message) = rest.split_once_str("\n").unwrap_or((rest, b""));
            let slug = slug.to_str().ok().and_then(Slug::named).unwrap_or(Slug::Filter);
            Ok(Reply::Failed(slug, message.to_str_lossy().into_owned()))
        }
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Splits off a word that follows its length.
fn split_word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LEN>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// True if a command line requests the execution of a filter.
pub fn is_filter(words: &[OsString]) -> bool {
    words.first().is_some_and(|word| word == OPTION)
}

/// Executes the filter of standard input, and writes the results to standard output.
pub fn serve_filter(words: &[OsString]) -> ! {
    std::panic::set_hook(Box::new(|_| sys::exit_now(PANICKED)));
    sys::die_with_parent();
    let parent = words.get(1).and_then(|word| word.to_str()?.parse().ok());
    if !parent.is_some_and(sys::is_parent) {
        sys::exit_now(PANICKED);
    }
    // The shell may have passed more descriptors, such as the end of a pipe.
    for number in 3..=9 {
        let _ = close(number);
    }
    limit(Resource::RLIMIT_AS, MAX_MEMORY);
    limit(Resource::RLIMIT_CORE, 0);
    sys::exit_now(i32::from(answer().is_err()))
}

/// Lowers a limit of this process.
fn limit(resource: Resource, most: u64) {
    if let Ok((soft, hard)) = getrlimit(resource) {
        let _ = setrlimit(resource, soft.min(most), hard);
    }
}

fn answer() -> io::Result<()> {
    let mut input = Vec::new();
    File::from(io::stdin().as_fd().try_clone_to_owned()?).read_to_end(&mut input)?;
    let (filter, text) = split_word(&input).ok_or(io::ErrorKind::UnexpectedEof)?;
    let call =
        FilterCall { text: BString::from(text).into(), filter: BString::from(filter).into() };
    drop(input);
    let mut out = BufWriter::new(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    match ftsh_filter::results(&call, u64::MAX) {
        Some(Reply::Words(words)) => {
            out.write_all(&[WORDS])?;
            for word in words {
                out.write_all(&(word.len() as u64).to_le_bytes())?;
                out.write_all(&word)?;
            }
        }
        Some(Reply::Failed(slug, message)) => {
            write!(out, "{}{slug}\n{message}", char::from(FAILED))?;
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    }
    out.flush()
}
