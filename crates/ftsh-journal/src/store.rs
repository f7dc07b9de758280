//! Where a journal is kept.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What a journal asks of a file.
pub trait Store {
    /// Writes bytes at a place.
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Waits until all that was written is on the disk. After a failure nobody knows what is there.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts off what was made room for and isn't needed.
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
