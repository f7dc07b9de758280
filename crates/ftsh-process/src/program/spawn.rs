//! Search for programs and their start.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::io::{ErrorKind, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access, geteuid};

use crate::descriptors::FdTable;
use crate::paths::TaskDirectory;
use crate::system::umask as own_umask;
use crate::views::OpenView;
use ftsh_machine::effect::{Environment, Umask};
use ftsh_machine::event::{SpawnError, SpawnErrorKind};
use ftsh_syntax::nearest::slip;
use ftsh_sys as sys;
use ftsh_sys::CStringArray;
use ftsh_sys::os_error::{self, plain};

/// Total size of arguments above any system's limit. Larger ones are refused before copying.
const MAX_ARGUMENTS_SIZE: usize = 16 * 1024 * 1024;

/// Limits of the cache: programs in one `PATH`, and number of different `PATH`s.
const MAX_NAMES: usize = 1000;
const MAX_PATHS: usize = 100;

/// Limit on the names along `PATH` that a suggestion is chosen from.
const MAX_ENTRIES: usize = 100_000;

/// Search path without a variable `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/bin:/bin";

/// Directories that are searched on the event loop: where these hang, no program works.
const SYSTEM: [&str; 6] =
    ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Program that runs a script without `#!`.
pub(super) const SHELL: &str = "/bin/sh";

/// Program to start.
pub struct ProgramSpec {
    /// Name and arguments.
    pub words: Vec<BString>,
    /// Exported variables.
    pub environment: Arc<Environment>,
    /// Variables set by the shell for every command; override `environment`.
    pub child_env: Vec<(&'static str, BString)>,
    /// Variables for this command only; override all others.
    pub overrides: Vec<(BString, BString)>,
    /// Working directory, from which relative paths start.
    pub(crate) directory: TaskDirectory,
    /// Umask of the program.
    pub umask: Umask,
    /// File, if already found.
    pub file: Option<PathBuf>,
}

/// Running program.
#[derive(Debug)]
pub struct StartedProgram {
    /// Process id, which is also the id of the process group.
    pub pid: i32,
    /// Path of the file that was executed.
    pub file: PathBuf,
    /// True if the program would have further rights outside of its view.
    pub lacks_rights: bool,
}

/// Cache of paths, by `PATH` and name.
#[derive(Default)]
pub(crate) struct ProgramCache(HashMap<BString, HashMap<BString, PathBuf>>);

impl ProgramCache {
    /// Looks up a program in the cache and in system directories. Returns true if the program can
    /// be started on the event loop.
    pub(crate) fn look_up(&mut self, program: &mut ProgramSpec) -> bool {
        let name = program.name();
        let path = program.path();
        if name.contains(&b'/') {
            program.file = Some(Path::new(OsStr::from_bytes(name)).into());
        } else if program.directory.view.is_some() {
            // A view may have other programs.
            return false;
        } else if let Some(file) = self.0.get(path).and_then(|known| known.get(name)) {
            program.file = Some(file.clone());
        } else {
            program.file = path
                .split(|&byte| byte == b':')
                .map(|place| Path::new(OsStr::from_bytes(place)))
                .take_while(|place| is_system(place))
                .map(|place| place.join(OsStr::from_bytes(name)))
                .find(|file| is_executable(file));
        }
        let system = program.file.as_deref().and_then(Path::parent).is_some_and(is_system);
        let TaskDirectory { path, view } = &program.directory;
        system && path.is_none() && view.is_none()
    }

    /// Adds the path of a program to the cache.
    pub(crate) fn remember(&mut self, path: BString, name: BString, file: PathBuf) {
        if file.is_absolute() && !name.contains(&b'/') {
            if self.0.len() > MAX_PATHS || self.0.values().any(|known| known.len() > MAX_NAMES) {
                self.0.clear();
            }
            self.0.entry(path).or_default().insert(name, file);
        }
    }
}

fn is_system(place: &Path) -> bool {
    SYSTEM.iter().any(|system| place == Path::new(system))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file()) && access(file, AccessFlags::X_OK).is_ok()
}

