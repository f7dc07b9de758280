//! Text of any size, in a file and a bounded amount of memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use ftsh_syntax::diagnostic::excerpt;
use ftsh_sys::os_error::plain;

/// Bytes kept in memory when the disk is full. The end of the text matters most.
const TAIL: usize = 1 << 18;

/// Growing text. The end of the part that the disk cannot hold is kept in memory.
pub(super) struct SpillBuffer {
    file: Option<File>,
    /// Error of the last write to the file.
    trouble: Option<io::Error>,
    tail: VecDeque<u8>,
    /// Number of bytes dropped between the file and the tail.
    missing: u64,
    /// Last byte added.
    last: u8,
}

impl SpillBuffer {
    /// Creates a buffer that continues the text in a file.
    pub(super) fn new(file: io::Result<File>) -> Self {
        let (file, trouble) = match file {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(error)),
        };
        let mut store = Self { file, trouble, tail: VecDeque::new(), missing: 0, last: b'\n' };
        if let Some(file) = &store.file
            && let Some(end) = store.length().checked_sub(1)
        {
            let mut last = [0];
            if file.read_at(&mut last, end).is_ok() {
                store.last = last[0];
            }
        }
        store
    }

    /// Appends bytes.
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.last = *last;
        }
        while self.trouble.is_none() && !bytes.is_empty() {
            let Some(file) = &mut self.file else { break };
            match file.write(bytes) {
                Ok(0) => self.trouble = Some(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.trouble = Some(error),
            }
        }
        self.tail.extend(bytes);
        let surplus = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..surplus);
        self.missing += surplus as u64;
    }

    /// True if there is no text.
    pub(super) fn is_empty(&self) -> bool {
        self.length() == 0 && self.tail.is_empty()
    }

    /// Writes the text, with a line in place of dropped bytes. Ends with a newline.
    pub(super) fn copy(&self, out: &mut impl Write) -> io::Result<()> {
        if let Some(file) = &self.file {
            let mut at = 0;
            let mut bytes = vec![0; 1 << 16];
            loop {
                match file.read_at(&mut bytes, at) {
                    Ok(0) => break,
                    Ok(count) => {
                        out.write_all(&bytes[..count])?;
                        at += count as u64;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        writeln!(out, "\nftsh: cannot read the rest: {}", plain(&error))?;
                        break;
                    }
                }
            }
        }
        if self.missing > 0 {
            let why = self.trouble.as_ref().map(plain).unwrap_or_default();
            writeln!(out, "\nftsh: {} bytes are missing here: {why}", self.missing)?;
        }
        let (start, end) = self.tail.as_slices();
        out.write_all(start)?;
        out.write_all(end)?;
        if self.last == b'\n' { Ok(()) } else { out.write_all(b"\n") }
    }

    /// Returns the end of the text, at least `most` bytes if there are as many.
    pub(super) fn end(&self, most: u64) -> Vec<u8> {
        let start = self.length().saturating_sub(most);
        let mut bytes = self.part(start, self.length());
        bytes.extend(&self.tail);
        bytes
    }

    /// Returns the last lines between two positions, as a part of a report.
    pub(super) fn lines(&self, from: u64, to: u64, most: usize) -> String {
        let part = self.part(from.max(to.saturating_sub(TAIL as u64)), to);
        let part = String::from_utf8_lossy(&part);
        let lines = part.lines().rev().take(most);
        let mut lines: Vec<_> = lines.map(|line| format!("    {}\n", excerpt(line))).collect();
        if !lines.is_empty() {
            lines.push("  it had printed last:\n".into());
        }
        lines.reverse();
        lines.concat()
    }

    /// Returns the bytes between two positions in the file.
    fn part(&self, from: u64, to: u64) -> Vec<u8> {
        let mut bytes = vec![0; to.saturating_sub(from) as usize];
        match self.file.as_ref().map(|file| file.read_exact_at(&mut bytes, from)) {
            Some(Ok(())) => bytes,
            _ => Vec::new(),
        }
    }

    fn length(&self) -> u64 {
        self.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |it| it.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(store: &SpillBuffer) -> String {
        let mut out = Vec::new();
        store.copy(&mut out).expect("a vector takes everything");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn what_is_added_is_shown() -> io::Result<()> {
        let file = tempfile::tempfile()?;
        let mut store = SpillBuffer::new(file.try_clone());
        assert!(store.is_empty());
        store.add(b"one\n");
        store.add(b"two");
        assert!(!store.is_empty());
        assert_eq!(shown(&store), "one\ntwo\n");
        let mut later = SpillBuffer::new(Ok(file));
        assert_eq!(shown(&later), "one\ntwo\n", "another one goes on");
        later.add(b"\nthree\n");
        assert_eq!(shown(&later), "one\ntwo\nthree\n");
        Ok(())
    }

    #[test]
    fn a_full_disk_keeps_the_beginning_and_the_end() {
        // Opened for writing only: reading the full device never ends.
        let mut store = SpillBuffer::new(File::options().write(true).open("/dev/full"));
        for number in 0..TAIL {
            store.add(format!("{number}\n").as_bytes());
        }
        let shown = shown(&store);
        assert!(shown.contains("bytes are missing here: no space left on device"), "{shown}");
        assert!(shown.ends_with(&format!("\n{}\n", TAIL - 1)));
        assert!(shown.len() < TAIL + 1000);
    }

    #[test]
    fn little_text_needs_no_file() {
        let mut store = SpillBuffer::new(Err(io::ErrorKind::PermissionDenied.into()));
        store.add(b"text");
        assert_eq!(shown(&store), "text\n");
    }
}
