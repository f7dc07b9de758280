//! Folder with records of durations: a file for each script, named by a digest of its path or text.
//!
//! A record is appended to by one write under a lock, and replaced by a shorter one now and then.
//! Whoever has the lock therefore checks that the file still has its name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::cleanup::replace_file;
use crate::user_directory::{check_private, make_above, make_private};
use ftsh_machine::durations::history::DurationHistory;
use ftsh_machine::durations::learned::digest;
use ftsh_sys::{FileLock, LockKind};

/// Size in bytes after which a record is shortened, and again after each multiple.
const COMPACTION_SIZE: u64 = 64 * 1024;

/// Longest wait for the lock. Only a stopped process holds the lock longer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval of attempts to get the lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(1);

/// Largest record in bytes. A larger file is no record.
const MAX_SIZE: u64 = 64 * 1024 * 1024;

/// A script, as records know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptIdentity {
    /// A file.
    File(PathBuf),
    /// The text of a script without a file.
    Text(Vec<u8>),
}

/// Folder with records of durations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationStore {
    folder: PathBuf,
    /// Home directory of the user, which the store does not create.
    home: Option<PathBuf>,
}

/// Content of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Samples.
    pub history: DurationHistory,
    /// New name of the record, if the record was damaged and has been set aside.
    pub set_aside: Option<PathBuf>,
}