/// True if a program runs with the rights of the owner of its file.
fn is_set_uid(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.mode() & libc::S_ISUID != 0)
}

impl ProgramSpec {
    /// Returns the name as written in the script.
    pub fn name(&self) -> &BStr {
        self.words.first().map_or(BStr::new(""), |name| name.as_bstr())
    }

    /// Returns the `PATH` to search, which is that of the program's own environment.
    pub fn path(&self) -> &[u8] {
        let overrides = self.overrides.iter().rev();
        let mut all = overrides.chain(self.environment.iter());
        all.find(|(name, _)| name == "PATH").map_or(DEFAULT_PATH, |(_, path)| path)
    }

    /// Starts the program. Blocks while the file system does.
    pub fn start(&self, table: &FdTable) -> Result<StartedProgram, SpawnError> {
        let prepared = self.prepare()?;
        let file = self.find()?;
        let changes = table.changes();
        let view = self.directory.view.as_deref();
        let lacks_rights = view.is_some() && is_set_uid(&file) && !geteuid().is_root();
        match prepared.spawn(&file, &changes, view) {
            // The cached path is stale.
            Err(Errno::ENOENT) if self.file.is_some() && !self.name().contains(&b'/') => {
                let file = self.search()?;
                let result = prepared.spawn(&file, &changes, view);
                result.map_err(|errno| self.explain(&file, errno)).map(|pid| StartedProgram {
                    pid,
                    file,
                    lacks_rights,
                })
            }
            Err(Errno::ENOEXEC) => {
                self.require_text(&file)?;
                let prepared = self.prepare_script(&file)?;
                let pid = prepared
                    .spawn(Path::new(SHELL), &changes, view)
                    .map_err(|errno| self.explain(Path::new(SHELL), errno))?;
                Ok(StartedProgram { pid, file, lacks_rights })
            }
            result => result
                .map_err(|errno| self.explain(&file, errno))
                .map(|pid| StartedProgram { pid, file, lacks_rights }),
        }
    }

    pub fn prepare(&self) -> Result<PreparedProgram, SpawnError> {
        let variables = self.overrides.iter().chain(self.environment.iter());
        let environment: usize = variables.map(|(name, value)| name.len() + value.len()).sum();
        if self.words.iter().map(|word| word.len()).sum::<usize>() + environment
            > MAX_ARGUMENTS_SIZE
        {
            return Err(self.explain(Path::new(""), Errno::E2BIG));
        }
        let mut arguments = CStringArray::default();
        for word in &self.words {
            without_nul(word)?;
            arguments.push(&[word]);
        }
        self.prepared(arguments)
    }

    /// Prepares `/bin/sh` with the file as its script, as shells run a script without `#!`.
    pub fn prepare_script(&self, file: &Path) -> Result<PreparedProgram, SpawnError> {
        let mut arguments = CStringArray::default();
        arguments.push(&[SHELL.as_bytes()]);
        arguments.push(&[file.as_os_str().as_bytes()]);
        for word in self.words.iter().skip(1) {
            arguments.push(&[word]);
        }
        self.prepared(arguments)
    }

