//! `exec`: a program replaces the shell.
//!
//! The process to replace is the one started by the user. If this is a supervisor, the interpreter
//! sends the program with its descriptors and ends. The interpreter therefore checks in advance, as
//! far as possible, that the program can be executed.

use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, access};

use super::spawn::{ProgramSpec, SHELL, interpreter, is_text, start_of};
use crate::buffers::FileBuffer;
use crate::descriptors::FdTable;
use crate::system::umask as own_umask;
use ftsh_machine::effect::Umask;
use ftsh_machine::event::{SpawnError, SpawnErrorKind};
use ftsh_sys as sys;
use ftsh_sys::CStringArray;
use ftsh_sys::os_error::{self, plain};

/// The kernel's limit for one argument or variable, including its NUL.
const MAX_STRING_SIZE: usize = 128 * 1024;
/// Upper bound of the kernel's limit for all arguments and variables, which is a quarter of the
/// stack limit.
const MAX_TOTAL_SIZE: u64 = 6 * 1024 * 1024;

/// Program that replaces the shell.
pub struct Replacement {
    file: CString,
    directory: Option<PathBuf>,
    umask: Umask,
    arguments: CStringArray,
    environment: CStringArray,
    /// New descriptors, each with its number.
    descriptors: Vec<(OwnedFd, i32)>,
}

impl Replacement {
    /// Prepares a program and checks that it can be executed.
    pub fn of(program: &ProgramSpec, table: &FdTable) -> Result<Self, SpawnError> {
        let found = program.find()?;
        let file = program.directory.resolve(found.as_os_str().as_bytes());
        let refuse = |errno| program.explain(&found, errno);
        if !file.exists() {
            return Err(refuse(Errno::ENOENT));
        }
        if file.is_dir() || access(&file, AccessFlags::X_OK).is_err() {
            return Err(refuse(Errno::EACCES));
        }
        if interpreter(&file).is_some_and(|name| !Path::new(&name.to_string()).exists()) {
            return Err(refuse(Errno::ENOENT));
        }
        let start = start_of(&file);
        let by_shell = !start.starts_with(b"#!")
            && !start.is_empty()
            && is_text(&start)
            && !start.starts_with(b"\x7fELF");
        let prepared = if by_shell { program.prepare_script(&file)? } else { program.prepare()? };
        let file = if by_shell { Path::new(SHELL) } else { &file };
        if is_too_long(&prepared.arguments, &prepared.environment) {
            return Err(refuse(Errno::E2BIG));
        }
        let mut descriptors = Vec::new();
        for (from, to) in table.changes() {
            let copy = sys::duplicate(from).map_err(|error| {
                let message = format!("descriptor {to}: {}", plain(&error));
                let errno = os_error::name(&error);
                SpawnError { kind: SpawnErrorKind::Redirect, message, errno }
            })?;
            descriptors.push((copy, to));
        }
        Ok(Self {
            file: CString::new(file.as_os_str().as_bytes()).map_err(|_| refuse(Errno::ENOENT))?,
            directory: program.directory.path.is_some().then(|| program.directory.resolve(b"")),
            umask: prepared.umask,
            arguments: prepared.arguments,
            environment: prepared.environment,
            descriptors,
        })
    }

    /// Executes the program in this process. Returns only on failure, with all state restored.
    #[expect(unsafe_code, reason = "the program gets the numbers of the script")]
    pub fn execute(&self, subreaper: bool) -> io::Error {
        let before = Saved::take(subreaper);
        if let Some(directory) = &self.directory
            && let Err(error) = std::env::set_current_dir(directory)
        {
            return error;
        }
        if let Some(umask) = self.umask {
            change_umask(umask);
        }
        let changes = self.descriptors.iter().map(|(from, to)| (from.as_fd(), *to));
        // SAFETY: the numbers belong to the script. A descriptor of the shell with one of them is not used
        // before the numbers are restored.
        let replaced = match unsafe { sys::Replaced::set(changes) } {
            Ok(replaced) => replaced,
            Err(error) => return error,
        };
        let errno = sys::exec(&self.file, &self.arguments, &self.environment);
        replaced.restore();
        drop(before);
        errno.into()
    }