impl DurationStore {
    /// Creates a store in a folder, which the first record creates if it is missing.
    pub fn new(folder: PathBuf, home: Option<PathBuf>) -> Self {
        Self { folder, home }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the name of the record of a script; `None` for anything but a regular file or a text.
    pub fn name_of(script: &ScriptIdentity) -> Option<String> {
        let (kind, identity) = match script {
            ScriptIdentity::File(path) => {
                let path = path.canonicalize().ok()?;
                path.is_file().then(|| ("file", path.into_os_string().as_bytes().to_vec()))?
            }
            ScriptIdentity::Text(text) => ("text", text.clone()),
        };
        let bytes = [kind.as_bytes(), &identity].join(&0);
        Some(format!("{:016x}", digest(&bytes)))
    }

    /// Returns the samples of a script; `None` without a readable record. Changes nothing.
    pub fn history(&self, script: &ScriptIdentity) -> Option<DurationHistory> {
        let name = Self::name_of(script)?;
        let mut record = self.open(&name).ok()??;
        DurationHistory::parse(&record.read().ok()?)
    }

    /// Removes the samples of a script. Returns false if there were none.
    pub fn forget(&self, script: &ScriptIdentity) -> io::Result<bool> {
        let Some(name) = Self::name_of(script) else { return Ok(false) };
        match fs::remove_file(self.path(&name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            result => result.map(|()| true),
        }
    }

    /// Reads a record, and sets it aside if it is damaged.
    pub(crate) fn read(&self, name: &str) -> io::Result<Record> {
        let Some(mut record) = self.open(name)? else { return Ok(Record::default()) };
        if let Some(history) = DurationHistory::parse(&record.read()?) {
            return Ok(Record { history, set_aside: None });
        }
        let aside = self.folder.join(format!("{name}.damaged"));
        fs::rename(self.path(name), &aside)?;
        Ok(Record { history: DurationHistory::default(), set_aside: Some(aside) })
    }

    /// Appends lines to a record by one write.
    pub(crate) fn append(&self, name: &str, lines: &[u8]) -> io::Result<()> {
        if !is_name(name) {
            return Err(ErrorKind::InvalidInput.into());
        }
        make_above(self.home.as_deref(), &self.folder)?;
        make_private(&self.folder)?;
        let options = OpenOptions::new().read(true).append(true).create(true).mode(0o600).clone();
        let mut record = self.locked(name, options)?;
        let before = record.file.metadata()?.len();
        if let Err(error) = record.file.write_all(lines) {
            // A part of a line would damage the record.
            let _ = record.file.set_len(before);
            return Err(error);
        }
        let after = before + lines.len() as u64;
        if before / COMPACTION_SIZE < after / COMPACTION_SIZE {
            self.compact(name, &mut record)?;
        }
        Ok(())
    }

    /// Replaces a record by the samples that count. A damaged record stays for the next reader.
    fn compact(&self, name: &str, record: &mut LockedRecord) -> io::Result<()> {
        let Some(history) = DurationHistory::parse(&record.read()?) else { return Ok(()) };
        replace_file(&self.path(name), 0o600, history.text().as_bytes())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Opens a record for reading; `None` if there is no such record.
    fn open(&self, name: &str) -> io::Result<Option<LockedRecord>> {
        match self.locked(name, OpenOptions::new().read(true).clone()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            result => result.map(Some),
        }
    }

    /// Opens a record under a lock. Other users must not choose the file nor the samples.
    fn locked(&self, name: &str, mut options: OpenOptions) -> io::Result<LockedRecord> {
        check_private(&self.folder)?;
        let path = self.path(name);
        // Without blocking, since the path may be that of a named pipe.
        options.custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
        loop {
            let file = options.open(&path)?;
            let found = file.metadata()?;
            if !found.is_file() || found.len() > MAX_SIZE {
                return Err(io::Error::other("not a record of durations"));
            }
            let file = lock(file)?;
            // Another shell may have replaced the file meanwhile.
            match fs::symlink_metadata(&path) {
                Ok(now) if (now.dev(), now.ino()) == (found.dev(), found.ino()) => {
                    return Ok(LockedRecord { file });
                }
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
}

/// An open record, whose lock ends when it is closed.
struct LockedRecord {
    file: FileLock,
}

impl LockedRecord {
    /// Returns the whole content.
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut text)?;
        Ok(text)
    }
}

/// Locks a record. Fails if another process has the lock for long.
fn lock(file: File) -> io::Result<FileLock> {
    let until = Instant::now() + LOCK_TIMEOUT;
    let mut file = file;
    loop {
        match FileLock::lock(file, LockKind::ExclusiveNow) {
            Ok(locked) => return Ok(locked),
            Err((again, Errno::EINTR | Errno::EWOULDBLOCK)) if Instant::now() < until => {
                file = again;
                thread::sleep(LOCK_INTERVAL);
            }
            Err((_, error)) => return Err(error.into()),
        }
    }
}

/// Returns true for the name of a record, which is no path to another place.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use ftsh_machine::durations::estimate::{Sample, SampleKind};
    use ftsh_machine::durations::history::line;
    use ftsh_machine::durations::learned::LimitKey;

    const NAME: &str = "00ff";

    fn store() -> (tempfile::TempDir, DurationStore) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = DurationStore::new(directory.path().join("ftsh/durations"), None);
        (directory, store)
    }

    fn key(number: u64) -> LimitKey {
        LimitKey::parse(&format!("{number:016x}")).expect("a key")
    }

    fn sample(key: LimitKey, nanos: u64) -> String {
        line(key, Sample { length: Duration::from_nanos(nanos), kind: SampleKind::Success })
    }

    #[test]
    fn samples_are_appended_to_a_private_file() {
        let (_directory, store) = store();
        assert_eq!(store.read(NAME).expect("no record"), Record::default());
        store.append(NAME, sample(key(1), 5).as_bytes()).expect("a sample");
        store.append(NAME, sample(key(2), 6).as_bytes()).expect("a sample");
        let record = store.read(NAME).expect("a record");
        assert_eq!(record.history.samples(key(1)).len(), 1);
        assert_eq!(record.history.text(), sample(key(1), 5) + &sample(key(2), 6));
        let mode = |path: &Path| path.metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!((mode(store.folder()), mode(&store.path(NAME))), (0o700, 0o600));
        assert!(store.append("../x", b"").is_err());
    }

    #[test]
    fn a_folder_of_other_users_is_refused() {
        let (_directory, store) = store();
        store.append(NAME, sample(key(1), 5).as_bytes()).expect("a sample");
        fs::set_permissions(store.folder(), fs::Permissions::from_mode(0o1777)).expect("a mode");
        let refused = [store.append(NAME, b"").err(), store.read(NAME).err()];
        for error in refused {
            assert_eq!(error.expect("refused").to_string(), "other users can write to it");
        }
    }

    #[test]
    fn a_shorter_record_follows_no_planted_link() {
        let (directory, store) = store();
        let file = directory.path().join("file");
        fs::write(&file, "data of the user").expect("a file");
        store.append(NAME, sample(key(1), 5).as_bytes()).expect("a sample");
        let planted = store.folder().join("00ff.new");
        std::os::unix::fs::symlink(&file, planted).expect("a link");
        for at in 0..4000 {
            store.append(NAME, sample(key(1), at).as_bytes()).expect("a sample");
        }
        assert_eq!(fs::read(&file).expect("a file"), b"data of the user");
        assert!(store.path(NAME).symlink_metadata().expect("a record").is_file());
    }

    #[test]
    fn a_damaged_record_is_set_aside_once() {
        let (_directory, store) = store();
        store.append(NAME, b"nonsense\n").expect("a record");
        let record = store.read(NAME).expect("a record");
        let aside = record.set_aside.expect("a damaged record");
        assert_eq!(fs::read(aside).expect("the record"), b"nonsense\n");
        assert_eq!(store.read(NAME).expect("no record"), Record::default());
    }

    #[test]
    fn a_long_record_is_shortened_to_the_samples_that_count() {
        let (_directory, store) = store();
        for at in 0..4000 {
            store.append(NAME, sample(key(at % 2), at).as_bytes()).expect("a sample");
        }
        let length = store.path(NAME).metadata().expect("a record").len();
        assert!(length < COMPACTION_SIZE, "{length}");
        let samples = store.read(NAME).expect("a record").history.samples(key(1));
        let last: Vec<_> = samples.iter().map(|it| it.length.as_nanos() as u64).collect();
        assert_eq!(last, (0..200).map(|at| 3601 + 2 * at).collect::<Vec<_>>());
        assert_eq!(fs::read_dir(store.folder()).expect("a folder").count(), 1);
    }

    #[test]
    fn writers_lose_nothing_while_records_are_shortened() {
        let (_directory, store) = store();
        std::thread::scope(|threads| {
            for writer in 0..4 {
                let store = &store;
                threads.spawn(move || {
                    for at in 0..1000 {
                        // Keys with few samples stay whole.
                        let key = key(writer * 1000 + at / 100);
                        store.append(NAME, sample(key, at).as_bytes()).expect("a sample");
                    }
                });
            }
        });
        let history = store.read(NAME).expect("a record").history;
        assert_eq!(history.text().lines().count(), 4000);
    }

    #[test]
    fn a_script_is_known_by_its_canonical_path_or_its_text() {
        let (directory, store) = store();
        let path = directory.path().join("script");
        fs::write(&path, "").expect("a script");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let file = |path: &Path| DurationStore::name_of(&ScriptIdentity::File(path.into()));
        let text = |text: &str| DurationStore::name_of(&ScriptIdentity::Text(text.into()));
        assert_eq!(file(&path), file(&link));
        assert!(file(&path).is_some_and(|name| is_name(&name)));
        assert_eq!((file(directory.path()), file(Path::new("/dev/null"))), (None, None));
        assert_ne!(text("a"), text("b"));
        let script = ScriptIdentity::File(path);
        let name = file(&link).expect("a name");
        assert_eq!(store.history(&script), None);
        store.append(&name, sample(key(1), 5).as_bytes()).expect("a sample");
        assert!(store.history(&script).is_some_and(|it| it.samples(key(1)).len() == 1));
        assert!(store.forget(&script).expect("a record"));
        assert!(!store.forget(&script).expect("no record"));
    }
}
