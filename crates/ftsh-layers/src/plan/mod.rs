//! Plan of a commit: comparison of the changes with the directory.
//!
//! The order of the steps: directories that lack permissions are opened, renamed directories and
//! their changes are put aside, new entries take their places, removed entries are put aside, and
//! at last directories get their attributes.

mod aliases;
mod below;
mod links;
mod renamed;

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::Stat;

use self::links::Links;
use self::renamed::Renamed;
use crate::change::ChangeKind;
use crate::entry::{
    self, AttributeSet, change_time, find, is_directory, is_reserved, mode, modification_time,
};
use crate::error::CommitFailure;
use crate::layers::{ASIDE, UPPER};
use crate::step::{Adjust, Prepared, Rename, Spot, Step, ValueChange, join};
use crate::tree::CoveredTree;
use crate::upper::Node;

/// Path and kind of a change.
pub(crate) type Found = (Vec<u8>, ChangeKind);

/// Steps that make the changes of one tree take place.
pub(crate) struct CommitPlan {
    pub(crate) steps: Vec<Step>,
    /// Links to create before the first step.
    pub(crate) prepared: Vec<Prepared>,
    pub(crate) changes: Vec<Found>,
}

/// Comparison in progress.
struct Planner<'a> {
    tree: &'a CoveredTree,
    renamed: Renamed,
    links: Links,
    openings: Vec<Step>,
    places: Vec<Step>,
    removals: Vec<Step>,
    adjustments: Vec<Step>,
    prepared: Vec<Prepared>,
    changes: Vec<Found>,
    /// Inodes of directories with an opening.
    opened: BTreeSet<u64>,
    /// Number of places below the layers that are in use.
    aside: usize,
}

/// Directory that exists in both the layers and the covered directory.
struct Merged<'a> {
    node: &'a Node,
    /// Path of the changes below the layers, once renamed directories are put aside.
    source: Vec<u8>,
    /// Final path.
    path: Vec<u8>,
    lower: LowerDirectory,
    /// True if the directory changes places with another entry, which gives it a new time on XFS.
    is_exchanged: bool,
}

impl Merged<'_> {
    fn is_root(&self) -> bool {
        self.source == UPPER.to_bytes()
    }
}

/// Directory below the covered directory, or the covered directory.
struct LowerDirectory {
    fd: OwnedFd,
    /// Present path.
    path: Vec<u8>,
    stat: Stat,
}

/// Makes the plan of one tree.
pub(crate) fn plan(tree: &CoveredTree, root: &Node) -> Result<CommitPlan, CommitFailure> {
    let mut planner = Planner {
        tree,
        renamed: Renamed::find(root),
        links: Links::default(),
        openings: Vec::new(),
        places: Vec::new(),
        removals: Vec::new(),
        adjustments: Vec::new(),
        prepared: Vec::new(),
        changes: Vec::new(),
        opened: BTreeSet::new(),
        aside: 0,
    };
    let failed = |error: io::Error| tree.failed(b"", error);
    let fd = entry::open_place(&tree.directory, c".").map_err(failed)?;
    let stat = rustix::fs::fstat(&fd).map_err(|errno| failed(errno.into()))?;
    let moves = planner.put_renamed_aside()?;
    let lower = LowerDirectory { fd, path: Vec::new(), stat };
    planner.merge(&Merged {
        node: root,
        source: UPPER.to_bytes().to_vec(),
        path: Vec::new(),
        lower,
        is_exchanged: false,
    })?;
    if tree.layers.has_index() {
        planner.aliases(root)?;
    } else {
        planner.links.check(tree)?;
    }
    let mut steps = planner.openings;
    steps.extend(moves);
    steps.extend(planner.places);
    steps.extend(planner.removals);
    steps.extend(planner.adjustments);
    planner.changes.sort();
    Ok(CommitPlan { steps, prepared: planner.prepared, changes: planner.changes })
}

impl CoveredTree {
    pub(crate) fn failed(&self, path: &[u8], error: io::Error) -> CommitFailure {
        CommitFailure::Failed { path: self.full(path), error }
    }

    fn conflict(&self, path: &[u8]) -> CommitFailure {
        CommitFailure::Conflict { path: self.full(path) }
    }
}

