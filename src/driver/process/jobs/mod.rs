//! What is in progress: commands, and the processes that run them.

pub mod children;
mod command;

pub use self::children::{Child, Children, Others};
pub use self::command::{Answer, Command, Stage, Waiting};
