//! How the bytes of a journal are laid out: a header, and frames one after the other.
//!
//! A frame is written and on the disk before the next one is written. So at most the last one can be
//! incomplete, in whatever part of it; a bad one before a good one is damage. Checksums are salted with the
//! run's id, as what follows may be left of another run.

use std::ops::Range;

use crc32fast::Hasher;

/// How the file begins. Whatever changes below or in what frames hold is another number.
const MAGIC: &[u8; 16] = b"ftsh journal 01\n";
/// The part of it that other formats have as well.
const ANY_MAGIC: usize = 13;
/// The magic, the run's id, a checksum.
pub const HEADER: usize = MAGIC.len() + 8 + 4;
/// The length of what it holds, a checksum.
pub const HEAD: usize = 4 + 4;

/// How a file begins.
#[derive(Debug, PartialEq, Eq)]
pub enum Start {
    /// With nothing yet, or a header that wasn't finished.
    Empty,
    /// With the header of this run.
    Run(u64),
    /// With the header of another format.
    OtherFormat,
    /// As something else.
    Other,
}

/// The header of a run.
pub fn header(run: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..16].copy_from_slice(MAGIC);
    header[16..24].copy_from_slice(&run.to_le_bytes());
    let sum = crc32fast::hash(&header[..24]);
    header[24..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// How these bytes begin.
pub fn start(bytes: &[u8]) -> Start {
    if let Some(given) = bytes.first_chunk::<HEADER>() {
        let run = u64::from_le_bytes(given[16..24].try_into().unwrap_or_default());
        if *given == header(run) {
            return Start::Run(run);
        }
    }
    let magic = MAGIC.iter().zip(bytes).take_while(|(ours, theirs)| ours == theirs).count();
    // It is written alone, and any part of it may be missing.
    let is_part = |(ours, theirs): (&u8, &u8)| theirs == ours || *theirs == 0;
    let is_torn = bytes.len() <= HEADER && MAGIC.iter().zip(bytes).all(is_part);
    if is_torn || bytes.iter().all(|byte| *byte == 0) {
        Start::Empty
    } else if magic >= ANY_MAGIC && magic < MAGIC.len() {
        Start::OtherFormat
    } else {
        Start::Other
    }
}

/// Appends a frame that holds `content`.
pub fn append(out: &mut Vec<u8>, run: u64, content: &[u8]) {
    out.extend((content.len() as u32).to_le_bytes());
    out.extend(checksum(run, content).to_le_bytes());
    out.extend(content);
}

/// What the checksums of a run begin with.
pub fn salt(run: u64) -> u32 {
    crc32fast::hash(&run.to_le_bytes())
}

fn checksum(run: u64, content: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(salt(run));
    hasher.update(content);
    hasher.finalize()
}

/// The number at a place.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// What would be the content of a frame at a place, and its checksum.
pub fn possible(bytes: &[u8], at: usize) -> Option<(Range<usize>, u32)> {
    let length = number(bytes, at).filter(|length| *length > 0)? as usize;
    let start = at + HEAD;
    let end = start.checked_add(length).filter(|end| *end <= bytes.len())?;
    Some((start..end, number(bytes, at + 4)?))
}

/// The frames of a file, one after the other, up to the first that isn't whole.
pub struct Frames<'a> {
    bytes: &'a [u8],
    run: u64,
    at: usize,
}

impl<'a> Frames<'a> {
    /// Those of a run.
    pub fn of(bytes: &'a [u8], run: u64) -> Self {
        Self::at(bytes, run, HEADER)
    }

    /// The same from a place on.
    pub fn at(bytes: &'a [u8], run: u64, at: usize) -> Self {
        Self { bytes, run, at }
    }

    /// Where the last one ended.
    pub fn end(&self) -> usize {
        self.at
    }
}

impl Iterator for Frames<'_> {
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
