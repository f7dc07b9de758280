//! Commit of the changes of an attempt.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use rustix::fs::{FileType, lstat, syncfs};

use super::execute::{Executor, Roots, Strictness};
use super::merge::merge;
use super::note::{CommitNote, NotedTree};
use super::record::CommitRecord;
use crate::change::Change;
use crate::entry::{self, FileId};
use crate::error::CommitFailure;
use crate::plan::{self, CommitPlan};
use crate::step::Step;
use crate::tree::CoveredTree;
use crate::upper::{Node, strip, survey};
use ftsh_sys::{FileLock, LockKind};

/// Time limit of the wait for the lock on a directory. Another commit takes far less, but a user
/// may have locked the directory for longer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between tries to get a lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Number of changed entries from which the file system is written to disk during the comparison.
const MANY: usize = 256;

/// Size of the stack of the thread that writes the file system to disk.
const SYNC_STACK: usize = 64 * 1024;

/// Memory that this thread needs with its stack, rounded up.
const SYNC_MEMORY: usize = 1024 * 1024;

/// Result of a commit.
#[derive(Debug)]
#[must_use]
pub struct Committed {
    /// Number of changes.
    pub changes: usize,
    /// Record of the commit, if requested and anything has changed.
    pub record: Option<CommitRecord>,
}

