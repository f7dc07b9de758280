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

use rustix::fs::{Stat, fstat};

use self::links::Links;
use self::renamed::Renamed;
use crate::change::ChangeKind;
use crate::entry::{
    self, AttributeSet, change_time, find, is_directory, is_reserved, mode, modification_time,
};
use crate::error::CommitFailure;
use crate::layers::{ASIDE, UPPER};
use crate::seen::Seen;
use crate::step::{Adjust, Prepared, Step, Swap, ValueChange, join};
use crate::tree::CoveredTree;
use crate::upper::{Node, Survey};
use crate::walk::open_place_below;

/// Path and kind of a change.
pub(crate) type Found = (Vec<u8>, ChangeKind);

/// Steps that make the changes of one tree take place.
pub(crate) struct CommitPlan {
    pub(crate) steps: Vec<Step>,
    /// Links to create before the first step.
    pub(crate) prepared: Vec<Prepared>,
    /// Inodes of removed directories out of which directories were renamed.
    pub(crate) touched: Vec<u64>,
    pub(crate) changes: Vec<Found>,
}

/// Comparison in progress. Lists of directories take the place of recursion, which would limit the
/// depth.
struct Planner<'a> {
    tree: &'a CoveredTree,
    survey: &'a Survey,
    renamed: Renamed,
    links: Links,
    openings: Vec<Step>,
    places: Vec<Step>,
    removals: Vec<Step>,
    adjustments: Vec<Step>,
    prepared: Vec<Prepared>,
    touched: Vec<u64>,
    changes: Vec<Found>,
    /// Inodes of directories with an opening.
    opened: BTreeSet<u64>,
    /// Number of places below the layers that are in use.
    aside: usize,
    /// Directories whose entries are to be planned.
    pending: Vec<Pending<'a>>,
    /// Directories whose entries are planned, each one after the directory around it.
    planned: Vec<Planned<'a>>,
    /// Index among the planned directories of the merged directory that is being planned.
    around: Option<usize>,
    /// True if entries of this directory have steps.
    has_steps: bool,
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
    /// Present path.
    path: Vec<u8>,
    stat: Stat,
}

/// Directory whose entries are to be planned.
enum Pending<'a> {
    /// A merged directory, in the merged directory with this index.
    Merged(Box<Merged<'a>>, Option<usize>),
    /// A directory that exists only in the layers, with its final path. True if the directory
    /// changes places with another entry.
    Fresh(&'a Node, Vec<u8>, bool),
}

/// Directory whose entries are planned.
enum Planned<'a> {
    Merged {
        merged: Box<Merged<'a>>,
        /// Attributes of the directory below.
        attributes: AttributeSet,
        around: Option<usize>,
        /// True if entries have steps.
        has_steps: bool,
    },
    Fresh(Adjust),
}

/// Makes the plan of one tree.
pub(crate) fn plan(tree: &CoveredTree, survey: &Survey) -> Result<CommitPlan, CommitFailure> {
    let mut planner = Planner {
        tree,
        survey,
        renamed: Renamed::find(survey),
        links: Links::default(),
        openings: Vec::new(),
        places: Vec::new(),
        removals: Vec::new(),
        adjustments: Vec::new(),
        prepared: Vec::new(),
        touched: Vec::new(),
        changes: Vec::new(),
        opened: BTreeSet::new(),
        aside: 0,
        pending: Vec::new(),
        planned: Vec::new(),
        around: None,
        has_steps: false,
    };
    let stat = fstat(&tree.directory).map_err(|errno| tree.failed(b"", errno.into()))?;
    let moves = planner.put_renamed_aside()?;
    let lower = LowerDirectory { path: Vec::new(), stat };
    let (node, source) = (survey.root(), UPPER.to_bytes().to_vec());
    planner.merge_later(Merged { node, source, path: Vec::new(), lower, is_exchanged: false });
    planner.plan_entries()?;
    planner.plan_directories()?;
    if tree.layers.has_index() {
        planner.aliases()?;
    } else {
        planner.links.check(tree)?;
    }
    // A directory is open before the directories in it.
    planner.openings.reverse();
    let mut steps = planner.openings;
    steps.extend(moves);
    steps.extend(planner.places);
    steps.extend(planner.removals);
    steps.extend(planner.adjustments);
    planner.changes.sort();
    let Planner { prepared, touched, changes, .. } = planner;
    Ok(CommitPlan { steps, prepared, touched, changes })
}