    fn prepared(&self, arguments: CStringArray) -> Result<PreparedProgram, SpawnError> {
        let mut environment = CStringArray::default();
        let is_set = |name: &BString| self.child_env.iter().any(|(other, _)| name == other);
        let overridden = |name: &[u8]| self.overrides.iter().any(|(other, _)| other == name);
        for (name, value) in self.environment.iter() {
            if !is_set(name) && !overridden(name) {
                add(&mut environment, name, value)?;
            }
        }
        for (name, value) in &self.child_env {
            if !overridden(name.as_bytes()) {
                add(&mut environment, name.as_bytes(), value)?;
            }
        }
        for (index, (name, value)) in self.overrides.iter().enumerate() {
            if !self.overrides[index + 1..].iter().any(|(later, _)| later == name) {
                add(&mut environment, name, value)?;
            }
        }
        let directory = match (&self.directory.path, &self.directory.view) {
            (Some(directory), _) => Some(c_string(directory)?),
            // The root directory of a view is the directory otherwise.
            (None, Some(_)) => {
                let own = std::env::current_dir().unwrap_or_default();
                Some(c_string(own.as_os_str().as_bytes())?)
            }
            (None, None) => None,
        };
        let umask = self.umask.filter(|umask| *umask != own_umask());
        Ok(PreparedProgram { arguments, environment, directory, umask })
    }

    pub fn find(&self) -> Result<PathBuf, SpawnError> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => self.search(),
        }
    }

    fn search(&self) -> Result<PathBuf, SpawnError> {
        let name = self.name();
        let mut blocked = None;
        if !name.is_empty() {
            for place in self.path().split(|&byte| byte == b':') {
                let file = Path::new(OsStr::from_bytes(place)).join(OsStr::from_bytes(name));
                let path = self.directory.join(file.as_os_str().as_bytes());
                let seen = self.directory.reach(&path);
                if is_executable(&seen) {
                    // Relative to the directory in which the program starts.
                    return Ok(path);
                }
                if seen.is_file() {
                    blocked.get_or_insert(path);
                }
            }
        }
        Err(match blocked {
            Some(file) => self.explain(&file, Errno::EACCES),
            None if name.is_empty() => {
                SpawnError::new(SpawnErrorKind::NotFound, "the command's name is empty".into())
            }
            None => {
                let advice = self.advice();
                let message = format!("{name}: not found along PATH{advice}");
                error_by(SpawnErrorKind::NotFound, message, Errno::ENOENT)
            }
        })
    }

    /// Returns advice about a name that no program along `PATH` has.
    fn advice(&self) -> String {
        let Ok(name) = self.name().to_str() else { return String::new() };
        if name.contains([' ', '\n']) {
            let is_line = name.contains(['|', '&', ';', '<', '>', '\n']);
            let line = format!("sh -c '{}'", name.replace('\'', r"'\''"));
            let way = if is_line { &line } else { name };
            return format!("; one word in quotes is the name of one program: write `{way}`");
        }
        let places = self.path().split(|&byte| byte == b':').filter(|place| !place.is_empty());
        let places = places.map(|place| self.directory.reach(&self.directory.join(place)));
        let entries = places.filter_map(|place| place.read_dir().ok()).flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let names: Vec<String> = names.take(MAX_ENTRIES).collect();
        match slip(name, names.iter().map(String::as_str)) {
            Some(meant) => format!(", did you mean `{meant}`?"),
            None => String::new(),
        }
    }

    /// Fails unless the file looks like a script.
    fn require_text(&self, file: &Path) -> Result<(), SpawnError> {
        if !is_text(&start_of(&self.directory.resolve(file.as_os_str().as_bytes()))) {
            let message = format!("{}: not a program for this machine", self.name());
            return Err(error_by(SpawnErrorKind::NotExecutable, message, Errno::ENOEXEC));
        }
        Ok(())
    }

    pub fn explain(&self, file: &Path, errno: Errno) -> SpawnError {
        let name = self.name();
        let seen = self.directory.resolve(file.as_os_str().as_bytes());
        if let Some(directory) = &self.directory.path
            && matches!(errno, Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES)
            && let Err(error) = self.directory.resolve(directory).read_dir()
            && error.kind() != ErrorKind::PermissionDenied
        {
            let message = format!("{name}: the directory {directory} no longer exists");
            return error_by(SpawnErrorKind::System, message, errno);
        }
        let (kind, what) = match errno {
            Errno::ENOENT if seen.exists() => {
                let what = match interpreter(&seen) {
                    Some(interpreter) => format!("its interpreter {interpreter} does not exist"),
                    None => "its loader does not exist".into(),
                };
                (SpawnErrorKind::NotExecutable, what)
            }
            Errno::ENOENT | Errno::ENOTDIR => (SpawnErrorKind::NotFound, "not found".into()),
            Errno::EACCES if seen.is_dir() => {
                (SpawnErrorKind::NotExecutable, "is a directory".into())
            }
            Errno::EACCES if seen.metadata().is_ok_and(|file| file.mode() & 0o111 == 0) => {
                let way = format!("`chmod +x {}` makes it a program", file.display());
                (SpawnErrorKind::NotExecutable, format!("{}; {way}", plain(&errno.into())))
            }
            Errno::EACCES | Errno::EPERM | Errno::ENOEXEC | Errno::ELIBBAD => {
                (SpawnErrorKind::NotExecutable, plain(&errno.into()))
            }
            Errno::E2BIG => (SpawnErrorKind::System, "too many arguments, or too long".into()),
            Errno::EAGAIN => (SpawnErrorKind::System, "too many processes".into()),
            _ => (SpawnErrorKind::System, plain(&errno.into())),
        };
        error_by(kind, format!("{name}: {what}"), errno)
    }
}

