//! Partial contents of buffers and staged files.

use std::io;

use bstr::{BString, ByteSlice};

use super::tables::{FdTables, PendingContent};
use crate::staged::StagedFile;
use ftsh_machine::driver::BufferPart;
use ftsh_machine::effect::{BufferId, Sink};

impl FdTables {
    /// Returns the buffers that are not empty.
    pub(crate) fn filled(&mut self, ids: &[BufferId]) -> Vec<BufferId> {
        ids.iter().copied().filter(|id| self.len(*id) > 0).collect()
    }

    fn len(&mut self, id: BufferId) -> u64 {
        if let Some(length) = self.held.len(id) {
            return length;
        }
        match (self.made(id), self.unmade(id)) {
            (Some(buffer), _) | (None, Some(PendingContent::Copy(buffer))) => buffer.len(),
            (None, Some(PendingContent::Bytes(text))) => text.len() as u64,
            (None, None) => 0,
        }
    }

    /// Returns the content of a buffer from an offset on, or all of it if shorter; none for an
    /// unknown buffer.
    pub(crate) fn written(&mut self, id: BufferId, from: u64) -> io::Result<Option<BufferPart>> {
        let is_there =
            self.held.is_known(id) || self.made(id).is_some() || self.unmade(id).is_some();
        if !is_there {
            return Ok(None);
        }
        let is_longer = from <= self.len(id) && !self.was_replaced(id, from)?;
        let from = if is_longer { from } else { 0 };
        let bytes = self.content_from(id, from)?;
        let end = from + bytes.len() as u64;
        if let Some(buffer) = self.made(id) {
            let reported = (end, buffer.hash_before(end)?);
            self.reported.insert(id, reported);
        }
        Ok(Some(BufferPart { from, bytes: bytes.into() }))
    }

    /// True if a command truncated a buffer after its content up to `from` was reported, and wrote
    /// at least as much again.
    fn was_replaced(&self, id: BufferId, from: u64) -> io::Result<bool> {
        match (self.reported.get(&id), self.made(id)) {
            (Some((end, hash)), Some(buffer)) if *end == from => {
                Ok(buffer.hash_before(from)? != *hash)
            }
            _ => Ok(false),
        }
    }

    /// Returns the last `most` bytes of these outputs together, with more of earlier outputs. Each
    /// part starts at the beginning of a line if possible.
    pub(crate) fn tail(&mut self, sinks: &[Sink], most: usize) -> io::Result<BString> {
        let mut result = BString::default();
        for sink in sinks {
            let most = most - result.len();
            if let Sink::Buffer(id) = sink
                && let Some(stream) = self.held.end_of_stream(*id)
            {
                let wanted = stream.end().min(most as u64);
                let end = stream.content_from((stream.end() - wanted).saturating_sub(1))?;
                result.extend_from_slice(whole_lines(&end, wanted as usize));
                continue;
            }
            let length = match sink {
                Sink::Buffer(id) => self.len(*id),
                Sink::StagedFile(id) => self.staged_file(*id).map_or(0, StagedFile::len),
            };
            let wanted = length.min(most as u64);
            // Includes the byte before, which shows if a line begins there.
            let start = length.saturating_sub(wanted).saturating_sub(1);
            let end = match sink {
                Sink::Buffer(id) => self.content_from(*id, start)?,
                Sink::StagedFile(id) => match self.staged_file(*id) {
                    Some(staged_file) => staged_file.content_from(start, length)?,
                    None => Vec::new(),
                },
            };
            result.extend_from_slice(whole_lines(&end, wanted as usize));
        }
        Ok(result)
    }

    fn content_from(&self, id: BufferId, start: u64) -> io::Result<Vec<u8>> {
        if self.held.is_known(id) {
            return self.held.content_from(id, start);
        }
        match (self.made(id), self.unmade(id)) {
            (Some(buffer), _) | (None, Some(PendingContent::Copy(buffer))) => {
                buffer.content_from(start)
            }
            (None, Some(PendingContent::Bytes(text))) => {
                Ok(text.get(start as usize..).unwrap_or_default().to_vec())
            }
            (None, None) => Ok(Vec::new()),
        }
    }
}

/// Returns the last `most` bytes, from the beginning of a line if possible.
fn whole_lines(end: &[u8], most: usize) -> &[u8] {
    if end.len() <= most {
        return end;
    }
    let last = &end[end.len() - most..];
    match end[end.len() - most - 1..].find_byte(b'\n') {
        Some(newline) if newline < last.len() => &last[newline..],
        _ => last,
    }
}

#[cfg(test)]
mod tests {
    use super::whole_lines;

    #[test]
    fn the_tail_begins_at_a_line_if_possible() {
        let cut = |text: &'static str, most| whole_lines(text.as_bytes(), most);
        assert_eq!(cut("one\ntwo\n", 8), b"one\ntwo\n");
        assert_eq!(cut("one\ntwo\n", 7), b"two\n");
        assert_eq!(cut("one\ntwo\n", 4), b"two\n");
        assert_eq!(cut("one\ntwo", 3), b"two");
        assert_eq!(cut("one two", 3), b"two");
        assert_eq!(cut("one\n", 2), b"e\n");
        assert_eq!(cut("one", 0), b"");
    }
}
