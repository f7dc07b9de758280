//! Parts shared by all scenarios: options, random numbers, parallel trials, tables and pictures.

mod crowd;
pub mod input;
mod options;
mod output;
pub mod picture;
mod progress;
mod queue;
mod rendered_error;
pub mod statistics;
mod table;
mod trials;

pub use crowd::{ClientCrowd, labels, legend};
pub use options::CommonOptions;
pub use output::{Report, ReportOutput};
pub use picture::{Axis, Panel, Picture, PlotSeries, SeriesStyle};
pub use progress::TrialProgress;
pub use queue::ClientQueue;
pub use rendered_error::RenderedError;
pub use table::{Cell, Column, ReportTable};
pub use trials::{Random, random, trials};
