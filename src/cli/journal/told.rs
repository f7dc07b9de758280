//! The mark of a run whose end was told.

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use anyhow::Result;

use super::super::messages::complain;
use super::output;
use super::place::Place;
use ftsh_journal::{Over, last, report};
use ftsh_machine::event::CommandStatus;
use ftsh_process::AtEnd;
use ftsh_sys::os_error::plain;

/// What is to be done when a shell has told all that it had to, with what it kept of the output.
pub fn at_end(place: &Place, keeps_output: bool) -> Result<AtEnd> {
    let (path, file) = (place.path.clone(), place.file.try_clone()?);
    Ok(Rc::new(move |status| mark(&path, &file, status, keeps_output)))
}

fn mark(path: &Path, file: &File, status: CommandStatus, keeps_output: bool) {
    let Ok(Some(last)) = last(file) else { return };
    let is_told = match (last.over, status) {
        (Some(Over::Exited(code)), CommandStatus::Exited(said)) => i32::from(code) == said,
        (Some(Over::Interrupted(signal)), CommandStatus::Signaled(said)) => signal == said,
        // It isn't over, or who was to tell it was killed.
        _ => false,
    };
    if !is_told {
        return;
    }
    // It was shown. The mark is the last thing before the exit status: who is killed in between has told
    // nobody, and nobody will.
    if keeps_output {
        output::remove(path);
    }
    let marked = file.try_clone().and_then(|file| report(file, &last));
    if let Err(error) = marked {
        let (path, why) = (path.display(), plain(&error));
        complain(&format!(
            "can't write the journal `{path}`: {why}; the next start tells of this run again"
        ));
    }
}
