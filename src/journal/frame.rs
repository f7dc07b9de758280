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
const HEAD: usize = 4 + 4;

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

fn checksum(run: u64, content: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(crc32fast::hash(&run.to_le_bytes()));
    hasher.update(content);
    hasher.finalize()
}

/// The content of the frame at a place, if a whole one is there.
fn frame(bytes: &[u8], run: u64, at: usize) -> Option<Range<usize>> {
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let length = number(at)? as usize;
    let start = at + HEAD;
    let content = bytes.get(start..start.checked_add(length)?)?;
    (length > 0 && number(at + 4)? == checksum(run, content)).then_some(start..start + length)
}

/// What the frames of a file hold, up to the last whole one; the place of a bad one before a good one
/// is an error.
pub fn frames(bytes: &[u8], run: u64) -> Result<Vec<Range<usize>>, usize> {
    let mut frames = Vec::new();
    let mut at = HEADER;
    while let Some(content) = frame(bytes, run, at) {
        at = content.end;
        frames.push(content);
    }
    // No frame begins in the room behind them.
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    if (at + 1..end).any(|later| frame(bytes, run, later).is_some()) {
        return Err(at);
    }
    Ok(frames)
}
