//! Terminal: foreground, keys, status line, and restoration of modes.

mod foreground;
mod key_monitor;
mod keys;
mod queue;
mod restore;
mod status_line;

pub use self::foreground::Terminal;
pub use self::key_monitor::KeySignalMonitor;
pub use self::keys::Keys;
pub use self::queue::TerminalUse;
pub use self::restore::{Edited, TerminalRestore};
pub use self::status_line::{StatusLine, columns};

/// Terminal of a shell, as far as available.
pub struct Tty {
    /// Foreground control; none without a terminal.
    pub terminal: Option<Terminal>,
    /// State to restore if the supervisor is killed; set only at a prompt.
    pub restore: Option<TerminalRestore>,
    /// Line that shows the state of the run.
    pub status_line: StatusLine,
}
