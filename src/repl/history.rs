//! Inputs of earlier sessions, in a file that several prompts may write at once.
//!
//! Each input takes one line, with `\n` for a newline and `\\` for a backslash. Prompts only
//! append. Once the file has twice the maximum number of entries, the next prompt replaces the file
//! by a shorter one.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::state;
use ftsh_process::{replace_file, user_directory};
use ftsh_sys::{FileLock, LockKind};
use nix::errno::Errno;
use nix::fcntl::OFlag;

/// Maximum number of inputs in the history.
pub(super) const MAX_ENTRIES: usize = 10_000;
/// Maximum length of an input; no person types a longer one.
const MAX_INPUT: usize = 64 * 1024;
/// Maximum size of the file in bytes; a larger file is no history.
const MAX_FILE_SIZE: u64 = 256 * 1024 * 1024;
/// Maximum wait for the lock. Only a stopped process holds the lock longer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// File of the history.
pub(super) struct History {
    path: PathBuf,
    /// Home directory of the user. The history does not create a missing home.
    home: Option<PathBuf>,
    last: Option<String>,
}

impl History {
    /// Returns the history of the user: `ftsh/history` in `$XDG_STATE_HOME`, or in `~/.local/state`
    /// by the XDG rules.
    pub(super) fn of_user(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        let path = state::directory(&variable)?.join("ftsh/history");
        Some(Self { home: state::home(variable), ..Self::at(path) })
    }

    fn at(path: PathBuf) -> Self {
        Self { path, home: None, last: None }
    }

    /// Returns the inputs, oldest first. A repeated input stands at its latest position.
    pub(super) fn load(&mut self) -> io::Result<Vec<String>> {
        let mut file = match self.open(OpenOptions::new().read(true)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        if file.metadata()?.len() > MAX_FILE_SIZE {
            return Err(not_a_history());
        }
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut known = HashSet::new();
        let newest_first = text.lines().rev().filter(|line| !line.is_empty());
        let mut inputs: Vec<String> = newest_first
            .filter(|line| known.insert(*line))
            .take(MAX_ENTRIES)
            .map(unescape)
            .collect();
        inputs.reverse();
        if text.lines().count() > 2 * MAX_ENTRIES {
            self.shorten(&inputs)?;
        }
        self.last = inputs.last().cloned();
        Ok(inputs)
    }

    /// Adds an input. Returns false for a private input, which begins with a blank, and for a
    /// repetition of the last input.
    pub(super) fn add(&mut self, input: &str) -> io::Result<bool> {
        if !is_kept(input) || self.last.as_deref() == Some(input) {
            return Ok(false);
        }
        self.last = Some(input.to_owned());
        user_directory::make_above(self.home.as_deref(), &self.path)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let mut file = lock(|| self.open(&mut options.clone()))?;
        let mut line = escape(input);
        line.push('\n');
        // Another prompt may have been killed while it wrote a line.
        if !ends_with_newline(&file)? {
            line.insert(0, '\n');
        }
        file.write_all(line.as_bytes())?;
        Ok(true)
    }

    /// Opens the file, if it is a regular file. Opening a FIFO could block, and a device could be
    /// read endlessly.
    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        if fs::metadata(&self.path).is_ok_and(|it| !it.is_file()) {
            return Err(not_a_history());
        }
        // The file may have been replaced since the check.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = options.custom_flags(flags.bits()).open(&self.path)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_a_history()) }
    }

    /// Replaces the file by a shorter one.
    fn shorten(&self, inputs: &[String]) -> io::Result<()> {
        let held = lock(|| self.open(OpenOptions::new().append(true)))?;
        let mut text = String::new();
        for input in inputs {
            text.push_str(&escape(input));
            text.push('\n');
        }
        let result = replace_file(&self.path, 0o600, text.as_bytes());
        drop(held);
        result
    }
}

fn not_a_history() -> io::Error {
    io::Error::other("it is not a history file")
}

/// True if an input may be kept in a history.
pub(super) fn is_kept(input: &str) -> bool {
    !input.starts_with([' ', '\t']) && !input.trim().is_empty() && input.len() <= MAX_INPUT
}

/// File of the history. A lock that another process holds too long is skipped.
enum HistoryFile {
    Locked(FileLock),
    Free(File),
}

impl std::ops::Deref for HistoryFile {
    type Target = File;

    fn deref(&self) -> &File {
        match self {
            Self::Locked(file) => file,
            Self::Free(file) => file,
        }
    }
}

impl std::ops::DerefMut for HistoryFile {
    fn deref_mut(&mut self) -> &mut File {
        match self {
            Self::Locked(file) => file,
            Self::Free(file) => file,
        }
    }
}

/// Opens and locks the file. Opens the file again if another prompt has replaced it.
fn lock(open: impl Fn() -> io::Result<File>) -> io::Result<HistoryFile> {
    let start = Instant::now();
    let mut file = open()?;
    loop {
        match FileLock::lock(file, LockKind::ExclusiveNow) {
            Ok(held) => {
                let (now, ours) = (open()?.metadata()?, held.metadata()?);
                if (now.dev(), now.ino()) == (ours.dev(), ours.ino()) {
                    return Ok(HistoryFile::Locked(held));
                }
                file = open()?;
            }
            Err((unlocked, Errno::EAGAIN | Errno::EINTR)) if start.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
                file = unlocked;
            }
            // Some file systems have no locks. Most appends are atomic anyway.
            Err((unlocked, _)) => return Ok(HistoryFile::Free(unlocked)),
        }
    }
}

