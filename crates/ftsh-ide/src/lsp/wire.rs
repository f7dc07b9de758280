//! Transport of messages: a head with the length, and JSON.
//!
//! `lsp-server` can read messages too, but trusts any announced length, and stops at the first
//! message that does not parse.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;

use lsp_server::{Message, RequestId};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;

use ftsh_syntax::MAX_SCRIPT_LENGTH;

/// Maximum length of a message: more than the longest script with every character escaped.
const MAX_MESSAGE_LENGTH: u64 = 8 * MAX_SCRIPT_LENGTH as u64;
/// Maximum length of a line of a head.
const MAX_HEAD_LENGTH: u64 = 4096;

/// Both directions of a connection.
pub struct Wire<I, O> {
    input: BufReader<I>,
    output: O,
}

/// Message from the client.
#[derive(Debug)]
pub enum ClientMessage {
    /// Valid message.
    Message(Message),
    /// Invalid message: the id of the request, if present, and the error.
    Invalid(Option<RequestId>, String),
    /// End of the input.
    End,
}

/// Error after which no further message can be read.
#[derive(Debug)]
pub struct WireError(pub String);

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self(format!("cannot read from the editor: {}", ftsh_sys::os_error::plain(&error)))
    }
}

impl<I: Read + AsFd, O: Write> Wire<I, O> {
    /// Creates a connection from both streams.
    pub fn new(input: I, output: O) -> Self {
        Self { input: BufReader::new(input), output }
    }

    /// Waits for a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the head is invalid, or if its length is too large.
    pub fn read(&mut self) -> Result<ClientMessage, WireError> {
        let mut length = None;
        loop {
            let mut line = Vec::new();
            (&mut self.input).take(MAX_HEAD_LENGTH).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(ClientMessage::End);
            }
            let line = String::from_utf8_lossy(&line);
            let bad = || WireError(format!("invalid head of a message: {line:?}"));
            let line = line.strip_suffix('\n').ok_or_else(bad)?.trim_end_matches('\r');
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(bad)?;
            if name.eq_ignore_ascii_case("Content-Length") {
                length = Some(value.trim().parse::<u64>().map_err(|_| bad())?);
            }
        }
        let length =
            length.ok_or_else(|| WireError("a message without a Content-Length".into()))?;
        if length > MAX_MESSAGE_LENGTH {
            return Err(WireError(format!("a message of {length} bytes is too long")));
        }
        let mut text = Vec::new();
        let read = (&mut self.input).take(length).read_to_end(&mut text)?;
        Ok(if (read as u64) < length { ClientMessage::End } else { parsed(&text) })
    }

    /// Returns true if reading would not block; the end of the input counts too.
    pub fn has_more(&self) -> bool {
        let mut input = [PollFd::new(self.input.get_ref().as_fd(), PollFlags::POLLIN)];
        !self.input.buffer().is_empty()
            || poll(&mut input, PollTimeout::ZERO).is_ok_and(|it| it > 0)
    }

    /// Writes a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the editor has closed the connection.
    pub fn write(&mut self, message: &Message) -> io::Result<()> {
        message.write(&mut self.output)
    }
}

fn parsed(text: &[u8]) -> ClientMessage {
    match serde_json::from_slice(text) {
        Ok(message) => ClientMessage::Message(message),
        Err(_) => {
            let value = serde_json::from_slice::<Value>(text);
            let id = value.as_ref().ok().and_then(|value| value.get("id"));
            let id = id.and_then(|id| serde_json::from_value(id.clone()).ok());
            let reason = match &value {
                Ok(_) => "the message is not a request, a response or a notification".to_owned(),
                Err(error) => error.to_string(),
            };
            ClientMessage::Invalid(id, reason)
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
                Ok(ClientMessage::Message(message)) => {
                    all.push(serde_json::to_string(&message).expect("JSON"));
                }
                Ok(ClientMessage::Invalid(id, reason)) => all.push(format!("{id:?} {reason}")),
                Ok(ClientMessage::End) => return all,
                Err(WireError(reason)) => {
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
    fn invalid_messages_are_reported() {
        insta::assert_snapshot!(
            read("Content-Length: 8\n\n{\"id\":5}Content-Length: 1\n\n{Content-Length: 3\n\n\"\\u").join("\n"),
            @"
        Some(RequestId(I32(5))) the message is not a request, a response or a notification
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