    /// Sends the program to the supervisor, which executes it.
    pub fn send(&self, socket: &UnixStream) -> io::Result<()> {
        let mut head = CStringArray::default();
        head.push(&[self.file.as_bytes()]);
        let directory =
            self.directory.as_ref().map_or(&b""[..], |path| path.as_os_str().as_bytes());
        head.push(&[directory]);
        head.push(&[self.umask.map_or(String::new(), |umask| umask.to_string()).as_bytes()]);
        for (_, number) in &self.descriptors {
            head.push(&[number.to_string().as_bytes()]);
        }
        let content = FileBuffer::new()?;
        for block in [&head, &self.arguments, &self.environment] {
            content.append(&(block.bytes().len() as u64).to_ne_bytes())?;
            content.append(block.bytes())?;
        }
        let content = content.reader()?;
        let descriptors = self.descriptors.iter().map(|(fd, _)| fd.as_fd());
        let descriptors: Vec<_> = std::iter::once(content.as_fd()).chain(descriptors).collect();
        sys::send_descriptors(socket, sys::Parcel::Program, &descriptors)
    }

    /// Decodes a sent program; none if it is incomplete.
    pub fn received(descriptors: Vec<OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut content = std::fs::File::from(descriptors.next()?);
        let mut next = || {
            let mut size = [0; 8];
            content.read_exact(&mut size).ok()?;
            let mut bytes = vec![0; u64::from_ne_bytes(size) as usize];
            content.read_exact(&mut bytes).ok()?;
            Some(CStringArray::from_bytes(bytes))
        };
        let (head, arguments, environment) = (next()?, next()?, next()?);
        let mut head = head.strings();
        let file = CString::new(head.next()?).ok()?;
        let directory = head.next()?;
        let directory =
            (!directory.is_empty()).then(|| PathBuf::from(std::ffi::OsStr::from_bytes(directory)));
        let umask = match head.next()? {
            b"" => None,
            umask => Some(str::from_utf8(umask).ok()?.parse().ok()?),
        };
        let numbers = head.map(|number| str::from_utf8(number).ok()?.parse().ok());
        let numbers: Vec<i32> = numbers.collect::<Option<_>>()?;
        // Moves the descriptors away from the numbers that will be set.
        let descriptors = descriptors.map(sys::move_up).collect::<io::Result<Vec<_>>>().ok()?;
        if descriptors.len() != numbers.len() {
            return None; // the receiver had no room for some of them
        }
        let descriptors = descriptors.into_iter().zip(numbers).collect();
        Some(Self { file, directory, umask, arguments, environment, descriptors })
    }

    /// Returns the file to execute, for a message.
    pub fn file(&self) -> String {
        self.file.to_string_lossy().into_owned()
    }
}

fn change_umask(umask: u16) {
    nix::sys::stat::umask(Mode::from_bits_truncate(umask.into()));
}

fn is_too_long(arguments: &CStringArray, environment: &CStringArray) -> bool {
    let mut total = 0;
    for string in arguments.strings().chain(environment.strings()) {
        if string.len() >= MAX_STRING_SIZE {
            return true;
        }
        total += (string.len() + 1 + size_of::<usize>()) as u64;
    }
    let stack = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_STACK);
    total > stack.map_or(MAX_TOTAL_SIZE, |(soft, _)| (soft / 4).min(MAX_TOTAL_SIZE))
}

/// State that a failed `exec` restores.
struct Saved {
    directory: Option<PathBuf>,
    umask: u16,
    subreaper: bool,
}

impl Saved {
    fn take(subreaper: bool) -> Self {
        sys::prepare_exec(true, subreaper);
        let directory = std::env::current_dir().ok();
        Self { directory, umask: own_umask(), subreaper }
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        sys::prepare_exec(false, self.subreaper);
        if let Some(directory) = &self.directory {
            let _ = std::env::set_current_dir(directory);
        }
        change_umask(self.umask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_program_is_refused() {
        let (sender, receiver) = UnixStream::pair().expect("sockets");
        let null = || std::fs::File::open("/dev/null").expect("a device");
        let mut arguments = CStringArray::default();
        arguments.push(&[b"cat"]);
        let sent = Replacement {
            file: c"/bin/cat".into(),
            directory: None,
            umask: Some(0o22),
            arguments,
            environment: CStringArray::default(),
            descriptors: vec![(null().into(), 0), (null().into(), 1)],
        };
        for lost in 0..3 {
            sent.send(&sender).expect("it is sent");
            let (_, mut descriptors) = sys::receive_descriptors(&receiver).expect("a parcel");
            descriptors.truncate(3 - lost);
            let whole = Replacement::received(descriptors);
            assert_eq!(whole.is_some_and(|it| it.descriptors.len() == 2), lost == 0, "{lost}");
        }
        assert!(Replacement::received(Vec::new()).is_none());
    }
}
