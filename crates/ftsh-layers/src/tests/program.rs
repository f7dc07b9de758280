//! Random programs of file operations.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rustix::fs::{XattrFlags, lremovexattr, lsetxattr};

use super::snapshot::OLD;

/// Source of a program and of the tree that it changes.
pub(super) struct Random(ChaCha8Rng);

const NAMES: [&str; 6] = ["a", "b", "c", "d", "long name", "é"];

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0.random_range(0..limit)
    }

    pub(super) fn path(&mut self) -> PathBuf {
        let depth = 1 + self.below(3);
        (0..depth).map(|_| NAMES[self.below(NAMES.len())]).collect()
    }

    fn content(&mut self) -> Vec<u8> {
        let length = [0, 1, 20, 5000][self.below(4)];
        let letter = b'a' + self.below(26) as u8;
        vec![letter; length]
    }
}

/// True if some files of the tree of a seed have several names.
pub(super) fn has_links(seed: u64) -> bool {
    seed.is_multiple_of(4)
}

/// Creates a random tree, all of whose times are old.
pub(super) fn plant(root: &Path, seed: u64) {
    let with_links = has_links(seed);
    let mut random = Random::new(seed);
    fs::create_dir(root).expect("a directory");
    for _ in 0..14 {
        let path = root.join(random.path());
        match random.below(if with_links { 6 } else { 5 }) {
            0 => fs::create_dir_all(&path).unwrap_or_default(),
            1 => symlink(random.path(), &path).unwrap_or_default(),
            5 => {
                let other = root.join(random.path());
                let _ = path.parent().map(fs::create_dir_all);
                drop(fs::hard_link(other, &path));
            }
            _ => {
                let _ = path.parent().map(fs::create_dir_all);
                drop(fs::write(&path, random.content()));
                if random.below(3) == 0 {
                    let _ = lsetxattr(&path, c"user.kept", b"yes", XattrFlags::empty());
                }
                if random.below(4) == 0 && path.is_file() && !path.is_symlink() {
                    let mode = [0o600, 0o444, 0o755][random.below(3)];
                    drop(fs::set_permissions(&path, Permissions::from_mode(mode)));
                }
            }
        }
    }
    age(root, &mut 1);
}

/// Gives all entries old times, each another one.
fn age(path: &Path, count: &mut u64) {
    let is_directory = path.symlink_metadata().is_ok_and(|it| it.is_dir());
    if is_directory {
        let mut names: Vec<_> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|it| it.path()).collect();
        names.sort();
        for path in &names {
            age(path, count);
        }
    }
    *count += 1;
    if let Ok(file) = File::open(path)
        && !path.is_symlink()
    {
        let time = UNIX_EPOCH + Duration::from_secs(OLD as u64 / 2 + *count);
        let _ = file.set_modified(time);
    }
}

/// Runs a random program in a directory. The same seed gives the same program.
pub(super) fn perform(root: &Path, seed: u64, length: usize) {
    let mut random = Random::new(seed ^ 0x5eed);
    for _ in 0..length {
        // Errors are a part of the program. Copies of hard links that are read later are not found.
        let can_read = !has_links(seed) || rustix::process::geteuid().is_root();
        let _ = operation(root, &mut random, can_read);
    }
}

fn operation(root: &Path, random: &mut Random, can_read: bool) -> io::Result<()> {
    let (path, other) = (root.join(random.path()), root.join(random.path()));
    let content = random.content();
    match random.below(18) {
        0 | 1 => fs::write(&path, content),
        2 => OpenOptions::new().append(true).create(true).open(&path)?.write_all(&content),
        3 => OpenOptions::new().write(true).open(&path)?.set_len(random.below(9000) as u64),
        4 | 5 => rename(&path, &other),
        6 => fs::remove_file(&path),
        7 => fs::remove_dir_all(&path),
        8 => {
            fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path))?;
            if random.below(2) == 0 { fs::write(&path, content) } else { fs::create_dir(&path) }
        }
        9 => fs::create_dir_all(&path),
        10 => symlink(random.path(), &path),
        11 => fs::hard_link(&path, &other),
        12 => chmod(&path, random),
        13 => {
            let value = [random.below(200) as u8; 3];
            Ok(lsetxattr(&path, c"user.random", &value, XattrFlags::empty())?)
        }
        14 => Ok(lremovexattr(&path, c"user.kept")?),
        15 if can_read => write_mapped(&path, random.below(50)),
        16 => {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
            file.write_all_at(&content, 70_000)
        }
        _ => {
            let time = UNIX_EPOCH + Duration::from_secs(OLD as u64 / 3 + random.below(99) as u64);
            File::open(&path)?.set_modified(time)
        }
    }
}

fn chmod(path: &Path, random: &mut Random) -> io::Result<()> {
    let is_directory = path.symlink_metadata()?.is_dir();
    let modes = if is_directory { [0o755, 0o700, 0o500] } else { [0o600, 0o444, 0o2755] };
    let mode = modes[random.below(3)];
    if path.is_symlink() { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(mode)) }
}

/// Variable that makes programs move the entries of directories as root, too.
pub(super) const MOVES: &str = "FTSH_TEST_MOVES";

/// Renames an entry. Without privileges, and over other overlays, overlays do not rename directories,
/// so the program moves their entries.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let is_directory = from.symlink_metadata()?.is_dir();
    let renames = rustix::process::geteuid().is_root() && std::env::var_os(MOVES).is_none();
    if !is_directory || renames {
        return fs::rename(from, to);
    }
    if to.starts_with(from) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let found = from.metadata()?;
    fs::create_dir(to)?;
    let mut names: Vec<_> = fs::read_dir(from)?.flatten().map(|it| it.file_name()).collect();
    names.sort();
    for name in names {
        rename(&from.join(&name), &to.join(&name))?;
    }
    fs::set_permissions(to, found.permissions())?;
    File::open(to)?.set_modified(found.modified()?)?;
    fs::remove_dir(from)
}

#[allow(unsafe_code, reason = "a write through a mapping is a part of the programs")]
fn write_mapped(path: &Path, offset: usize) -> io::Result<()> {
    use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = file.metadata()?.len() as usize;
    let Some(size) = NonZeroUsize::new(length).filter(|_| offset < length) else { return Ok(()) };
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: the kernel chooses the address.
    let start = unsafe { mmap(None, size, protection, MapFlags::MAP_SHARED, &file, 0) }?;
    // SAFETY: the offset is within the mapping, which nothing else uses.
    unsafe { start.cast::<u8>().add(offset).write(b'M') };
    // SAFETY: nothing uses the mapping any more.
    Ok(unsafe { munmap(start, length) }?)
}