fn ends_with_newline(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last == *b"\n")
}

fn escape(input: &str) -> String {
    input.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescape(line: &str) -> String {
    let mut input = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\\', Some('n')) => input.push('\n'),
            ('\\', Some('\\')) => input.push('\\'),
            _ => {
                input.push(c);
                continue;
            }
        }
        chars.next();
    }
    input
}

/// Path of the file, for messages.
impl AsRef<Path> for History {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_restored() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("state/ftsh/history");
        let inputs = ["ls", "try\n  echo '\\n' \\\\\nend", "é\\", "ls", "ls"];
        let mut history = History::at(path.clone());
        let added = inputs.map(|input| history.add(input).expect("a history"));
        assert_eq!(added, [true, true, true, true, false]);
        assert!(!history.add(" secret").expect("a history"));
        assert!(!history.add("").expect("a history"));
        let mut next = History::at(path.clone());
        assert_eq!(next.load().expect("a history"), [inputs[1], inputs[2], "ls"]);
        assert!(!next.add("ls").expect("a history"));
        let mode = |path: &Path| fs::metadata(path).expect("it exists").mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().expect("one"))), (0o600, 0o700));
    }

    #[test]
    fn many_prompts_share_a_file() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("history");
        let line = |prompt, number| format!("echo {prompt} {number} {}", "x".repeat(5000));
        std::thread::scope(|scope| {
            for prompt in 0..8 {
                let path = path.clone();
                scope.spawn(move || {
                    let mut history = History::at(path);
                    for number in 0..20 {
                        history.add(&line(prompt, number)).expect("a history");
                    }
                });
            }
        });
        let mut inputs = History::at(path).load().expect("a history");
        inputs.sort();
        let mut expected: Vec<_> = (0..160).map(|n| line(n / 20, n % 20)).collect();
        expected.sort();
        assert!(inputs == expected);
    }

    #[test]
    fn a_long_file_is_shortened_and_a_torn_line_hurts_no_other() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("history");
        let old: Vec<_> = (0..=2 * MAX_ENTRIES).map(|number| format!("echo {number}")).collect();
        fs::write(&path, old.join("\n") + "\ntorn").expect("a file");
        let mut history = History::at(path.clone());
        let inputs = history.load().expect("a history");
        assert_eq!((inputs.len(), inputs.last().map(String::as_str)), (MAX_ENTRIES, Some("torn")));
        assert_eq!(fs::read_to_string(&path).expect("a file").lines().count(), MAX_ENTRIES);
        fs::write(&path, "torn").expect("a file");
        history.add("whole").expect("a history");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "torn\nwhole\n");
        assert_eq!(fs::read_dir(place.path()).expect("a directory").count(), 1);
    }

    #[test]
    fn a_shorter_file_follows_no_planted_link() {
        let place = tempfile::tempdir().expect("a directory");
        let (path, other) = (place.path().join("history"), place.path().join("other"));
        fs::write(&path, "ls\n".repeat(2 * MAX_ENTRIES + 1)).expect("a file");
        fs::write(&other, "data of the user").expect("a file");
        let planted = path.with_extension(format!("new-{}", std::process::id()));
        std::os::unix::fs::symlink(&other, planted).expect("a link");
        assert_eq!(History::at(path.clone()).load().expect("a history"), ["ls"]);
        assert_eq!(fs::read(&other).expect("a file"), b"data of the user");
        assert!(path.symlink_metadata().expect("a history").is_file());
    }

    #[test]
    fn only_a_regular_file_is_a_history() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("history");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
        for path in [&*path, Path::new("/dev/zero"), Path::new("/dev/tty"), place.path()] {
            let mut history = History::at(path.into());
            assert!(history.load().is_err(), "{path:?}");
            assert!(history.add("ls").is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_missing_home_is_not_created() {
        let place = tempfile::tempdir().expect("a directory");
        let home = place.path().join("home");
        for state in [None, Some(home.join("state"))] {
            let variable =
                |name: &str| if name == "HOME" { Some(home.clone()) } else { state.clone() };
            let mut history = History::of_user(variable).expect("a history");
            assert!(history.load().is_ok_and(|inputs| inputs.is_empty()));
            let error = history.add("ls").expect_err("no home");
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert!(!home.exists());
            fs::create_dir(&home).expect("a directory");
            assert!(history.add("pwd").expect("a history"));
            fs::remove_dir_all(&home).expect("a directory");
        }
    }

    #[test]
    fn no_home_means_no_history() {
        assert!(History::of_user(|_| None).is_none());
        assert!(History::of_user(|_| Some("relative".into())).is_none());
        let history = History::of_user(|name| (name == "HOME").then(|| "/h".into()));
        let path = history.map(|history| history.path);
        assert_eq!(path.as_deref(), Some(Path::new("/h/.local/state/ftsh/history")));
    }
}
