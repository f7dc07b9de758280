//! Modelled staged files, and the scratch directories of attempts.

use std::collections::{BTreeMap, BTreeSet};

use bstr::BString;

use ftsh_machine::effect::{CommitMode, ScratchId, StagedFileId};

/// Files by their paths.
pub(crate) type Files = BTreeMap<BString, BString>;

/// Staged files that are not committed, and scratch directories.
#[derive(Default)]
pub(crate) struct Drafts {
    drafts: BTreeMap<StagedFileId, SimulatedDraft>,
    scratches: BTreeSet<ScratchId>,
}

struct SimulatedDraft {
    path: BString,
    mode: CommitMode,
    content: BString,
    settled: bool,
}

impl Drafts {
    /// Opens a staged file, for the first time or again.
    pub(crate) fn open(&mut self, id: StagedFileId, path: &BString, mode: CommitMode) {
        let new = || SimulatedDraft {
            path: path.clone(),
            mode,
            content: BString::default(),
            settled: false,
        };
        self.drafts.entry(id).or_insert_with(new);
    }

    pub(crate) fn content(&mut self, id: StagedFileId) -> Option<&mut BString> {
        self.drafts.get_mut(&id).map(|draft| &mut draft.content)
    }

    /// Returns the content of a staged file that is not committed.
    pub(crate) fn held(&self, id: StagedFileId) -> Option<&BString> {
        self.drafts.get(&id).filter(|draft| !draft.settled).map(|draft| &draft.content)
    }

    /// Commits a staged file.
    pub(crate) fn settle(&mut self, id: StagedFileId, files: &mut Files) {
        let Some(draft) = self.drafts.get_mut(&id).filter(|draft| !draft.settled) else { return };
        draft.settled = true;
        if draft.mode == CommitMode::Fill && draft.content.is_empty() {
            return;
        }
        let file = files.entry(draft.path.clone()).or_default();
        if draft.mode != CommitMode::Append {
            file.clear();
        }
        file.extend_from_slice(&draft.content);
    }

    pub(crate) fn forget(&mut self, id: StagedFileId) {
        self.drafts.remove(&id);
    }

    /// Returns the scratch directory of an attempt.
    pub(crate) fn scratch(&mut self, id: ScratchId) -> BString {
        self.scratches.insert(id);
        directory(id)
    }

    /// Removes all staged files and scratch directories.
    pub(crate) fn forget_all(&mut self, files: &mut Files) {
        self.drafts.clear();
        for scratch in self.scratches.clone() {
            self.forget_scratch(scratch, files);
        }
    }

    pub(crate) fn forget_scratch(&mut self, id: ScratchId, files: &mut Files) {
        if self.scratches.remove(&id) {
            let inside = format!("{}/", directory(id));
            files.retain(|path, _| !path.starts_with(inside.as_bytes()));
        }
    }
}

fn directory(id: ScratchId) -> BString {
    format!("/scratch/{}", id.0).into()
}
