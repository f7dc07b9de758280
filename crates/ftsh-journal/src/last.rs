//! Search for the last frame of a journal with little memory.
//!
//! A process that waits for the end of a run may have no memory for the whole journal.

use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

use super::entry::{FrameHead, JournalEntry, Over};
use super::frame::{self, FileStart, FrameIter, HEAD, HEADER};
use super::read::Entries;

/// Number of bytes per read.
const PIECE: usize = 64 * 1024;

/// Last whole frame of a journal.
#[derive(Debug, PartialEq)]
pub struct LastFrame {
    /// Id of the run.
    pub(super) run: u64,
    pub(super) head: FrameHead,
    /// Position of the end of the frame.
    pub(super) end: u64,
    /// End of the run, if the frame records the end.
    pub over: Option<Over>,
}

/// Returns the last whole frame, or `None` if the file has no frame.
///
/// The checksums of earlier frames are not verified, so the journal must be known to be good.
pub fn last(file: impl Read + Seek) -> io::Result<Option<LastFrame>> {
    let mut file = BufReader::with_capacity(PIECE, file);
    let size = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let FileStart::Run(run) = frame::start(&header) else { return Ok(None) };
    // The last frame may be torn, so the frame before is kept as well.
    let (mut before, mut last, mut at) = (None, None, HEADER as u64);
    while at + HEAD as u64 <= size {
        let mut head = [0; HEAD];
        file.read_exact(&mut head)?;
        let [a, b, c, d, ..] = head;
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        let end = at + HEAD as u64 + length;
        if length == 0 || end > size {
            break;
        }
        (before, last) = (last, Some((at, end)));
        file.seek_relative(length.try_into().unwrap_or(i64::MAX))?;
        at = end;
    }
    for (at, end) in [last, before].into_iter().flatten() {
        let mut bytes = Vec::new();
        let length = (end - at) as usize;
        bytes.try_reserve_exact(length).map_err(|_| ErrorKind::OutOfMemory)?;
        file.seek(SeekFrom::Start(at))?;
        file.by_ref().take(end - at).read_to_end(&mut bytes)?;
        if let Some(content) = FrameIter::at(&bytes, run, 0).next()
            && let Ok((head, rest)) = postcard::take_from_bytes::<FrameHead>(&bytes[content])
        {
            return Ok(Some(LastFrame { run, head, end, over: over(rest) }));
        }
    }
    Ok(None)
}

/// Returns the end of the run that the entries record.
fn over(entries: &[u8]) -> Option<Over> {
    Entries(entries).map_while(Result::ok).fold(None, |over, entry| match entry {
        JournalEntry::Over(over) => Some(over),
        // A later delivery means: the program that was to replace the shell failed to start.
        JournalEntry::Delivered { .. } => None,
        _ => over,
    })
}