/// Arguments, environment and directory in the form of the system call.
pub struct PreparedProgram {
    pub arguments: CStringArray,
    pub environment: CStringArray,
    directory: Option<CString>,
    /// Umask, if different from the shell's own.
    pub umask: Umask,
}

impl PreparedProgram {
    fn spawn(
        &self,
        file: &Path,
        descriptors: &[(BorrowedFd, i32)],
        view: Option<&OpenView>,
    ) -> Result<i32, Errno> {
        let program = CString::new(file.as_os_str().as_bytes()).map_err(|_| Errno::ENOENT)?;
        let launch = sys::Launch {
            program: &program,
            arguments: &self.arguments,
            environment: &self.environment,
            directory: self.directory.as_deref(),
            descriptors,
            umask: self.umask,
        };
        match view {
            Some(view) => view.spawn(&launch),
            None => sys::spawn(&launch),
        }
    }
}

/// Returns the first bytes of a file, or nothing on error.
pub(super) fn start_of(file: &Path) -> Vec<u8> {
    let mut start = vec![0; 256];
    let size = std::fs::File::open(file).and_then(|mut file| file.read(&mut start));
    start.truncate(size.unwrap_or(0));
    start
}

/// True if a file may be a script: its first line has no NUL, as shells decide.
pub(super) fn is_text(start: &[u8]) -> bool {
    !start.lines().next().is_some_and(|line| line.contains(&0))
}

/// Returns the program named by a script's `#!` line.
pub(super) fn interpreter(script: &Path) -> Option<BString> {
    let start = start_of(script);
    let line = start.lines().next()?.strip_prefix(b"#!")?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.next().map(BString::from)
}

fn add(environment: &mut CStringArray, name: &[u8], value: &[u8]) -> Result<(), SpawnError> {
    without_nul(name)?;
    without_nul(value)?;
    environment.push(&[name, b"=", value]);
    Ok(())
}

fn without_nul(text: &[u8]) -> Result<(), SpawnError> {
    if text.contains(&0) {
        let message = "a NUL byte cannot be passed to a program".into();
        return Err(SpawnError::new(SpawnErrorKind::System, message));
    }
    Ok(())
}

fn c_string(text: &[u8]) -> Result<CString, SpawnError> {
    without_nul(text)?;
    Ok(CString::new(text).unwrap_or_default())
}

/// Returns an error for which the system gave the reason.
pub(super) fn error_by(kind: SpawnErrorKind, message: String, errno: Errno) -> SpawnError {
    SpawnError { kind, message, errno: os_error::name(&errno.into()) }
}
