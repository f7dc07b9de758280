//! What every scenario has: options, random numbers, parallel trials, tables and pictures.

mod crowd;
pub mod input;
mod options;
mod output;
pub mod picture;
mod progress;
mod table;
mod trials;

pub use crowd::{Crowd, labels};
pub use options::Common;
pub use output::{Output, Report};
pub use picture::{Axis, Panel, Picture, Series, Style};
pub use progress::Progress;
pub use table::{Column, Table, Value};
pub use trials::{Random, random, trials};
