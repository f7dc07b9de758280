//! `--journal`, and views of a journal: `--replay`, `--status`, `--timeline`.

mod journal_file;
mod moment;
mod output;
mod record;
mod reported;
mod resume;
mod sourced;
mod start;
mod view;

pub use self::journal_file::{JournalClaim, JournalFile, claim, has_earlier};
pub use self::output::open as open_output;
pub use self::record::{Recording, SharedJournal};
pub use self::reported::at_end;
pub use self::resume::{EndedRun, Resumption};
pub use self::view::view;
