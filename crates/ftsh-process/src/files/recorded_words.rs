//! Files that record words, one in a line, by `once in`. Several shells may use a file at once.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use bstr::{BString, ByteSlice};
use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::opening::open_as;
use crate::paths::TaskDirectory;
use crate::workers::Control;
use ftsh_machine::TORN;
use ftsh_machine::effect::WordFile;
use ftsh_sys::{FileLock, LockKind};

/// Appends a line if there is one, and returns the whole lines of the file from an offset on.
///
/// A line that is there after the offset is not repeated: a resumed run requests again what a killed
/// shell may have done.
pub(crate) fn update_words(
    directory: &TaskDirectory,
    words: &WordFile,
    control: &Control,
) -> io::Result<BString> {
    let path = directory.resolve(&words.path);
    // Without blocking, since the path may be that of a named pipe.
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_APPEND | OFlag::O_NONBLOCK;
    let file = File::from(open_as(&path, flags, words.umask, control)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut file = LockedFile::lock(file, words.line.is_some(), control)?;
    let lines = file.whole_lines(words.from)?;
    match &words.line {
        Some(line) if !lines.lines().any(|it| it == line.as_slice()) => {
            file.append(line, &path)?;
            file.whole_lines(words.from)
        }
        _ => Ok(lines),
    }
}

/// File under a lock, where the file system has locks.
enum LockedFile {
    Locked(FileLock),
    Unlocked(File),
}

impl LockedFile {
    fn lock(file: File, is_for_writing: bool, control: &Control) -> io::Result<Self> {
        let lock = if is_for_writing { LockKind::Exclusive } else { LockKind::Shared };
        let mut file = file;
        loop {
            match FileLock::lock(file, lock) {
                Ok(locked) => return Ok(Self::Locked(locked)),
                Err((again, Errno::EINTR)) if !control.is_cancelled() => file = again,
                Err((_, Errno::EINTR)) => return Err(ErrorKind::Interrupted.into()),
                // On file systems without locks, each line is still a single write.
                Err((unlocked, _)) => return Ok(Self::Unlocked(unlocked)),
            }
        }
    }

    fn file(&mut self) -> &mut File {
        match self {
            Self::Locked(locked) => locked,
            Self::Unlocked(file) => file,
        }
    }

    /// Appends a line. The line is on the disk when the function returns.
    fn append(&mut self, line: &[u8], path: &Path) -> io::Result<()> {
        let is_locked = matches!(self, Self::Locked(_));
        let file = self.file();
        let length = file.metadata()?.len();
        let mut text = Vec::with_capacity(line.len() + TORN.len() + 2);
        if length > 0 {
            let mut last = [0];
            file.read_exact_at(&mut last, length - 1)?;
            if last != *b"\n" {
                // A writer ended too early. Its line must not become that of another word.
                text.extend_from_slice(TORN);
                text.push(b'\n');
            }
        }
        text.extend_from_slice(line);
        text.push(b'\n');
        if let Err(error) = file.write_all(&text) {
            if is_locked {
                // The part of the line that was written is marked later if it stays.
                let _ = file.set_len(length);
            }
            return Err(error);
        }
        file.sync_data()?;
        if length == 0 {
            sync_name(path)?;
        }
        Ok(())
    }

    /// Returns the whole lines from an offset on.
    fn whole_lines(&mut self, from: u64) -> io::Result<BString> {
        let file = self.file();
        file.seek(SeekFrom::Start(from))?;
        let mut lines = Vec::new();
        file.read_to_end(&mut lines)?;
        lines.truncate(lines.rfind_byte(b'\n').map_or(0, |end| end + 1));
        Ok(lines.into())
    }
}

/// Writes the directory with the name of a new file to the disk.
fn sync_name(path: &Path) -> io::Result<()> {
    let path = path.canonicalize()?;
    let Some(directory) = path.parent() else { return Ok(()) };
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems keep no directories, and some directories may not be read.
        Err(error)
            if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::PermissionDenied) =>
        {
            Ok(())
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    fn words(path: &Path, from: u64, line: Option<&str>) -> io::Result<BString> {
        let (path, line) = (path.to_str().expect("a path").into(), line.map(Into::into));
        let words = WordFile { path, umask: Some(0o027), from, line };
        update_words(&TaskDirectory::default(), &words, &Control::default())
    }

    #[test]
    fn a_line_is_not_repeated_after_the_offset() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("words");
        assert_eq!(words(&path, 0, Some("a")).expect("a line"), "a\n");
        assert_eq!(words(&path, 0, Some("a")).expect("a line"), "a\n");
        assert_eq!(words(&path, 2, Some("a")).expect("a line"), "a\n");
        assert_eq!(fs::read_to_string(path).expect("a file"), "a\na\n");
    }

    #[test]
    fn lines_are_appended_and_read_from_an_offset() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("done");
        assert_eq!(words(&path, 0, None).expect("no words"), "");
        assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o640);
        assert_eq!(words(&path, 0, Some("a")).expect("a word"), "a\n");
        assert_eq!(words(&path, 2, Some("b c")).expect("a word"), "b c\n");
        assert_eq!(words(&path, 0, None).expect("words"), "a\nb c\n");
        assert_eq!(words(&path, 100, None).expect("no words"), "");
    }

    #[test]
    fn a_torn_line_becomes_no_word() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("done");
        fs::write(&path, "a\nb").expect("a file");
        assert_eq!(words(&path, 0, None).expect("a word"), "a\n");
        assert_eq!(words(&path, 0, Some("c")).expect("words"), "a\nb?\\?\nc\n");
    }

    #[test]
    fn only_a_regular_file_records_words() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = |path: &Path| words(path, 0, Some("a")).expect_err("no words").to_string();
        assert!(error(directory.path()).contains("directory"));
        let pipe = directory.path().join("pipe");
        mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe");
        assert_eq!(error(&pipe), "not a regular file");
        assert_eq!(error(Path::new("/dev/null")), "not a regular file");
        assert!(error(&directory.path().join("none/done")).contains("No such file"));
    }

    #[test]
    fn writers_do_not_disturb_each_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("done");
        std::thread::scope(|threads| {
            for writer in 0..4 {
                let path = &path;
                threads.spawn(move || {
                    for word in 0..25 {
                        words(path, 0, Some(&format!("{writer}-{word}"))).expect("a word");
                    }
                });
            }
        });
        let all = fs::read_to_string(&path).expect("words");
        let mut all: Vec<_> = all.lines().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100);
    }
}
