//! Language server for editors, over standard input and output.
//!
//! Each request has a file of its own, which uses a [`Document`] and no state of the protocol.
//! [`LanguageServer`] holds the open documents and turns messages into messages. [`Wire`] transports
//! messages. Requests take microseconds; they are therefore handled one after another, and never
//! canceled.

mod completion;
mod definition;
mod diagnostics;
mod document;
mod formatting;
mod hover;
pub(crate) mod names;
mod outline;
mod position;
mod rename;
mod rename_check;
mod rename_files;
mod schedule;
mod server;
#[cfg(test)]
mod tests;
mod wire;

use std::io::{self, Read, Write};
use std::os::fd::AsFd;

pub use self::document::Document;
pub use self::position::LineIndex;
pub use self::server::{LanguageServer, ServerContext};
pub use self::wire::Wire;
use self::wire::{ClientMessage, WireError};

/// Serves an editor until `exit` or the end of the input. Returns true if `shutdown` came before.
///
/// `complain` receives the errors of invalid messages without an answer.
///
/// # Errors
///
/// Returns an error if the start of the next message cannot be found.
pub fn serve(
    context: ServerContext,
    input: impl Read + AsFd,
    output: impl Write,
    complain: impl Fn(&str),
) -> io::Result<bool> {
    let mut wire = Wire::new(input, output);
    let mut server = LanguageServer::new(context);
    loop {
        let answers = match wire.read() {
            Ok(ClientMessage::Message(message)) => server.handle(message),
            Ok(ClientMessage::Invalid(id, reason)) => match id {
                Some(id) => vec![server::refusal(id, &reason)],
                None => {
                    complain(&format!("cannot parse a message of the editor: {reason}"));
                    Vec::new()
                }
            },
            Ok(ClientMessage::End) => return Ok(server.was_shut_down()),
            Err(WireError(reason)) => return Err(io::Error::other(reason)),
        };
        // Diagnostics wait until the editor has sent all pending changes.
        let diagnostics = if wire.has_more() { Vec::new() } else { server.diagnostics() };
        for message in answers.into_iter().chain(diagnostics) {
            if wire.write(&message).is_err() {
                // The editor is gone.
                return Ok(server.was_shut_down());
            }
        }
        if server.is_over() {
            return Ok(server.was_shut_down());
        }
    }
}
