//! A language server: what the shell knows of scripts, told to editors over standard input and output.
//!
//! Each request has a file of its own, which sees a [`Document`] and nothing of the protocol's state;
//! [`Server`] knows which texts are open and turns messages into messages; [`Wire`] carries them.
//! Requests take microseconds, so one is done after the other, and none is ever cancelled.

mod completion;
mod definition;
mod document;
mod formatting;
mod hover;
mod mistakes;
mod names;
mod outline;
mod position;
mod rename;
mod schedule;
mod server;
mod sound;
#[cfg(test)]
mod tests;
mod variables;
mod wire;

use std::io::{self, Read, Write};
use std::os::fd::AsFd;

pub use self::document::Document;
pub use self::position::Lines;
pub use self::server::{Around, Server};
pub use self::wire::Wire;
use self::wire::{Incoming, Trouble};

/// Serves an editor until it says `exit` or is gone; whether it said before that this would be the end,
/// as it should. `complain` is told of messages that can't be understood and have no answer.
///
/// # Errors
///
/// What comes in is no message at all, so that nobody knows where the next one begins.
pub fn serve(
    around: Around,
    input: impl Read + AsFd,
    output: impl Write,
    complain: impl Fn(&str),
) -> io::Result<bool> {
    let mut wire = Wire::new(input, output);
    let mut server = Server::new(around);
    loop {
        let answers = match wire.read() {
            Ok(Incoming::Message(message)) => server.handle(message),
            Ok(Incoming::Garbled(id, reason)) => match id {
                Some(id) => vec![server::refusal(id, &reason)],
                None => {
                    complain(&format!("a message of the editor's can't be understood: {reason}"));
                    Vec::new()
                }
            },
            Ok(Incoming::End) => return Ok(server.was_shut_down()),
            Err(Trouble(reason)) => return Err(io::Error::other(reason)),
        };
        // Who types fast needs no opinion on each letter.
        let opinions = if wire.is_more_there() { Vec::new() } else { server.opinions() };
        for message in answers.into_iter().chain(opinions) {
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
