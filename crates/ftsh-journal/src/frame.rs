//! Layout of a journal: a header, then frames.
//!
//! A frame reaches the disk before the next frame is written. So only the last frame can be
//! incomplete, in any of its parts. A bad frame before a good frame is damage. The id of the run
//! salts the checksums, because the file may end in bytes of another run.

use std::ops::Range;

use crc32fast::Hasher;

/// First bytes of a journal. The number changes with the layout and with the content of frames.
const MAGIC: &[u8; 16] = b"ftsh journal 02\n";
/// Length of the prefix that all formats share.
const ANY_MAGIC: usize = 13;
/// Size of the header: the magic, the id of the run, a checksum.
pub(crate) const HEADER: usize = MAGIC.len() + 8 + 4;
/// Size of the head of a frame: the length of the content, a checksum.
pub(crate) const HEAD: usize = 4 + 4;

/// Kind of the beginning of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileStart {
    /// Empty file, or an incomplete header.
    Empty,
    /// Header of this run.
    Run(u64),
    /// Header of another format.
    OtherFormat,
    /// Beginning of another kind of file.
    Other,
}

/// Returns the header of a run.
pub(crate) fn header(run: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..16].copy_from_slice(MAGIC);
    header[16..24].copy_from_slice(&run.to_le_bytes());
    let sum = crc32fast::hash(&header[..24]);
    header[24..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Returns the kind of the beginning of a file.
pub(crate) fn start(bytes: &[u8]) -> FileStart {
    if let Some(given) = bytes.first_chunk::<HEADER>() {
        let run = u64::from_le_bytes(given[16..24].try_into().unwrap_or_default());
        if *given == header(run) {
            return FileStart::Run(run);
        }
    }
    let magic = MAGIC.iter().zip(bytes).take_while(|(ours, theirs)| ours == theirs).count();
    // The header is written alone, and a crash may lose any part of the header.
    let is_part = |(ours, theirs): (&u8, &u8)| theirs == ours || *theirs == 0;
    let is_torn = bytes.len() <= HEADER && MAGIC.iter().zip(bytes).all(is_part);
    if is_torn || bytes.iter().all(|byte| *byte == 0) {
        FileStart::Empty
    } else if magic >= ANY_MAGIC && magic < MAGIC.len() {
        FileStart::OtherFormat
    } else {
        FileStart::Other
    }
}

/// Appends a frame that holds `content`.
pub(crate) fn append(out: &mut Vec<u8>, run: u64, content: &[u8]) {
    out.extend((content.len() as u32).to_le_bytes());
    out.extend(checksum(run, content).to_le_bytes());
    out.extend(content);
}

/// Returns the initial value of the checksums of a run.
pub(crate) fn salt(run: u64) -> u32 {
    crc32fast::hash(&run.to_le_bytes())
}

fn checksum(run: u64, content: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(salt(run));
    hasher.update(content);
    hasher.finalize()
}

/// Returns the number at a position.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Returns the content range and the checksum of a possible frame at a position.
pub(crate) fn possible(bytes: &[u8], at: usize) -> Option<(Range<usize>, u32)> {
    let length = number(bytes, at).filter(|length| *length > 0)? as usize;
    let start = at + HEAD;
    let end = start.checked_add(length).filter(|end| *end <= bytes.len())?;
    Some((start..end, number(bytes, at + 4)?))
}

/// Iterator over the frames of a file, up to the first incomplete frame.
pub(crate) struct FrameIter<'a> {
    bytes: &'a [u8],
    run: u64,
    at: usize,
}

impl<'a> FrameIter<'a> {
    /// Iterates over the frames of a run from the header on.
    pub(crate) fn of(bytes: &'a [u8], run: u64) -> Self {
        Self::at(bytes, run, HEADER)
    }

    /// Iterates over the frames of a run from a position on.
    pub(crate) fn at(bytes: &'a [u8], run: u64, at: usize) -> Self {
        Self { bytes, run, at }
    }

    /// Returns the end of the last frame read.
    pub(crate) fn end(&self) -> usize {
        self.at
    }
}

impl Iterator for FrameIter<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let (content, sum) = possible(self.bytes, self.at)?;
        if checksum(self.run, &self.bytes[content.clone()]) != sum {
            return None;
        }
        self.at = content.end;
        Some(content)
    }
}
