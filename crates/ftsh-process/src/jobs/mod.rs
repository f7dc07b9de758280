//! Work in progress: commands and their processes, relays of output, waits for channels.

pub mod children;
mod command;
mod relays;
mod turns;
mod view;
mod work;

pub use self::children::{Child, Children};
pub use self::command::{Answer, Command, Stage, Waiting};
pub use self::relays::{Outside, RELAYS, Relays};
pub use self::turns::{Note, Turns};
pub use self::view::View;
pub use self::work::Work;
