//! Queries to the file system. They may block, so workers perform all queries except those answered
//! from the page cache.

use std::ffi::OsStr;
use std::fs::{File, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use bstr::{BString, ByteSlice};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::unistd::{AccessFlags, User, faccessat};

use super::glob::{expand_pattern, find_files};
use super::local::{find_locally, is_allowed, learn};
use super::opening::open_as;
use super::recorded_words::update_words;
use crate::paths::{FdError, TaskDirectory};
use crate::system::free_resources;
use crate::transfer::check_files;
use crate::workers::{Call, Control};
use ftsh_machine::effect::{Access, Query, Umask};
use ftsh_machine::event::Reply;
use ftsh_syntax::ast::FileTest;
use ftsh_syntax::{MAX_SCRIPT_LENGTH, SCRIPT_TOO_LONG};
use ftsh_sys as sys;
use ftsh_sys::os_error::plain;

/// Opens a file for a redirection. Blocks until the file is open or the job is canceled.
pub(crate) fn open_file(
    directory: &TaskDirectory,
    path: &[u8],
    access: Access,
    umask: Umask,
    control: &Control,
) -> io::Result<OwnedFd> {
    if path.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    let flags = match access {
        Access::Read => OFlag::O_RDONLY,
        Access::Write => OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC,
        Access::Append => OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_APPEND,
    };
    open_as(&directory.resolve(path), flags, umask, control)
}

/// Answers a query about files if possible without blocking.
pub(crate) fn answer_now(directory: &TaskDirectory, query: &Query) -> Option<Reply> {
    let Query::Test(test, path) = query else { return None };
    if directory.view.is_some() {
        return None;
    }
    if path.is_empty() {
        return Some(Reply::Truth(false));
    }
    let last = if *test == FileTest::Link { OFlag::O_NOFOLLOW } else { OFlag::empty() };
    let result = match find_locally(&directory.resolve(path), last)? {
        Ok(file) => look_at(*test, file),
        Err(errno) => Err(errno.into()),
    };
    lenient(result).ok().map(Reply::Truth)
}

/// Tests an open file.
fn look_at(test: FileTest, file: OwnedFd) -> io::Result<bool> {
    match test {
        FileTest::Exists => Ok(true),
        FileTest::Readable => is_allowed(&file, AccessFlags::R_OK),
        FileTest::Writable => is_allowed(&file, AccessFlags::W_OK),
        FileTest::Executable => is_allowed(&file, AccessFlags::X_OK),
        _ => Ok(is_kind(test, File::from(file).metadata()?.file_type())),
    }
}

fn is_kind(test: FileTest, kind: FileType) -> bool {
    match test {
        FileTest::File => kind.is_file(),
        FileTest::Directory => kind.is_dir(),
        FileTest::Link => kind.is_symlink(),
        FileTest::Pipe => kind.is_fifo(),
        FileTest::Socket => kind.is_socket(),
        FileTest::Block => kind.is_block_device(),
        FileTest::Character => kind.is_char_device(),
        FileTest::Exists | FileTest::Readable | FileTest::Writable | FileTest::Executable => true,
    }
}

/// Answers a query about files.
pub(crate) fn answer(
    directory: &TaskDirectory,
    query: &Query,
    control: &Control,
) -> Result<Reply, FdError> {
    let say = |path: &BString, error| FdError::File { path: path.clone(), error };
    if let Query::Test(_, path)
    | Query::Directory(path)
    | Query::Glob(path)
    | Query::Files(path)
    | Query::File(path) = query
    {
        control.note(Call::Look(path.clone()));
    }
    match query {
        Query::Test(test @ FileTest::Link, path) => {
            passes(*test, &directory.resolve_link(path), path.is_empty())
                .map(Reply::Truth)
                .map_err(|error| say(path, error))
        }
        Query::Test(test, path) => passes(*test, &directory.resolve(path), path.is_empty())
            .map(Reply::Truth)
            .map_err(|error| say(path, error)),
        Query::Glob(pattern) => expand_pattern(directory, pattern, control).map(Reply::Words),
        Query::Files(pattern) => find_files(directory, pattern, control).map(Reply::Words),
        Query::Directory(path) => enter(directory, path)
            .map(|path| Reply::Text(path.into_os_string().into_vec().into()))
            .map_err(|error| say(path, error)),
        Query::OwnDirectory => Ok(match own_directory() {
            Ok(path) => Reply::Text(path.into_os_string().into_vec().into()),
            Err(_) => Reply::Truth(false),
        }),
        Query::PhysicalDirectory => physical(directory)
            .map(|path| Reply::Text(path.into_os_string().into_vec().into()))
            .map_err(|error| say(&".".into(), error)),
        Query::FreeResources => Ok(Reply::Resources(free_resources())),
        Query::BranchFiles { given, names } => {
            let verb = if *given { "give" } else { "take" };
            control.note(Call::Look(names.first().cloned().unwrap_or_default()));
            let checked = match directory.view {
                None => check_files(&directory.resolve(b"."), names, verb),
                // Files of a view have places of their own.
                Some(_) => names.iter().try_for_each(|name| {
                    let found = directory.resolve_link(name).symlink_metadata();
                    let why =
                        |error| format!("the branch cannot {verb} `{name}`: {}", plain(&error));
                    found.map(|_| ()).map_err(why)
                }),
            };
            checked.map(|()| Reply::Truth(true)).map_err(FdError::BranchFile)
        }
        Query::Home(user) => home(user).map(Reply::Text),
        Query::File(path) => read(directory, path, control).map(Reply::Text).map_err(|error| {
            let is_relative = !path.starts_with(b"/");
            match current_of(directory) {
                Ok(directory) if is_relative && error.kind() == ErrorKind::NotFound => {
                    FdError::NotIn { path: path.clone(), directory, error }
                }
                _ => say(path, error),
            }
        }),
        Query::RecordedWords(words) => update_words(directory, words, control)
            .map(Reply::Text)
            .map_err(|error| say(&words.path, error)),
        Query::Buffer(_)
        | Query::Clock
        | Query::Filter(_)
        | Query::LocalTime(_)
        | Query::Tail(..)
        | Query::Filled(_)
        | Query::Leftovers(_)
        | Query::Scratch(_)
        | Query::TakeBack(_)
        | Query::Input(..)
        | Query::InputPart(_)
        | Query::InputWord(..)
        | Query::Durations(_)
        | Query::InputEnded(_) => Err(FdError::Gone("the variable's file")),
    }
}

fn passes(test: FileTest, path: &Path, empty: bool) -> io::Result<bool> {
    if empty {
        return Ok(false);
    }
    let allowed = |flags| {
        faccessat(AT_FDCWD, path, flags, AtFlags::AT_EACCESS).map(|()| true).map_err(Into::into)
    };
    let result = match test {
        FileTest::Readable => allowed(AccessFlags::R_OK),
        FileTest::Writable => allowed(AccessFlags::W_OK),
        FileTest::Executable => allowed(AccessFlags::X_OK),
        FileTest::Link => path.symlink_metadata().map(|metadata| metadata.is_symlink()),
        _ => path.metadata().map(|metadata| is_kind(test, metadata.file_type())),
    };
    learn(path);
    lenient(result)
}

/// Converts errors about missing files and permissions to false.
fn lenient(result: io::Result<bool>) -> io::Result<bool> {
    result.or_else(|error| match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::PermissionDenied
        | ErrorKind::NotADirectory
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::ExecutableFileBusy => Ok(false),
        _ => Err(error),
    })
}

