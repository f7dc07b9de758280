//! What is known of a relay, which writes on what branches print, line by line; and the tags of lines.

use bstr::BString;

use super::effect::OperationId;

/// What writes on what the branches of a `forall` print.
#[derive(Debug)]
pub struct Relay {
    /// Its name, and what tells of its end.
    pub operation: OperationId,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// There are branches, or there may be.
    Open,
    /// All have ended, and what they printed is being written.
    Finishing,
    /// All is written, can't be, or is somebody else's matter.
    Done,
}

impl Relay {
    /// It begins.
    pub fn new(operation: OperationId) -> Self {
        Self { operation, progress: Progress::Open }
    }

    /// No more branches begin; says whether that is news.
    pub fn finish(&mut self) -> bool {
        let is_news = self.progress == Progress::Open;
        if is_news {
            self.progress = Progress::Finishing;
        }
        is_news
    }

    /// There is nothing to wait for any more; says whether that is news.
    pub fn end(&mut self) -> bool {
        std::mem::replace(&mut self.progress, Progress::Done) != Progress::Done
    }

    /// Whether there is nothing to wait for.
    pub fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }
}

/// A word as one field of a line.
pub fn tag(word: &[u8]) -> BString {
    let mut tag = BString::default();
    for byte in word {
        match byte {
            b'\n' => tag.extend_from_slice(br"\n"),
            b'\t' => tag.extend_from_slice(br"\t"),
            b'\r' => tag.extend_from_slice(br"\r"),
            0..b' ' | 127 => {
                tag.extend_from_slice(format!(r"\x{byte:02x}").as_bytes());
            }
            byte => tag.push(*byte),
        }
    }
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_one_field_whatever_the_word_holds() {
        assert_eq!(tag(b"a b\\c"), r"a b\c");
        assert_eq!(tag(b"\ta\r\nb\x1b\x7f\xff"), [br"\ta\r\nb\x1b\x7f", &b"\xff"[..]].concat());
    }
}
