//! Commit of the changes of an attempt.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use rustix::fs::{FileType, lstat, syncfs};

use super::execute::{Executor, Obstacle, Roots, Strictness};
use super::merge::merge;
use super::note::{CommitNote, NotedTree, UNDO};
use super::record::CommitRecord;
use crate::change::Change;
use crate::entry::{self, FileId, FileTime};
use crate::error::CommitFailure;
use crate::plan;
use crate::step::Step;
use crate::tree::CoveredTree;
use crate::upper::Survey;
use ftsh_sys::{FileLock, LockKind};

/// Time limit of the wait for the lock on a directory. Another commit takes far less, but a user
/// may have locked the directory for longer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between tries to get a lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Number of changed entries from which the file system is written to disk during the survey.
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
        let plan = plan::plan(tree, &survey(tree, &mut || {})?)?;
        changes.extend(plan.changes.into_iter().map(|(path, kind)| {
            let path = if path.is_empty() { tree.path.clone() } else { tree.full(&path) };
            Change { path, kind }
        }));
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

fn survey(tree: &CoveredTree, observe: &mut dyn FnMut()) -> Result<Survey, CommitFailure> {
    Survey::make(tree.layers.fd(), observe).map_err(|error| tree.failed(b"", error))
}

/// Copies the changes of an attempt to the outer attempt, which covers the directories, if `decide`
/// returns true.
///
/// After [`CommitFailure::Incomplete`], the outer attempt has a part of the changes.
pub(crate) fn commit_nested(
    trees: &[CoveredTree],
    decide: &mut dyn FnMut() -> bool,
) -> Result<Committed, CommitFailure> {
    let _locks = lock_outer(trees)?;
    check_places(trees)?;
    let plans: Result<Vec<_>, CommitFailure> =
        trees.iter().map(|tree| plan::plan(tree, &survey(tree, &mut || {})?)).collect();
    let plans = plans?;
    if !trees.is_empty() && !decide() {
        return Err(CommitFailure::Canceled);
    }
    let mut changes = 0;
    for (tree, plan) in trees.iter().zip(plans) {
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

/// Commits the changes of an attempt, if `decide` returns true right before the commit can no longer
/// be canceled. Calls `observe` before each step. The layers with the note keep a record if
/// `is_recorded`, unless nothing has changed.
pub(crate) fn commit(
    trees: &[CoveredTree],
    is_recorded: bool,
    decide: &mut dyn FnMut() -> bool,
    observe: &mut dyn FnMut(),
) -> Result<Committed, CommitFailure> {
    let mut surveys = Vec::new();
    for tree in trees {
        let mut found = 0;
        let survey = survey(tree, &mut || {
            found += 1;
            if found == MANY {
                begin_sync(tree);
            }
        })?;
        observe();
        let prepared = tree.layers.prepare().and_then(|()| survey.strip(tree.layers.fd()));
        prepared.map_err(|error| tree.failed(b"", error))?;
        surveys.push(survey);
    }
    // The comparison follows the wait for the disk, so it misses few changes by others.
    let with_changes = trees.iter().zip(&surveys).filter(|(_, survey)| survey.has_changes());
    sync(with_changes.map(|(tree, _)| tree), observe)?;
    // Other commits do not wait for the disk.
    let _locks = lock(trees)?;
    check_places(trees)?;
    let (mut noted, mut steps, mut linked, mut changes) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for (index, (tree, survey)) in trees.iter().zip(&surveys).enumerate() {
        let plan = plan::plan(tree, survey)?;
        if !plan.prepared.is_empty() {
            tree.layers.link(&plan.prepared).map_err(|error| tree.failed(b"", error))?;
            linked.push(tree);
        }
        noted.push(NotedTree::new(tree, plan.touched));
        steps.extend(plan.steps.into_iter().map(|step| (index as u32, step)));
        changes += plan.changes.len();
    }
    drop(surveys);
    sync(linked.into_iter(), observe)?;
    observe();
    let note = CommitNote { trees: noted, steps, is_recorded };
    if note.steps.is_empty() {
        let done = Committed { changes, record: None };
        return decide().then_some(done).ok_or(CommitFailure::Canceled);
    }
    let primary = &trees[0];
    let failed = |error| primary.failed(b"", error);
    let decided = note.prepare(primary.layers.fd()).map_err(failed)?;
    if !decide() {
        return Err(CommitFailure::Canceled);
    }
    observe();
    CommitNote::decide(primary.layers.fd()).map_err(failed)?;
    execute(trees, &note, decided, observe)?;
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
/// before the comparison then finds less to do, and reports the errors.
fn begin_sync(tree: &CoveredTree) {
    // The process aborts if a new thread finds no memory at its start.
    if !ftsh_sys::has_room(SYNC_MEMORY) {
        return;
    }
    let Ok(layers) = entry::open_directory(tree.layers.fd(), c".") else { return };
    let sync = move || _ = syncfs(layers);
    let _ = std::thread::Builder::new().stack_size(SYNC_STACK).spawn(sync);
}

/// Makes the contents of layers durable.
fn sync<'a>(
    trees: impl Iterator<Item = &'a CoveredTree>,
    observe: &mut dyn FnMut(),
) -> Result<(), CommitFailure> {
    let mut synced = Vec::new();
    for tree in trees {
        if !synced.contains(&tree.id.device) {
            observe();
            syncfs(tree.layers.fd()).map_err(|errno| tree.failed(b"", errno.into()))?;
            synced.push(tree.id.device);
        }
    }
    Ok(())
}

fn roots<'a>(trees: &'a [CoveredTree]) -> Vec<Roots<'a>> {
    let root = |tree: &'a CoveredTree| {
        let CoveredTree { directory, layers, start, .. } = tree;
        Roots { directory: directory.as_fd(), layers: Some(layers.fd()), since: start.since }
    };
    trees.iter().map(root).collect()
}

