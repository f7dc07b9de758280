//! Recorded length of each buffer, with a checksum of its content.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use super::live_state::LiveState;
use ftsh_machine::Effect;
use ftsh_machine::driver::BufferPart;
use ftsh_machine::effect::{BufferId, FdChange, FdSource};

/// Lengths and checksums of the existing buffers.
#[derive(Default)]
pub(crate) struct Lengths(BTreeMap<BufferId, BufferLength>);

#[derive(Clone, Default)]
struct BufferLength {
    bytes: u64,
    /// Checksum of the content, or `None` if only the end of the content is known.
    sum: Option<DefaultHasher>,
}

impl BufferLength {
    fn of(content: &[u8]) -> Self {
        let mut length = Self { bytes: 0, sum: Some(DefaultHasher::new()) };
        length.add(content);
        length
    }

    fn add(&mut self, content: &[u8]) {
        self.bytes += content.len() as u64;
        if let Some(sum) = &mut self.sum {
            sum.write(content);
        }
    }
}

impl Lengths {
    /// Returns the lengths of a resumed run.
    pub(crate) fn new(alive: &LiveState) -> Self {
        let buffers = alive.buffers().map(|(buffer, content)| (buffer, BufferLength::of(content)));
        Self(buffers.collect())
    }

    /// Updates the lengths for an effect that the machine requests.
    pub(crate) fn on_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Run(run) | Effect::Exec(run) => self.changed(&run.redirects),
            Effect::Open { redirects, .. } => self.changed(redirects),
            Effect::DropBuffer(buffer) => {
                self.0.remove(buffer);
            }
            Effect::Fill(buffer, content) => {
                self.0.entry(*buffer).or_insert_with(|| BufferLength::of(b"")).add(content);
            }
            _ => {}
        }
    }

    fn changed(&mut self, changes: &[FdChange]) {
        for FdChange { source, .. } in changes {
            match source {
                FdSource::BufferCreate(buffer, content) => {
                    self.0.insert(*buffer, BufferLength::of(content));
                }
                FdSource::BufferCopy { buffer, of } => {
                    let length = self.0.get(of).cloned().unwrap_or_else(|| BufferLength::of(b""));
                    self.0.insert(*buffer, length);
                }
                FdSource::Hold(buffer) => {
                    self.0.insert(*buffer, BufferLength::of(b""));
                }
                _ => {}
            }
        }
    }

    /// Returns the recorded length of a buffer, or `None` if the buffer does not exist.
    pub(crate) fn of(&self, buffer: BufferId) -> Option<u64> {
        self.0.get(&buffer).map(|length| length.bytes)
    }

    /// Notes recorded bytes of a buffer.
    pub(crate) fn written(&mut self, buffer: BufferId, written: &BufferPart) {
        let Some(length) = self.0.get_mut(&buffer) else { return };
        if written.from == 0 {
            *length = BufferLength::of(b"");
        } else if written.from != length.bytes {
            *length = BufferLength { bytes: written.from, sum: None };
        }
        length.add(&written.bytes);
    }

    /// Returns true if `content` equals the recorded content of a buffer.
    pub(crate) fn is(&self, buffer: BufferId, content: &[u8]) -> bool {
        let Some(BufferLength { bytes, sum: Some(sum) }) = self.0.get(&buffer) else {
            return false;
        };
        let theirs = || BufferLength::of(content).sum.map(|sum| sum.finish());
        *bytes == content.len() as u64 && theirs() == Some(sum.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_in_parts_is_the_same_as_what_came_at_once() {
        let buffer = BufferId(1);
        let mut lengths = Lengths::default();
        lengths.changed(&[FdChange {
            descriptor: 1,
            source: FdSource::BufferCreate(buffer, "ab".into()),
        }]);
        let parts = [(2, "cdefghijklmn"), (14, ""), (14, "o")];
        for (from, bytes) in parts {
            lengths.written(buffer, &BufferPart { from, bytes: bytes.into() });
        }
        assert!(lengths.is(buffer, b"abcdefghijklmno"));
        assert!(!lengths.is(buffer, b"abcdefghijklmnp") && !lengths.is(buffer, b"abcdefghijklmn"));
        lengths.written(buffer, &BufferPart { from: 0, bytes: "x".into() });
        assert!(lengths.is(buffer, b"x"));
        lengths.on_effect(&Effect::DropBuffer(buffer));
        assert!(!lengths.is(buffer, b"x"));
    }
}
