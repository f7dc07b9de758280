//! `--journal`, and looks at what is recorded: `--replay`, `--status`, `--timeline`.

mod look;
mod moment;
mod output;
mod place;
mod record;
mod resume;
mod sourced;
mod start;
mod told;

pub use self::look::look;
pub use self::output::open as open_output;
pub use self::place::{Place, Taken, has_earlier, take};
pub use self::record::{Kept, Recording};
pub use self::resume::{Ended, Found};
pub use self::told::at_end;