impl CoveredTree {
    pub(crate) fn failed(&self, path: &[u8], error: io::Error) -> CommitFailure {
        CommitFailure::Failed { path: self.full(path), error }
    }

    fn conflict(&self, path: &[u8]) -> CommitFailure {
        CommitFailure::Conflict { path: self.full(path) }
    }

    /// Reports that a directory cannot be opened, which another process may have removed.
    fn unreachable(&self, path: &[u8], error: io::Error) -> CommitFailure {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => self.conflict(path),
            _ => self.failed(path, error),
        }
    }
}

impl<'a> Planner<'a> {
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

    fn merge_later(&mut self, merged: Merged<'a>) {
        self.pending.push(Pending::Merged(Box::new(merged), self.around));
    }

    /// Plans the entries of all directories.
    fn plan_entries(&mut self) -> Result<(), CommitFailure> {
        while let Some(pending) = self.pending.pop() {
            match pending {
                Pending::Merged(merged, around) => self.merge(merged, around)?,
                Pending::Fresh(node, path, is_exchanged) => {
                    self.fresh(node, &path, is_exchanged)?;
                }
            }
        }
        Ok(())
    }

    /// Plans the permissions, attributes and times of all directories, each one before the directory
    /// around it.
    fn plan_directories(&mut self) -> Result<(), CommitFailure> {
        while let Some(planned) = self.planned.pop() {
            match planned {
                Planned::Fresh(adjust) => self.push_adjustment(adjust),
                Planned::Merged { merged, attributes, around, has_steps } => {
                    if has_steps {
                        self.open(&merged.lower.path, &merged.lower.stat);
                        if let Some(Planned::Merged { has_steps, .. }) =
                            around.and_then(|around| self.planned.get_mut(around))
                        {
                            *has_steps = true;
                        }
                    }
                    self.adjust(&merged, &attributes, has_steps)?;
                }
            }
        }
        Ok(())
    }

    /// Plans the entries of a directory that exists below.
    fn merge(
        &mut self,
        merged: Box<Merged<'a>>,
        around: Option<usize>,
    ) -> Result<(), CommitFailure> {
        let (tree, lower) = (self.tree, &merged.lower);
        let unreachable = |error| tree.unreachable(&lower.path, error);
        let fd = open_place_below(&tree.directory, &lower.path).map_err(unreachable)?;
        let found = fstat(&fd).map_err(|errno| unreachable(errno.into()))?;
        if entry::inode(&found) != entry::inode(&lower.stat) {
            return Err(tree.conflict(&lower.path));
        }
        let attributes = if merged.is_root() {
            tree.start.root_attributes.clone()
        } else {
            let path = entry::path_of(fd.as_fd());
            crate::layers::attributes(&path).map_err(|error| tree.failed(&merged.path, error))?
        };
        self.around = Some(self.planned.len());
        self.has_steps = false;
        let children = self.survey.children(merged.node).iter();
        for child in children.filter(|child| !is_reserved(&child.name)) {
            let name = child.name.to_bytes();
            let path = join(&merged.path, name);
            let lower_path = join(&lower.path, name);
            let found = find(&fd, &child.name)
                .map_err(|error| tree.failed(&path, error))?
                .filter(|_| !self.renamed.is_source(&lower_path));
            let entry = MergedEntry { child, merged: &merged, path, lower_path, found };
            if child.is_whiteout() {
                self.remove(&entry)?;
            } else if child.is_directory() {
                self.directory(&fd, entry)?;
            } else {
                self.file(&entry)?;
            }
        }
        let has_steps = self.has_steps;
        self.planned.push(Planned::Merged { merged, attributes, around, has_steps });
        Ok(())
    }