/// Executes all steps. If a step fails, undoes the commit.
fn execute(
    trees: &[CoveredTree],
    note: &CommitNote,
    decided: FileTime,
    observe: &mut dyn FnMut(),
) -> Result<(), CommitFailure> {
    let touched = note.touched();
    let mut executor = Executor::new(roots(trees), Strictness::Exact, touched, decided, observe);
    let failed = note.steps.iter().find_map(|(tree, step)| {
        let obstacle = executor.execute(*tree as usize, step).err()?;
        Some((trees[*tree as usize].full(step.subject()), obstacle))
    });
    let Some((path, obstacle)) = failed else { return Ok(()) };
    let layers = &trees[0].layers;
    let mut undo = || {
        let at = |error| (path.clone(), error);
        CommitNote::reverse(layers.fd()).map_err(at)?;
        let kept = resume(note, roots(trees), true, decided, observe)?;
        CommitNote::remove(layers.fd(), UNDO).map_err(at)?;
        Ok(kept)
    };
    Err(match (undo(), obstacle) {
        (Err((path, error)), _) => {
            CommitFailure::Unfinished { path, layers: layers.path.clone(), error }
        }
        (Ok(kept), obstacle) => match (kept.into_iter().next(), obstacle) {
            (Some(kept), _) => CommitFailure::Mixed { path, kept },
            (None, Obstacle::Changed) => CommitFailure::Conflict { path },
            (None, Obstacle::Failed(error)) => CommitFailure::Failed { path, error },
        },
    })
}

/// Ends the note after its last step.
fn finish(
    trees: &[CoveredTree],
    is_recorded: bool,
    observe: &mut dyn FnMut(),
) -> Result<(), CommitFailure> {
    let Some(primary) = trees.first() else { return Ok(()) };
    // A file system keeps the order of its changes, but another one may be behind. The record is synced
    // alone, which Btrfs may do before the renames.
    let is_behind = |tree: &&CoveredTree| is_recorded || tree.id.device != primary.id.device;
    for tree in trees.iter().filter(is_behind) {
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

/// Executes the remaining steps of a note, or undoes all of its steps. Returns the paths of entries
/// that other processes have changed since the comparison, which stay as they are.
pub(crate) fn resume(
    note: &CommitNote,
    roots: Vec<Roots>,
    is_undo: bool,
    decided: FileTime,
    observe: &mut dyn FnMut(),
) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut executor = Executor::new(roots, Strictness::Resumed, note.touched(), decided, observe);
    let mut left = Vec::new();
    let mut execute = |tree: u32, step: &Step| {
        let result = executor.execute(tree as usize, step);
        let path = || {
            let directory = note.trees.get(tree as usize).map(NotedTree::directory);
            directory.unwrap_or_default().join(OsStr::from_bytes(step.subject()))
        };
        match result {
            Ok(()) => {}
            Err(Obstacle::Changed) => left.push(path()),
            Err(Obstacle::Failed(error)) => return Err((path(), error)),
        }
        Ok(())
    };
    let mut steps = note.steps.iter();
    if is_undo {
        steps.rev().try_for_each(|(tree, step)| execute(*tree, &step.clone().reversed()))?;
        for (tree, step) in &note.steps {
            if let Step::Adjust(adjust) = step {
                executor.restore_time(*tree as usize, adjust);
            }
        }
    } else {
        steps.try_for_each(|(tree, step)| execute(*tree, step))?;
    }
    Ok(left)
}
