//! `--journal`, and looks at what is recorded: `--replay`, `--status`, `--timeline`.

mod look;
mod moment;
mod place;
mod record;

pub use self::look::look;
pub use self::place::{Prepared, prepare};
pub use self::record::Room;
