//! Messages as they come and go: a head that says how long they are, and JSON.
//!
//! `lsp-server` can read them, too, but takes the word of whoever says that gigabytes are to come,
//! and gives up at the first message that it doesn't understand.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;

use lsp_server::{Message, RequestId};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;

use ftsh_syntax::LONGEST;

/// A longer message isn't read: the longest script, each of its characters escaped, is shorter.
const LONGEST_MESSAGE: u64 = 8 * LONGEST as u64;
/// A longer line is no head.
const LONGEST_HEAD: u64 = 4096;

/// The two ends of a conversation.
pub struct Wire<I, O> {
    input: BufReader<I>,
    output: O,
}

/// What was read.
#[derive(Debug)]
pub enum Incoming {
    /// A message.
    Message(Message),
    /// Something that is none, in its place: the request's number, if it has one, and what is wrong.
    Garbled(Option<RequestId>, String),
    /// Nothing will come any more.
    End,
}

/// Why nothing more can be read.
#[derive(Debug)]
pub struct Trouble(pub String);

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self(format!("can't read what the editor says: {}", ftsh_sys::os_error::plain(&error)))
    }
}

impl<I: Read + AsFd, O: Write> Wire<I, O> {
    /// Reads from there and writes to there.
    pub fn new(input: I, output: O) -> Self {
        Self { input: BufReader::new(input), output }
    }

    /// Waits for a message.
    ///
    /// # Errors
    ///
    /// The head is none, or says that more is to come than a message can have.
    pub fn read(&mut self) -> Result<Incoming, Trouble> {
        let mut length = None;
        loop {
            let mut line = Vec::new();
            (&mut self.input).take(LONGEST_HEAD).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(Incoming::End);
            }
            let line = String::from_utf8_lossy(&line);
            let bad = || Trouble(format!("an editor doesn't begin a message with {line:?}"));
            let line = line.strip_suffix('\n').ok_or_else(bad)?.trim_end_matches('\r');
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(bad)?;
            if name.eq_ignore_ascii_case("Content-Length") {
                length = Some(value.trim().parse::<u64>().map_err(|_| bad())?);
            }
        }
        let length = length.ok_or_else(|| Trouble("a message without a Content-Length".into()))?;
        if length > LONGEST_MESSAGE {
            return Err(Trouble(format!("a message of {length} bytes is too long")));
        }
        let mut text = Vec::new();
        let read = (&mut self.input).take(length).read_to_end(&mut text)?;
        Ok(if (read as u64) < length { Incoming::End } else { understood(&text) })
    }

    /// Whether something can be read at once, if only the end.
    pub fn is_more_there(&self) -> bool {
        let mut input = [PollFd::new(self.input.get_ref().as_fd(), PollFlags::POLLIN)];
        !self.input.buffer().is_empty()
            || poll(&mut input, PollTimeout::ZERO).is_ok_and(|it| it > 0)
    }

    /// Says a message.
    ///
    /// # Errors
    ///
    /// Nobody takes it.
    pub fn write(&mut self, message: &Message) -> io::Result<()> {
        message.write(&mut self.output)
    }
}

fn understood(text: &[u8]) -> Incoming {
    match serde_json::from_slice(text) {
        Ok(message) => Incoming::Message(message),
        Err(_) => {
            let value = serde_json::from_slice::<Value>(text);
            let id = value.as_ref().ok().and_then(|value| value.get("id"));
            let id = id.and_then(|id| serde_json::from_value(id.clone()).ok());
            let reason = match &value {
                Ok(_) => "it is no request, answer or notification".to_owned(),
                Err(error) => error.to_string(),
            };
            Incoming::Garbled(id, reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Seek;

    use super::*;

    fn read(text: &str) -> Vec<String> {
        let mut file: File = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes()).expect("a file that is written");
        file.rewind().expect("its beginning");
        let mut wire = Wire::new(file, Vec::new());
        let mut all = Vec::new();
        loop {
            match wire.read() {
                Ok(Incoming::Message(message)) => {
                    all.push(serde_json::to_string(&message).expect("JSON"));
                }
                Ok(Incoming::Garbled(id, reason)) => all.push(format!("{id:?} {reason}")),
                Ok(Incoming::End) => return all,
                Err(Trouble(reason)) => {
                    all.push(reason);
                    return all;
                }
            }
        }
    }

    #[test]
    fn messages_come_one_after_the_other() {
        let exit = r#"{"method":"exit"}"#;
        let text = format!("Content-Length: 17\r\n\r\n{exit}content-length:17\nX: y\n\n{exit}");
        assert_eq!(read(&text), [exit, exit]);
        assert_eq!(read(""), [""; 0]);
        assert_eq!(read("Content-Length: 18\r\n\r\n{}"), [""; 0]);
    }

    #[test]
    fn what_is_no_message_is_told() {
        insta::assert_snapshot!(
            read("Content-Length: 8\n\n{\"id\":5}Content-Length: 1\n\n{Content-Length: 3\n\n\"\\u").join("\n"),
            @"
        Some(RequestId(I32(5))) it is no request, answer or notification
        None EOF while parsing an object at line 1 column 1
        None EOF while parsing a string at line 1 column 3
        ");
        let long = "x".repeat(5000);
        for text in [
            "hello\n",
            "hello",
            "Content-Length: 18446744073709551615\n\n",
            "Content-Length: 18446744073709551616\n\n",
            "Content-Length: -1\n\n",
            "X: y\n\n{}",
            "\n",
            "\u{fffd}: \0\n\n",
            &long,
        ] {
            assert_eq!(read(text).len(), 1, "{text:?}");
        }
    }
}
