//! Work in progress: commands and their processes, relays of output, waits for channels.

pub mod children;
mod command;
mod relays;
mod system_view;
mod turns;
mod worker_jobs;

pub use self::children::{Children, CommandChild};
pub use self::command::{ActiveCommand, CommandStage, JobRecipient, JobResult};
pub use self::relays::{JobContext, RELAYS, Relays};
pub use self::system_view::SystemView;
pub use self::turns::{Turns, UserNote};
pub use self::worker_jobs::WorkerJobs;
