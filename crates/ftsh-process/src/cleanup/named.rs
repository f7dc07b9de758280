//! New files under hidden names, which no other user can guess.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::kind::NoteKind;
use super::registry::{Note, Registry};
use ftsh_sys as sys;

/// Registry of this process's run, for callers without access to the run.
static OWN: Mutex<Weak<Registry>> = Mutex::new(Weak::new());

/// Sets the registry of this process's run.
pub(super) fn keep_notes_in(registry: &Arc<Registry>) {
    *OWN.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(registry);
}

impl Registry {
    /// Returns the registry of this process's run, if the run has one.
    pub(crate) fn own() -> Option<Arc<Self>> {
        OWN.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Creates a directory in another one, under a hidden name with a note.
    pub(crate) fn hidden_directory(self: &Arc<Self>, parent: &Path) -> io::Result<Note> {
        let _busy = self.begin().ok_or(ErrorKind::Interrupted)?;
        let note = self.note(NoteKind::Tree, std::path::absolute(parent)?.join(hidden_name()?));
        DirBuilder::new().mode(0o700).create(note.path())?;
        Ok(note)
    }
}

/// Creates a file in a directory, under a hidden name with a note.
pub(crate) fn named_file(
    directory: &Path,
    mode: Mode,
    registry: &Arc<Registry>,
) -> io::Result<(OwnedFd, Note)> {
    let _busy = registry.begin().ok_or(ErrorKind::Interrupted)?;
    let note = registry.note(NoteKind::File, std::path::absolute(directory)?.join(hidden_name()?));
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let file = open(note.path(), flags, mode)?;
    Ok((file, note))
}

/// Creates a file and removes its name. The note covers a kill in between.
pub(crate) fn unlinked_file(directory: &Path) -> io::Result<OwnedFd> {
    with_registry(|registry| {
        let (file, note) = named_file(directory, PRIVATE, registry)?;
        note.remove()?;
        Ok(file)
    })
}

/// Replaces a file by a new one with this mode, whatever the umask, and this content. The content is on
/// the disk when the function returns. The new file has a name that cannot be guessed until then, and a note covers a kill.
pub fn replace_file(path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    with_registry(|registry| {
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        let (file, note) = named_file(directory.unwrap_or(Path::new(".")), PRIVATE, registry)?;
        let mut file = File::from(file);
        file.write_all(content)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_data()?;
        std::fs::rename(note.path(), path)?;
        note.keep();
        Ok(())
    })
}

/// Runs an operation with the registry of this process's run, or with one of its own.
fn with_registry<T>(run: impl FnOnce(&Arc<Registry>) -> io::Result<T>) -> io::Result<T> {
    let own = Registry::own();
    // The registry is closed while a shell reports its end.
    if let Some(registry) = own.filter(|registry| registry.begin().is_some()) {
        return run(&registry);
    }
    // Before the run, there is no supervisor: after a kill, only the next shell could clean up.
    let registry = Arc::new(Registry::new(None));
    let result = run(&registry);
    registry.close();
    result
}

const PRIVATE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

/// Returns a random hidden name.
pub(crate) fn hidden_name() -> io::Result<String> {
    Ok(format!(".ftsh-{:016x}", sys::random()?))
}