    /// Plans the removal of an entry.
    fn remove(&mut self, entry: &MergedEntry) -> Result<(), CommitFailure> {
        let Some(found) = &entry.found else { return Ok(()) };
        self.check_removal(&entry.lower_path, found)?;
        self.note(&entry.path, ChangeKind::Removed);
        let (outer, inner) = (entry.path.clone(), self.aside());
        let old = Some(Seen::old(found));
        self.removals.push(Step::Swap(Swap { outer, inner, old, new: None }));
        self.has_steps = true;
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
                self.check_removal(&entry.lower_path, found)?;
                self.links.replaced(entry.child, &entry.path, found);
            }
        }
        self.place_entry(entry);
        Ok(())
    }

    /// Plans the move of a whole entry from the layers to its place.
    fn place_entry(&mut self, entry: &MergedEntry) {
        let kind = if entry.found.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.note(&entry.path, kind);
        self.place(Swap {
            outer: entry.path.clone(),
            inner: join(&entry.merged.source, entry.child.name.to_bytes()),
            old: entry.found.as_ref().map(Seen::old),
            new: Some(Seen::new(&entry.child.stat)),
        });
    }

    fn place(&mut self, swap: Swap) {
        self.places.push(Step::Swap(swap));
        self.has_steps = true;
    }

    /// Plans a directory in a merged directory, which is open.
    fn directory(
        &mut self,
        parent: &OwnedFd,
        entry: MergedEntry<'a, '_>,
    ) -> Result<(), CommitFailure> {
        let MergedEntry { child, merged, lower_path, found, .. } = &entry;
        let child = *child;
        let renamed = self.renamed.index(child);
        match found {
            Some(found) if renamed.is_none() && is_directory(found) && !child.marks.is_opaque => {
                self.check_same(parent, child, &entry.path)?;
                let source = join(&merged.source, child.name.to_bytes());
                let lower = LowerDirectory { path: lower_path.clone(), stat: *found };
                let (path, is_exchanged) = (entry.path, false);
                self.merge_later(Merged { node: child, source, path, lower, is_exchanged });
                return Ok(());
            }
            Some(found) => self.check_removal(lower_path, found)?,
            // The layers have only a part of a copied directory.
            None if renamed.is_none() && child.marks.origin.is_some() => {
                return Err(self.tree.conflict(&entry.path));
            }
            None => {}
        }
        if let Some(index) = renamed {
            return self.place_renamed(child, entry.path, index, entry.found.as_ref());
        }
        self.place_entry(&entry);
        self.pending.push(Pending::Fresh(child, entry.path, entry.found.is_some()));
        Ok(())
    }

    /// Plans what a directory that exists only in the layers needs after it has taken its place, or
    /// has changed places with another entry.
    fn fresh(
        &mut self,
        node: &'a Node,
        path: &[u8],
        is_exchanged: bool,
    ) -> Result<(), CommitFailure> {
        // The directory around has steps already.
        self.around = None;
        let mut is_touched = is_exchanged;
        for child in self.survey.children(node) {
            let path = join(path, child.name.to_bytes());
            if child.is_whiteout() {
                // Only a directory that another process has removed hid anything.
                return Err(self.tree.conflict(&path));
            }
            if let Some(index) = self.renamed.index(child) {
                is_touched = true;
                self.place_renamed(child, path, index, None)?;
            } else {
                self.note(&path, ChangeKind::Added);
                if child.is_directory() {
                    self.pending.push(Pending::Fresh(child, path, false));
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
        self.planned.push(Planned::Fresh(adjust));
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
    fn adjust(
        &mut self,
        merged: &Merged,
        attributes: &AttributeSet,
        has_steps: bool,
    ) -> Result<(), CommitFailure> {
        let Merged { node, path, lower, .. } = merged;
        let inode = lower.stat.st_ino as _;
        let mut adjust = Adjust::new(path, inode);
        // The root of the changes may differ from the start, if this user is not its owner.
        let base = if merged.is_root() { &self.tree.start.root } else { &lower.stat };
        let new_owner = (node.stat.st_uid, node.stat.st_gid);
        if (base.st_uid, base.st_gid) != new_owner {
            let old = (lower.stat.st_uid, lower.stat.st_gid);
            adjust.owner = Some(ValueChange { old, new: new_owner });
        }
        adjust.attributes = changed_attributes(attributes, &node.attributes);
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
        // Without the permission to write, a change of attributes takes a change of the mode.
        if old != new || old & 0o200 == 0 && !adjust.attributes.is_empty() {
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
struct MergedEntry<'a, 'm> {
    child: &'a Node,
    merged: &'m Merged<'a>,
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
