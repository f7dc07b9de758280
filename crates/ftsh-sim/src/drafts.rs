//! Modelled files that are written whole or not at all, and the directories of attempts.

use std::collections::{BTreeMap, BTreeSet};

use bstr::BString;

use ftsh_machine::effect::{DraftId, DraftMode, ScratchId};

/// Files by their paths.
pub type Files = BTreeMap<BString, BString>;

/// What isn't in its place yet.
#[derive(Default)]
pub struct Drafts {
    drafts: BTreeMap<DraftId, Draft>,
    scratches: BTreeSet<ScratchId>,
}

struct Draft {
    path: BString,
    mode: DraftMode,
    content: BString,
    settled: bool,
}

impl Drafts {
    /// A draft is opened, for the first time or again.
    pub fn open(&mut self, id: DraftId, path: &BString, mode: DraftMode) {
        let new =
            || Draft { path: path.clone(), mode, content: BString::default(), settled: false };
        self.drafts.entry(id).or_insert_with(new);
    }

    pub fn content(&mut self, id: DraftId) -> Option<&mut BString> {
        self.drafts.get_mut(&id).map(|draft| &mut draft.content)
    }

    /// What was written to a draft that isn't in its place.
    pub fn held(&self, id: DraftId) -> Option<&BString> {
        self.drafts.get(&id).filter(|draft| !draft.settled).map(|draft| &draft.content)
    }

    /// Puts a draft in its place.
    pub fn settle(&mut self, id: DraftId, files: &mut Files) {
        let Some(draft) = self.drafts.get_mut(&id).filter(|draft| !draft.settled) else { return };
        draft.settled = true;
        if draft.mode == DraftMode::Fill && draft.content.is_empty() {
            return;
        }
        let file = files.entry(draft.path.clone()).or_default();
        if draft.mode != DraftMode::Append {
            file.clear();
        }
        file.extend_from_slice(&draft.content);
    }

    pub fn forget(&mut self, id: DraftId) {
        self.drafts.remove(&id);
    }

    /// The directory of an attempt.
    pub fn scratch(&mut self, id: ScratchId) -> BString {
        self.scratches.insert(id);
        directory(id)
    }

    /// Forgets all drafts and directories.
    pub fn forget_all(&mut self, files: &mut Files) {
        self.drafts.clear();
        for scratch in self.scratches.clone() {
            self.forget_scratch(scratch, files);
        }
    }

    pub fn forget_scratch(&mut self, id: ScratchId, files: &mut Files) {
        if self.scratches.remove(&id) {
            let inside = format!("{}/", directory(id));
            files.retain(|path, _| !path.starts_with(inside.as_bytes()));
        }
    }
}

fn directory(id: ScratchId) -> BString {
    format!("/scratch/{}", id.0).into()
}
