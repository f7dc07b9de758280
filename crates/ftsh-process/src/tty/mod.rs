//! The terminal: who has it, what is typed at it, what it shows, and how it is left.

mod foreground;
mod key_monitor;
mod keys;
mod queue;
mod restore;
mod status_line;

pub use self::foreground::Terminal;
pub use self::key_monitor::KeySignalMonitor;
pub use self::keys::Keys;
pub use self::queue::Use;
pub use self::restore::{Edited, TerminalRestore};
pub use self::status_line::{StatusLine, columns};

/// The terminal, as far as there is one.
pub struct Tty {
    /// Who has it; none without one.
    pub terminal: Option<Terminal>,
    /// How it is to be left if the supervisor is killed; only at a prompt.
    pub restore: Option<TerminalRestore>,
    /// What people are told on it.
    pub status_line: StatusLine,
}
