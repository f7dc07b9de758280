//! Bytes that are read and will be read again, of an input or of held output. The last bytes are in
//! memory, the others in an unnamed file.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bstr::BString;

use super::buffer::file_on_disk;

/// Maximum number of bytes in memory, unless the disk is full.
const IN_MEMORY: usize = 256 * 1024;
/// Disk space is freed in pieces of this size.
const PIECE: u64 = 4 * 1024 * 1024;

/// Bytes addressed by their position in the stream.
#[derive(Debug, Default)]
pub struct SpillingLog {
    /// Position of the first byte still needed.
    start: u64,
    /// File with the bytes before the part in memory, and the position of its first byte.
    file: Option<(File, u64)>,
    /// Position of the first byte in memory.
    recent: u64,
    memory: VecDeque<u8>,
    /// Size at which writing to the disk is tried again after an error.
    next_try: usize,
}

/// All bytes of a log.
pub enum Content {
    /// In memory.
    Bytes(BString),
    /// In an unnamed file.
    File(File),
}

impl SpillingLog {
    /// Returns the position after the last byte.
    pub fn end(&self) -> u64 {
        self.recent + self.memory.len() as u64
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        self.memory.extend(bytes);
        if self.memory.len() > IN_MEMORY.max(self.next_try) {
            self.next_try = match self.put_on_disk() {
                Ok(()) => 0,
                Err(_) => 2 * self.memory.len(),
            };
        }
    }

    fn put_on_disk(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some((file_on_disk()?.into(), self.recent));
        }
        let Some((file, origin)) = &self.file else { return Ok(()) };
        let (one, other) = self.memory.as_slices();
        let at = self.recent - origin;
        file.write_all_at(one, at)?;
        file.write_all_at(other, at + one.len() as u64)?;
        self.recent = self.end();
        self.memory.clear();
        Ok(())
    }

    /// Copies bytes from a position on, as many as are stored together and fit. Returns 0 at the
    /// end.
    pub fn read(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            Some((file, origin)) if at < self.recent => {
                let most = room.len().min((self.recent - at) as usize);
                match file.read_at(&mut room[..most], at - origin)? {
                    0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    count => Ok(count),
                }
            }
            _ => {
                let skipped = at.saturating_sub(self.recent) as usize;
                let (one, other) = self.memory.as_slices();
                let part = match one.get(skipped..) {
                    Some(part) if !part.is_empty() => part,
                    _ => other.get(skipped.saturating_sub(one.len())..).unwrap_or_default(),
                };
                let count = part.len().min(room.len());
                room[..count].copy_from_slice(&part[..count]);
                Ok(count)
            }
        }
    }

    /// Copies all bytes from a position on.
    pub fn content_from(&self, start: u64) -> io::Result<Vec<u8>> {
        let mut content = vec![0; self.end().saturating_sub(start) as usize];
        let mut filled = 0;
        while filled < content.len() {
            match self.read(start + filled as u64, &mut content[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(content)
    }

    /// Returns all bytes, in memory or in a file. Valid only if no bytes were dropped.
    pub fn finish(mut self) -> io::Result<Content> {
        if self.file.is_some() {
            self.put_on_disk()?;
        }
        Ok(match self.file {
            Some((file, _)) => Content::File(file),
            None => Content::Bytes(Vec::from(self.memory).into()),
        })
    }

    /// Drops the bytes before a position.
    pub fn forget_before(&mut self, place: u64) {
        let place = place.min(self.end());
        if place >= self.recent {
            self.file = None;
            self.memory.drain(..(place - self.recent) as usize);
            (self.start, self.recent) = (place, place);
        } else if place - self.start >= PIECE
            && let Some((file, origin)) = &self.file
        {
            give_back(file, self.start - origin, place - self.start);
            self.start = place;
        }
    }
}

/// Frees the disk space of a range, if the file system supports holes.
fn give_back(file: &File, at: u64, length: u64) {
    use nix::fcntl::{FallocateFlags, fallocate};
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let _ = fallocate(file, flags, at.cast_signed(), length.cast_signed());
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// The bytes of the places from one to another.
    fn numbered(from: u64, to: u64) -> Vec<u8> {
        (from..to).map(|place| (place % 251) as u8).collect()
    }

    fn filled(length: u64) -> SpillingLog {
        let mut log = SpillingLog::default();
        for start in (0..length).step_by(100_000) {
            log.append(&numbered(start, length.min(start + 100_000)));
        }
        assert_eq!(log.end(), length);
        log
    }

    fn rest(log: &SpillingLog, from: u64) -> Vec<u8> {
        let (mut all, mut room) = (Vec::new(), vec![0; 70_000]);
        loop {
            match log.read(from + all.len() as u64, &mut room).expect("it is there") {
                0 => return all,
                count => all.extend_from_slice(&room[..count]),
            }
        }
    }

    #[test]
    fn all_is_there_whether_in_memory_or_not() {
        for length in [0, 10, 1 << 20, 5 << 20] {
            let log = filled(length);
            assert!(log.memory.len() <= IN_MEMORY);
            for from in [0, length / 3, length - length.min(5), length] {
                assert_eq!(rest(&log, from), numbered(from, length), "{from} of {length}");
            }
        }
    }

    #[test]
    fn dropped_bytes_free_their_space() {
        let mut log = filled(20 << 20);
        let room = |log: &SpillingLog| {
            log.file.as_ref().map(|(file, _)| file.metadata().map(|it| it.blocks()))
        };
        let before = room(&log).expect("a file").expect("its size");
        log.forget_before(15 << 20);
        let after = room(&log).expect("a file").expect("its size");
        assert!(after < before / 2, "{after} of {before}");
        assert_eq!(rest(&log, 15 << 20), numbered(15 << 20, 20 << 20));
        log.forget_before(20 << 20);
        assert!(log.file.is_none() && log.memory.is_empty());
        log.append(&numbered(20 << 20, 21 << 20));
        assert_eq!(rest(&log, 20 << 20), numbered(20 << 20, 21 << 20));
    }
}
