//! Files that a run has sourced, compared with their present content.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::BString;

use ftsh_journal::ReplayObserver;
use ftsh_machine::effect::{Effect, OperationId, Query};
use ftsh_machine::event::{Event, Reply};
use ftsh_machine::record::LogRecord;

/// Collects the files that a replayed run sources, and passes log records on.
pub struct SourcedFiles<F> {
    log: F,
    /// Files with a pending query.
    pending: HashMap<OperationId, PathBuf>,
    /// Text of each file at the last time it was sourced.
    texts: BTreeMap<PathBuf, BString>,
}

impl<F> SourcedFiles<F> {
    /// Creates an empty collection; `log` receives the log records.
    pub fn new(log: F) -> Self {
        Self { log, pending: HashMap::new(), texts: BTreeMap::new() }
    }

    /// Returns the files whose text has changed, or that are gone. Only regular files count,
    /// because a pipe or a terminal provides its text once. Relative paths count from the present
    /// directory.
    pub fn changed(&self) -> impl Iterator<Item = &Path> {
        let is_same = |path: &Path, text: &BString| match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => true,
            Ok(found) if found.len() != text.len() as u64 => false,
            _ => std::fs::read(path).is_ok_and(|now| now == **text),
        };
        let changed = self.texts.iter().filter(move |(path, text)| !is_same(path, text));
        changed.map(|(path, _)| path.as_path())
    }
}

impl<F: FnMut(&LogRecord)> ReplayObserver for &mut SourcedFiles<F> {
    fn logged(&mut self, record: &LogRecord) {
        (self.log)(record);
    }

    fn on_effect(&mut self, effect: &Effect) {
        if let Effect::Query { operation, directory, query: Query::File(path) } = effect {
            // Files of an attempt's view are gone with the attempt.
            if directory.view.is_some() {
                return;
            }
            let directory = directory.path.as_ref().map_or(&b""[..], |directory| &directory[..]);
            let path = Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(path));
            self.pending.insert(*operation, path);
        }
    }

    fn on_event(&mut self, event: &Event) {
        if let Event::Done { operation, result } = event
            && let Some(path) = self.pending.remove(operation)
            && let Ok(Reply::Text(text)) = result
        {
            self.texts.insert(path, text.clone());
        }
    }
}