/// Returns the absolute path of a directory that the user may enter. As in shells, `..` cancels the
/// name before it, even if the name is a symbolic link.
fn enter(directory: &TaskDirectory, path: &[u8]) -> io::Result<PathBuf> {
    if path.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    let given = directory.join(path);
    let require_directory = |path: &Path| require_directory(&directory.reach(path));
    let whole = if given.is_absolute() { given } else { own_directory()?.join(given) };
    let mut absolute = PathBuf::from("/");
    for component in whole.components() {
        match component {
            Component::ParentDir => {
                // `missing/..` is an error.
                require_directory(&absolute)?;
                absolute.pop();
            }
            Component::Normal(name) => absolute.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    require_directory(&absolute)?;
    faccessat(AT_FDCWD, &directory.reach(&absolute), AccessFlags::X_OK, AtFlags::AT_EACCESS)?;
    Ok(absolute)
}

/// Returns the absolute path of a directory without links.
fn physical(directory: &TaskDirectory) -> io::Result<PathBuf> {
    match &directory.view {
        Some(view) => view.canonicalize(&directory.join(b".")),
        None => std::fs::canonicalize(directory.join(b".")),
    }
}

fn require_directory(path: &Path) -> io::Result<()> {
    if path.metadata()?.is_dir() { Ok(()) } else { Err(Errno::ENOTDIR.into()) }
}

/// Returns the shell's own directory, under the name in `PWD` if correct.
///
/// # Errors
///
/// Fails if the directory is gone.
pub fn own_directory() -> io::Result<PathBuf> {
    let identity = |path: &Path| path.metadata().map(|data| (data.dev(), data.ino()));
    if let Some(named) = std::env::var_os("PWD").map(PathBuf::from)
        && named.is_absolute()
        && !named.components().any(|part| part == Component::ParentDir)
        && identity(&named).ok() == identity(Path::new(".")).ok()
    {
        return Ok(named);
    }
    std::env::current_dir()
}

fn home(user: &BString) -> Result<BString, FdError> {
    let name = user.to_string();
    match listed_home(user) {
        Ok(Some(home)) => return Ok(home),
        Err(error) if sys::is_static() => return Err(FdError::User { name, error }),
        _ => {}
    }
    // With static linking, the C library would load modules named by `/etc/nsswitch.conf` into a
    // program not prepared for them, and crash.
    if sys::is_static() {
        return Err(FdError::NoUser(name));
    }
    match User::from_name(&name) {
        Ok(Some(user)) => Ok(user.dir.into_os_string().into_vec().into()),
        Ok(None) => Err(FdError::NoUser(name)),
        Err(error) => Err(FdError::User { name, error: error.into() }),
    }
}

/// Returns the home directory of a user according to `/etc/passwd`.
fn listed_home(user: &BString) -> io::Result<Option<BString>> {
    let users = match std::fs::read("/etc/passwd") {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        users => users?,
    };
    Ok(users.lines().find_map(|line| {
        let mut fields = line.split_str(":");
        let is_theirs = fields.next() == Some(user.as_slice());
        fields.nth(4).filter(|_| is_theirs).map(Into::into)
    }))
}

/// Returns the directory in which relative paths begin.
fn current_of(directory: &TaskDirectory) -> io::Result<PathBuf> {
    match &directory.path {
        Some(directory) => Ok(OsStr::from_bytes(directory).into()),
        None => own_directory(),
    }
}

fn read(directory: &TaskDirectory, path: &[u8], control: &Control) -> io::Result<BString> {
    let mut file = File::from(open_file(directory, path, Access::Read, None, control)?);
    if file.metadata()?.is_dir() {
        return Err(Errno::EISDIR.into());
    }
    let mut content = Vec::new();
    let mut part = vec![0; 64 * 1024];
    loop {
        match file.read(&mut part) {
            Ok(0) => return Ok(content.into()),
            Ok(count) if content.len() + count > MAX_SCRIPT_LENGTH => {
                return Err(io::Error::other(SCRIPT_TOO_LONG));
            }
            Ok(count) => {
                content.try_reserve(count)?;
                content.extend_from_slice(&part[..count]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted && !control.is_cancelled() => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_test_is_false_for_missing_files_and_fails_for_other_errors() {
        let test = |path: &str| passes(FileTest::Exists, Path::new(path), path.is_empty());
        assert!(matches!(test("/"), Ok(true)));
        assert!(matches!(test(""), Ok(false)));
        assert!(matches!(test("/no such file"), Ok(false)));
        assert!(matches!(test("/dev/null/x"), Ok(false)));
        assert!(test(&"x".repeat(300)).is_err());
    }

    #[test]
    fn a_directory_is_named_as_shells_name_it() {
        let base = TaskDirectory::at("/usr/bin");
        let enter = |path: &str| enter(&base, path.as_bytes()).map_err(|error| error.kind());
        assert_eq!(enter("../lib/.//"), Ok("/usr/lib".into()));
        assert_eq!(enter("/.."), Ok("/".into()));
        assert_eq!(enter("missing/.."), Err(ErrorKind::NotFound));
        assert_eq!(enter("/dev/null"), Err(ErrorKind::NotADirectory));
        assert_eq!(enter(""), Err(ErrorKind::NotFound));
    }

    #[test]
    fn every_system_has_a_root() {
        assert!(home(&"root".into()).is_ok());
        assert!(home(&"no such user".into()).is_err());
        for (name, is_there) in [("root", true), ("no such user", false), ("", false)] {
            let home = listed_home(&name.into()).expect("a list");
            assert_eq!(home.is_some(), is_there, "{name}");
        }
    }
}
