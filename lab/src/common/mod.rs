//! What every scenario has: options, random numbers, parallel trials, tables and pictures.

mod crowd;
pub mod input;
mod options;
mod output;
pub mod picture;
mod progress;
mod queue;
pub mod statistics;
mod table;
mod told;
mod trials;

pub use crowd::{Crowd, labels, legend};
pub use options::Common;
pub use output::{Output, Report};
pub use picture::{Axis, Panel, Picture, Series, Style};
pub use progress::Progress;
pub use queue::Queue;
pub use table::{Column, Table, Value};
pub use told::Told;
pub use trials::{Random, random, trials};
