//! Storage of a journal.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// File operations that a journal needs.
pub trait Store {
    /// Writes bytes at a position.
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Waits until all written bytes are on the disk. After a failure, the content of the disk is
    /// unknown.
    fn sync(&mut self) -> io::Result<()>;

    /// Truncates the file to `length` bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Store for File {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}
