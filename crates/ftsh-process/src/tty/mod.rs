//! Terminal: foreground, keys, status line, and restoration of modes.

mod foreground;
mod key_monitor;
mod keys;
mod queue;
mod restore;
mod status_line;

pub(crate) use self::foreground::Terminal;
pub(crate) use self::key_monitor::KeySignalMonitor;
pub(crate) use self::keys::Keys;
pub(crate) use self::queue::TerminalUse;
pub use self::restore::{Edited, TerminalRestore};
pub(crate) use self::status_line::{StatusLine, is_in_foreground};
pub use self::status_line::{columns, shows_status_line};
