//! Contents of files: digests and copies of known length.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher24};

/// Number of bytes that are read at once.
const PIECE: usize = 256 * 1024;
/// Longest tick of the clock of a file system, rounded up: FAT has 2 s, ext3 and some NFS servers
/// have 1 s. A file that changes twice within a tick has the same times after both changes.
const RESOLUTION: Duration = Duration::from_secs(3);

/// Digest of a content. The run has a secret key: nobody else can construct two contents with the
/// same digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContentDigest(pub(super) [u8; 16]);

/// Key of the digests of a run.
pub type DigestKey = [u8; 16];

/// Side of a failed copy.
#[derive(Debug)]
pub(super) enum Broken {
    /// The source ended early or cannot be read.
    Source(io::Error),
    Target(io::Error),
}

/// Copies so many bytes, and returns their digest.
pub(super) fn copy(
    key: &DigestKey,
    from: &mut impl Read,
    to: &mut impl Write,
    length: u64,
) -> Result<ContentDigest, Broken> {
    let mut hasher = SipHasher24::new_with_key(key);
    let mut bytes = vec![0; PIECE.min(length as usize)];
    let mut left = length;
    while left > 0 {
        let wanted = left.min(PIECE as u64) as usize;
        let piece = match from.read(&mut bytes[..wanted]) {
            Ok(0) => return Err(Broken::Source(ErrorKind::UnexpectedEof.into())),
            Ok(read) => &bytes[..read],
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Broken::Source(error)),
        };
        hasher.write(piece);
        to.write_all(piece).map_err(Broken::Target)?;
        left -= piece.len() as u64;
    }
    Ok(ContentDigest(hasher.finish128().as_bytes()))
}

/// Digests of the files of a run. A file is read again only after a change, or if its last change is
/// younger than [`RESOLUTION`].
#[derive(Debug)]
pub struct Digests {
    /// Secret key, which nodes receive.
    pub key: DigestKey,
    known: Mutex<HashMap<FileState, ContentDigest>>,
}

/// Device, inode, length, and times of the last changes of content and inode.
type FileState = ([u64; 3], [i64; 4]);

impl Digests {
    /// Creates an empty table.
    pub fn new(key: DigestKey) -> Self {
        Self { key, known: Mutex::default() }
    }

    pub(super) fn of(&self, mut file: File, found: &Metadata) -> io::Result<ContentDigest> {
        let state = (
            [found.dev(), found.ino(), found.len()],
            [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()],
        );
        // Branches that begin together wait for the first one's digest.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digest) = known.get(&state) {
            return Ok(*digest);
        }
        // The age before the reading counts: a later change is then in a later tick.
        let is_old = age(found).is_some_and(|age| age >= RESOLUTION);
        let digest = copy(&self.key, &mut file, &mut io::sink(), found.len())
            .map_err(|(Broken::Source(error) | Broken::Target(error))| error)?;
        if is_old {
            known.insert(state, digest);
        }
        Ok(digest)
    }
}

/// Returns the time since the last change of the inode, or `None` if that change is in the future.
fn age(found: &Metadata) -> Option<Duration> {
    let changed = Duration::new(found.ctime().try_into().ok()?, found.ctime_nsec() as u32);
    UNIX_EPOCH.elapsed().ok()?.checked_sub(changed)
}
