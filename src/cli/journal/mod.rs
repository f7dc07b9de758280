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

pub(super) use self::journal_file::{EarlierRun, JournalClaim, JournalFile, claim, has_earlier};
pub(super) use self::moment::since_1970;
pub(super) use self::output::open as open_output;
pub(super) use self::record::{Recorded, Recording, SharedJournal};
pub(super) use self::reported::at_end;
pub(super) use self::resume::{EndedRun, Resumption};
pub(super) use self::view::view;
