//! Snapshot of the session for the line editor.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bstr::{BString, ByteSlice};
use nix::unistd::{AccessFlags, access};

use super::abbreviations::Abbreviations;
use super::help::ProgramTopic;
use ftsh_machine::Machine;
use ftsh_machine::builtins;

/// Directories of programs if `PATH` is unset.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";
/// Age at which a search for a program is repeated, because the program may have been installed or
/// removed meanwhile.
const SEARCH_VALIDITY: Duration = Duration::from_secs(5);
/// Maximum number of entries read from a directory.
const MAX_ENTRIES: usize = 100_000;

/// Snapshot of a session.
#[derive(Default)]
pub struct SessionSnapshot {
    /// Functions.
    pub functions: Vec<String>,
    /// Channels.
    pub channels: Vec<String>,
    /// Variables; values are present only for short text.
    pub variables: HashMap<String, Option<BString>>,
    /// Working directory.
    pub directory: PathBuf,
    /// Topics of `help` that the language does not have.
    pub topics: Arc<[ProgramTopic]>,
    /// Abbreviations expanded while typing.
    pub abbreviations: Arc<Abbreviations>,
    /// Results of earlier searches: true for a program, and the time of the search.
    pub found: Mutex<HashMap<String, (bool, Instant)>>,
}

impl SessionSnapshot {
    /// Takes the snapshot of a machine's session.
    pub fn of(machine: &Machine) -> Self {
        let variables = machine.variables().into_iter();
        Self::new(
            machine.functions().map(ToString::to_string).collect(),
            machine.channels().map(ToString::to_string).collect(),
            variables.map(|(name, value)| (name.to_string(), value)).collect(),
            match machine.working_directory() {
                Some(directory) => PathBuf::from(OsStr::from_bytes(directory)),
                None => std::env::current_dir().unwrap_or_default(),
            },
        )
    }

    /// Creates a session with functions, channels and variables, in a directory.
    pub fn new(
        functions: Vec<String>,
        channels: Vec<String>,
        variables: HashMap<String, Option<BString>>,
        directory: PathBuf,
    ) -> Self {
        Self { functions, channels, variables, directory, ..Self::default() }
    }

    /// Creates a session that knows only the programs along a `PATH`, which may be relative to a
    /// directory.
    pub fn along_path(directory: &Path, path: Option<OsString>) -> Self {
        let path = path.map(|path| ("PATH".to_owned(), Some(path.into_vec().into())));
        Self {
            variables: path.into_iter().collect(),
            directory: directory.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the value of a variable, if known.
    pub fn variable(&self, name: &str) -> Option<&BString> {
        self.variables.get(name)?.as_ref()
    }

    /// Returns the home directory.
    pub fn home(&self) -> Option<&Path> {
        let home = self.variable("HOME").filter(|home| !home.is_empty())?;
        Some(Path::new(OsStr::from_bytes(home)))
    }

    fn path(&self) -> impl Iterator<Item = PathBuf> {
        let path = self.variable("PATH").map_or(DEFAULT_PATH, |path| path.as_slice());
        // An empty entry means the working directory.
        path.split_str(":").map(|entry| self.directory.join(OsStr::from_bytes(entry)))
    }

    /// Returns true if a word can be run as a function, a builtin, a program or an abbreviation.
    pub fn is_command(&self, word: &str) -> bool {
        if self.functions.iter().any(|name| name == word)
            || builtins::named(word).is_some()
            || super::help::OWN.contains(&word)
            || self.abbreviations.has(word)
        {
            return true;
        }
        self.has_program(word)
    }

    /// Returns true if a word is a program along `PATH` or the path of a program.
    pub fn has_program(&self, word: &str) -> bool {
        if word.contains('/') {
            return is_program(&self.directory.join(word));
        }
        let now = Instant::now();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((found, when)) = found.get(word)
            && now - *when < SEARCH_VALIDITY
        {
            return *found;
        }
        let is_program = self.path().any(|directory| is_program(&directory.join(word)));
        found.insert(word.into(), (is_program, now));
        is_program
    }

    /// Returns the programs whose names begin with `prefix`.
    pub fn programs(&self, prefix: &str) -> Vec<String> {
        let mut programs = Vec::new();
        for directory in self.path() {
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            for entry in entries.take(MAX_ENTRIES).flatten() {
                if let Some(name) = entry.file_name().to_str()
                    && name.starts_with(prefix)
                    && is_program(&entry.path())
                {
                    programs.push(name.to_owned());
                }
            }
        }
        programs
    }
}

/// Returns true if a file is an executable program.
pub fn is_program(path: &Path) -> bool {
    access(path, AccessFlags::X_OK).is_ok() && path.is_file()
}
