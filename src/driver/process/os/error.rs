//! What the system's errors say to people.

use std::io;

/// An error's text without the number that std adds.
pub fn plain(error: &io::Error) -> String {
    if error.raw_os_error() == Some(libc::EMFILE) {
        return "too many open files (see `ulimit -n`)".into();
    }
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// Why there is no worker for something.
pub fn no_worker(error: &io::Error) -> String {
    format!("no thread to be had: {}", plain(error))
}
