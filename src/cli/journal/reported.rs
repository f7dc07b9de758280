//! Mark of a run whose end is reported.

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use anyhow::Result;

use super::journal_file::JournalFile;
use super::output;
use crate::cli::messages::print_message;
use ftsh_journal::{Over, last, report};
use ftsh_machine::event::CommandStatus;
use ftsh_process::AtEnd;
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Returns the action for a shell that has reported everything, including the captured output.
pub(crate) fn at_end(journal_file: &JournalFile, keeps_output: bool) -> Result<AtEnd> {
    let (path, file) = (journal_file.path.clone(), journal_file.file.try_clone()?);
    Ok(Rc::new(move |status| mark(&path, &file, status, keeps_output)))
}

fn mark(path: &Path, file: &File, status: CommandStatus, keeps_output: bool) {
    let Ok(Some(last)) = last(file) else { return };
    let is_reported = match (last.over, status) {
        (Some(Over::Exited(code)), CommandStatus::Exited(status)) => i32::from(code) == status,
        (Some(Over::Interrupted(signal)), CommandStatus::Signaled(status)) => signal == status,
        // The run is not over, or the reporting process was killed.
        _ => false,
    };
    if !is_reported {
        return;
    }
    // The output was shown. The mark comes immediately before the exit status. A process killed in
    // between has not reported, and no other process will.
    if keeps_output {
        output::remove(path);
    }
    let marked = file.try_clone().and_then(|file| report(file, &last));
    if let Err(error) = marked {
        let (path, why) = (path.display(), plain(&error));
        print_message(
            Slug::JournalFile,
            format!(
                "can't write the journal `{path}`: {why}; the next start reports this run again"
            ),
        );
    }
}