/// Returns the changes of an attempt.
pub(crate) fn changes(trees: &[CoveredTree]) -> Result<Vec<Change>, CommitFailure> {
    let mut changes = Vec::new();
    for tree in trees {
        let (_, plan) = compare(tree, &mut || {})?;
        changes.extend(plan.changes.into_iter().map(|(path, kind)| {
            let path = if path.is_empty() { tree.path.clone() } else { tree.full(&path) };
            Change { path, kind }
        }));
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

fn compare(
    tree: &CoveredTree,
    observe: &mut dyn FnMut(),
) -> Result<(Node, CommitPlan), CommitFailure> {
    let root = survey(tree.layers.fd(), observe).map_err(|error| tree.failed(b"", error))?;
    let plan = plan::plan(tree, &root)?;
    Ok((root, plan))
}

/// Copies the changes of an attempt to the outer attempt, which covers the directories.
///
/// After [`CommitFailure::Incomplete`], the outer attempt has a part of the changes.
pub(crate) fn commit_nested(trees: &[CoveredTree]) -> Result<Committed, CommitFailure> {
    let _locks = lock_outer(trees)?;
    check_places(trees)?;
    let plans: Result<Vec<_>, _> =
        trees.iter().map(|tree| Ok(compare(tree, &mut || {})?.1)).collect();
    let mut changes = 0;
    for (tree, plan) in trees.iter().zip(plans?) {
        changes += plan.changes.len();
        merge(tree, &plan.steps).map_err(|(step, error)| CommitFailure::Incomplete {
            path: tree.full(step.subject()),
            error,
        })?;
    }
    Ok(Committed { changes, record: None })
}

/// Fails if a directory is no longer at its path.
fn check_places(trees: &[CoveredTree]) -> Result<(), CommitFailure> {
    for tree in trees {
        let found = lstat(&tree.reached);
        let is_same = found.is_ok_and(|found| {
            FileType::from_raw_mode(found.st_mode).is_dir() && FileId::from(&found) == tree.id
        });
        if !is_same {
            return Err(CommitFailure::Moved { path: tree.path.clone() });
        }
    }
    Ok(())
}

/// Commits the changes of an attempt, with a call of `observe` before each step. The layers with the
/// note keep a record if `is_recorded`, unless nothing has changed.
pub(crate) fn commit(
    trees: &[CoveredTree],
    is_recorded: bool,
    observe: &mut dyn FnMut(),
) -> Result<Committed, CommitFailure> {
    let _locks = lock(trees)?;
    check_places(trees)?;
    let (mut roots, mut steps, mut changes) = (Vec::new(), Vec::new(), 0);
    for (index, tree) in trees.iter().enumerate() {
        let mut found = 0;
        let (root, plan) = compare(tree, &mut || {
            found += 1;
            if found == MANY {
                begin_sync(tree);
            }
        })?;
        roots.push((root, plan.prepared));
        steps.extend(plan.steps.into_iter().map(|step| (index as u32, step)));
        changes += plan.changes.len();
    }
    observe();
    if steps.is_empty() {
        return Ok(Committed { changes, record: None });
    }
    for (tree, (root, prepared)) in trees.iter().zip(&roots) {
        tree.layers
            .prepare(prepared)
            .and_then(|()| strip(tree.layers.fd(), root))
            .map_err(|error| tree.failed(b"", error))?;
    }
    let noted = trees.iter().map(|tree| NotedTree::new(&tree.path, tree.id, &tree.layers.path));
    let note = CommitNote { trees: noted.collect(), steps, is_recorded };
    decide(trees, &note, observe)?;
    execute(trees, &note, observe)?;
    finish(trees, is_recorded, observe)?;
    Ok(Committed { changes, record: None })
}

/// Locks the covered directories, in an order that all attempts share.
fn lock(trees: &[CoveredTree]) -> Result<Vec<FileLock>, CommitFailure> {
    let mut order: Vec<&CoveredTree> = trees.iter().collect();
    order.sort_by_key(|tree| tree.id);
    order.into_iter().map(lock_tree).collect()
}

/// Locks the directories that the outer attempts cover.
fn lock_outer(trees: &[CoveredTree]) -> Result<Vec<FileLock>, CommitFailure> {
    let mut order: Vec<_> = trees
        .iter()
        .filter_map(|tree| Some((&tree.nested.as_ref()?.outer_reached, tree)))
        .collect();
    order.sort_by_key(|(path, _)| *path);
    order.dedup_by_key(|(path, _)| *path);
    order.into_iter().map(|(path, tree)| lock_path(tree, path)).collect()
}

fn lock_tree(tree: &CoveredTree) -> Result<FileLock, CommitFailure> {
    lock_path(tree, &entry::path_of(tree.directory.as_fd()))
}

fn lock_path(tree: &CoveredTree, path: &Path) -> Result<FileLock, CommitFailure> {
    let failed = |error| tree.failed(b"", error);
    // Another open file: the lock of a shared one would not exclude other attempts of this shell.
    let mut file = File::open(path).map_err(failed)?;
    let start = Instant::now();
    loop {
        match FileLock::lock(file, LockKind::ExclusiveNow) {
            Ok(locked) => return Ok(locked),
            Err((back, Errno::EWOULDBLOCK)) if start.elapsed() < LOCK_TIMEOUT => file = back,
            Err((_, Errno::EWOULDBLOCK)) => {
                return Err(CommitFailure::Locked { path: tree.path.clone() });
            }
            Err((_, errno)) => return Err(failed(errno.into())),
        }
        std::thread::sleep(LOCK_INTERVAL);
    }
}

/// Begins to write the file system to disk in a thread of its own, which nobody waits for. The sync
/// before the note then finds less to do, and reports the errors.
fn begin_sync(tree: &CoveredTree) {
    // The process aborts if a new thread finds no memory at its start.
    if !ftsh_sys::has_room(SYNC_MEMORY) {
        return;
    }
    let Ok(layers) = entry::open_directory(tree.layers.fd(), c".") else { return };
    let sync = move || _ = syncfs(layers);
    let _ = std::thread::Builder::new().stack_size(SYNC_STACK).spawn(sync);
}

/// Makes the changes durable, and then the note.
fn decide(
    trees: &[CoveredTree],
    note: &CommitNote,
    observe: &mut dyn FnMut(),
) -> Result<(), CommitFailure> {
    let Some(primary) = trees.first() else { return Ok(()) };
    let failed = |error| primary.failed(b"", error);
    observe();
    note.prepare(primary.layers.fd()).map_err(failed)?;
    let mut synced = Vec::new();
    for tree in trees.iter().filter(|tree| changes_files(note, trees, tree)) {
        if !synced.contains(&tree.id.device) {
            observe();
            syncfs(tree.layers.fd()).map_err(|errno| tree.failed(b"", errno.into()))?;
            synced.push(tree.id.device);
        }
    }
    observe();
    CommitNote::decide(primary.layers.fd()).map_err(failed)
}

/// True if a commit changes anything in a tree.
fn changes_files(note: &CommitNote, trees: &[CoveredTree], tree: &CoveredTree) -> bool {
    let index = trees.iter().position(|other| other.id == tree.id);
    note.steps.iter().any(|(tree, _)| Some(*tree as usize) == index)
}

fn roots(trees: &[CoveredTree]) -> Vec<Roots<'_>> {
    trees
        .iter()
        .map(|tree| Roots { directory: tree.directory.as_fd(), layers: tree.layers.fd() })
        .collect()
}

/// Executes all steps. After an error, undoes the steps executed already.
fn execute(
    trees: &[CoveredTree],
    note: &CommitNote,
    observe: &mut dyn FnMut(),
) -> Result<(), CommitFailure> {
    let mut executor = Executor::new(roots(trees), Strictness::Exact);
    for (index, (tree, step)) in note.steps.iter().enumerate() {
        observe();
        let Err(error) = executor.execute(*tree as usize, step) else { continue };
        let tree = &trees[*tree as usize];
        let path = tree.full(step.subject());
        let is_undone = undo(trees, &note.steps, index).is_ok()
            && trees.first().is_none_or(|primary| CommitNote::remove(primary.layers.fd()).is_ok());
        if !is_undone {
            let layers = trees[0].layers.path.clone();
            return Err(CommitFailure::Unfinished { path, layers, error });
        }
        return Err(match error.kind() {
            io::ErrorKind::AlreadyExists => CommitFailure::Conflict { path },
            _ => CommitFailure::Failed { path, error },
        });
    }
    Ok(())
}

/// Undoes the first steps.
fn undo(trees: &[CoveredTree], steps: &[(u32, Step)], executed: usize) -> io::Result<()> {
    let mut executor = Executor::new(roots(trees), Strictness::Resumed);
    for (tree, step) in steps[..executed].iter().rev() {
        executor.execute(*tree as usize, &step.clone().reversed())?;
    }
    for (tree, step) in steps {
        if let Step::Adjust(adjust) = step {
            executor.restore_time(*tree as usize, adjust)?;
        }
    }
    Ok(())
}

/// Ends the note after its last step.
fn finish(
    trees: &[CoveredTree],
    is_recorded: bool,
    observe: &mut dyn FnMut(),
) -> Result<(), CommitFailure> {
    let Some(primary) = trees.first() else { return Ok(()) };
    // One file system keeps the order of its changes; another one may be behind.
    for tree in trees.iter().filter(|tree| tree.id.device != primary.id.device) {
        observe();
        let _ = syncfs(&tree.directory);
    }
    observe();
    CommitNote::end(primary.layers.fd(), is_recorded).map_err(|error| CommitFailure::Unfinished {
        path: primary.path.clone(),
        layers: primary.layers.path.clone(),
        error,
    })
}

/// Executes the remaining steps of a note that another process left.
pub(crate) fn resume(
    note: &CommitNote,
    roots: Vec<Roots>,
    observe: &mut dyn FnMut(),
) -> Result<(), (PathBuf, io::Error)> {
    let mut executor = Executor::new(roots, Strictness::Resumed);
    for (tree, step) in &note.steps {
        observe();
        executor.execute(*tree as usize, step).map_err(|error| {
            let subject = std::os::unix::ffi::OsStrExt::from_bytes(step.subject());
            let directory = note.trees.get(*tree as usize).map(NotedTree::directory);
            (directory.unwrap_or_default().join(Path::new::<std::ffi::OsStr>(subject)), error)
        })?;
    }
    Ok(())
}