impl Planner<'_> {
    /// Returns a new place below the layers.
    fn aside(&mut self) -> Vec<u8> {
        self.aside += 1;
        join(ASIDE.to_bytes(), self.aside.to_string().as_bytes())
    }

    fn note(&mut self, path: &[u8], kind: ChangeKind) {
        self.changes.push((path.to_vec(), kind));
    }

    /// True if another process may have changed the entry since the attempt began.
    fn is_changed(&self, stat: &Stat) -> bool {
        change_time(stat) > self.tree.start.since
    }

    /// Plans the entries of a directory that exists below.
    fn merge(&mut self, merged: &Merged) -> Result<(), CommitFailure> {
        let before = self.places.len() + self.removals.len();
        for child in merged.node.children.iter().filter(|child| !is_reserved(&child.name)) {
            let name = child.name.to_bytes();
            let path = join(&merged.path, name);
            let lower_path = join(&merged.lower.path, name);
            let found = find(&merged.lower.fd, &child.name)
                .map_err(|error| self.tree.failed(&path, error))?
                .filter(|_| !self.renamed.is_source(&lower_path));
            let entry = MergedEntry { child, merged, path, lower_path, found };
            if child.is_whiteout() {
                self.remove(&entry)?;
            } else if child.is_directory() {
                self.directory(entry)?;
            } else {
                self.file(&entry)?;
            }
        }
        let has_steps = self.places.len() + self.removals.len() > before;
        if has_steps {
            self.open(&merged.lower.path, &merged.lower.stat);
        }
        self.adjust(merged, has_steps)
    }

    /// Plans the removal of an entry.
    fn remove(&mut self, entry: &MergedEntry) -> Result<(), CommitFailure> {
        let Some(found) = &entry.found else { return Ok(()) };
        self.check_removal(&entry.merged.lower.fd, &entry.child.name, &entry.lower_path, found)?;
        self.note(&entry.path, ChangeKind::Removed);
        let to = Spot::Layers(self.aside());
        let from = Spot::Directory(entry.path.clone());
        let inode = found.st_ino as _;
        self.removals.push(Step::Rename(Rename { from, to, inode, exchange: false }));
        Ok(())
    }

    /// Plans a file, or anything else but a directory.
    fn file(&mut self, entry: &MergedEntry) -> Result<(), CommitFailure> {
        let is_copied = entry.child.marks.origin.is_some();
        match &entry.found {
            None => {
                // The name is missing because the attempt renamed the file, unless another process
                // has changed the directory.
                if is_copied && self.is_changed(&entry.merged.lower.stat) {
                    return Err(self.tree.conflict(&entry.path));
                }
                self.links.created(entry.child, &entry.path);
            }
            Some(found) => {
                self.check_removal(
                    &entry.merged.lower.fd,
                    &entry.child.name,
                    &entry.lower_path,
                    found,
                )?;
                self.links.replaced(entry.child, &entry.path, found);
            }
        }
        self.place(entry);
        Ok(())
    }

    /// Plans the move of a whole entry from the layers to its place.
    fn place(&mut self, entry: &MergedEntry) {
        let kind = if entry.found.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.note(&entry.path, kind);
        self.places.push(Step::Rename(Rename {
            from: Spot::Layers(join(&entry.merged.source, entry.child.name.to_bytes())),
            to: Spot::Directory(entry.path.clone()),
            inode: entry.child.inode(),
            exchange: entry.found.is_some(),
        }));
    }

    fn directory(&mut self, entry: MergedEntry) -> Result<(), CommitFailure> {
        if let Some(index) = self.renamed.index(entry.child) {
            if let Some(found) = &entry.found {
                self.check_removal(
                    &entry.merged.lower.fd,
                    &entry.child.name,
                    &entry.lower_path,
                    found,
                )?;
            }
            return self.place_renamed(entry.child, entry.path, index, entry.found.is_some());
        }
        let MergedEntry { child, merged, path, lower_path, found } = &entry;
        match found {
            Some(found) if is_directory(found) && !child.marks.is_opaque => {
                let failed = |error| self.tree.failed(path, error);
                let fd = entry::open_place(&merged.lower.fd, &child.name).map_err(failed)?;
                self.check_same(&merged.lower.fd, child, path)?;
                let source = join(&merged.source, child.name.to_bytes());
                let lower = LowerDirectory { fd, path: lower_path.clone(), stat: *found };
                let (path, is_exchanged) = (path.clone(), false);
                self.merge(&Merged { node: child, source, path, lower, is_exchanged })
            }
            found => {
                if let Some(found) = found {
                    self.check_removal(&merged.lower.fd, &child.name, lower_path, found)?;
                }
                self.place(&entry);
                self.fresh(child, path, found.is_some())
            }
        }
    }

    /// Plans what a directory that exists only in the layers needs after it has taken its place, or
    /// has changed places with another entry.
    fn fresh(&mut self, node: &Node, path: &[u8], is_exchanged: bool) -> Result<(), CommitFailure> {
        let mut is_touched = is_exchanged;
        for child in &node.children {
            let path = join(path, child.name.to_bytes());
            if child.is_whiteout() {
                // Only a directory that another process has removed hid anything.
                return Err(self.tree.conflict(&path));
            }
            if let Some(index) = self.renamed.index(child) {
                is_touched = true;
                self.place_renamed(child, path, index, false)?;
            } else {
                self.note(&path, ChangeKind::Added);
                if child.is_directory() {
                    self.fresh(child, &path, false)?;
                } else {
                    self.links.created(child, &path);
                }
            }
        }
        let mut adjust = Adjust::new(path, node.inode());
        if node.is_opened {
            let new = mode(&node.stat);
            adjust.mode = Some(ValueChange { old: new | 0o700, new });
        }
        if is_touched {
            let new = modification_time(&node.stat);
            adjust.time = Some(ValueChange { old: new, new });
        }
        self.push_adjustment(adjust);
        Ok(())
    }

    /// Plans permissions that renames in a directory, or of the directory, require.
    fn open(&mut self, path: &[u8], stat: &Stat) {
        let old = mode(stat);
        let user = rustix::process::geteuid();
        let lacks = old & 0o300 != 0o300 && !user.is_root() && stat.st_uid == user.as_raw();
        if lacks && self.opened.insert(stat.st_ino as _) {
            let mut adjust = Adjust::new(path, stat.st_ino as _);
            adjust.mode = Some(ValueChange { old, new: old | 0o700 });
            self.openings.push(Step::Adjust(adjust));
        }
    }

    /// Plans new attributes of a directory that exists below.
    fn adjust(&mut self, merged: &Merged, has_steps: bool) -> Result<(), CommitFailure> {
        let Merged { node, path, lower, .. } = merged;
        let inode = lower.stat.st_ino as _;
        let mut adjust = Adjust::new(path, inode);
        let lower_attributes = || {
            let path = entry::path_of(lower.fd.as_fd());
            crate::layers::attributes(&path)
        };
        // The root of the changes may differ from the start, if this user is not its owner.
        let start = &self.tree.start;
        let (base, attributes) = if merged.is_root() {
            (&start.root, start.root_attributes.clone())
        } else {
            let found = lower_attributes().map_err(|error| self.tree.failed(path, error))?;
            (&lower.stat, found)
        };
        let new_owner = (node.stat.st_uid, node.stat.st_gid);
        if (base.st_uid, base.st_gid) != new_owner {
            let old = (lower.stat.st_uid, lower.stat.st_gid);
            adjust.owner = Some(ValueChange { old, new: new_owner });
        }
        adjust.attributes = changed_attributes(&attributes, &node.attributes);
        let is_mode_changed = mode(base) != mode(&node.stat);
        if is_mode_changed || !adjust.is_empty() {
            if self.is_changed(&lower.stat) {
                return Err(self.tree.conflict(path));
            }
            self.note(path, ChangeKind::Modified);
        }
        let opened = if self.opened.contains(&inode) { 0o700 } else { 0 };
        let old = mode(&lower.stat) | opened;
        let new = mode(if is_mode_changed { &node.stat } else { &lower.stat });
        if old != new {
            adjust.mode = Some(ValueChange { old, new });
        }
        let (old, new) = (modification_time(&lower.stat), modification_time(&node.stat));
        let is_touched = self.is_changed(&lower.stat) && old > self.tree.start.since;
        if !is_touched && (has_steps || merged.is_exchanged || old != new) {
            adjust.time = Some(ValueChange { old, new });
        }
        self.push_adjustment(adjust);
        Ok(())
    }

    fn push_adjustment(&mut self, adjust: Adjust) {
        if !adjust.is_empty() {
            self.adjustments.push(Step::Adjust(adjust));
        }
    }
}

/// Entry of a merged directory.
struct MergedEntry<'a> {
    child: &'a Node,
    merged: &'a Merged<'a>,
    /// Final path.
    path: Vec<u8>,
    /// Present path in the covered directory.
    lower_path: Vec<u8>,
    /// Entry with this name in the covered directory, unless the attempt renamed it.
    found: Option<Stat>,
}

/// Returns the differences between two sorted or unsorted sets of attributes.
fn changed_attributes(old: &AttributeSet, new: &AttributeSet) -> Vec<crate::step::AttributeChange> {
    let get = |set: &AttributeSet, name: &CString| {
        set.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
    };
    let mut names: Vec<&CString> = old.iter().chain(new).map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    let changes = names.into_iter().filter_map(|name| {
        let (old, new) = (get(old, name), get(new, name));
        (old != new).then(|| (name.to_bytes().to_vec(), ValueChange { old, new }))
    });
    changes.collect()
}
