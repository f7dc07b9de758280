//! Files of branches by `takes` and `gives`. Their names are known before the branch begins, and are
//! checked here wherever the branch runs.

use std::collections::BTreeSet;

use bstr::{BStr, BString};

use crate::core::{Core, Flow, Step};
use crate::effect::{Effect, OperationId, Query};
use crate::items::Items;
use crate::outcome::FailureKind;
use crate::packed::BranchFiles;
use crate::tasks::Task;
use crate::values::{Suspend, Value};
use ftsh_syntax::branch_files::{is_in, relative};
use ftsh_syntax::slug::Slug;

/// Begins a branch with files: takes the values of their names, and asks the driver for the files
/// that a branch on this machine takes.
pub(crate) fn begin_files(core: &mut Core, task: &mut Task, needed: usize, made: usize) -> Step {
    // The values stay on the stack: the instruction is executed again with the answer.
    let from = task.stack.len().saturating_sub(needed + made);
    let (taken, given) = task.stack[from..].split_at(needed);
    let mut taken = names(taken)?;
    // What is in a directory of the list travels with the directory.
    taken.sort_by_key(Vec::len);
    let mut outermost = BTreeSet::new();
    for name in taken {
        if !is_in(&outermost, &name) {
            outermost.insert(name);
        }
    }
    let given = names(given)?;
    let words = |names: Vec<Vec<u8>>| names.into_iter().map(BString::from).collect();
    let files =
        BranchFiles { takes: words(outermost.into_iter().collect()), gives: words(given.clone()) };
    let place = core.parts().tasks.sender(task).map(|(_, elsewhere, _)| elsewhere.at);
    if place.is_none() && !files.takes.is_empty() {
        let query = Query::BranchFiles { given: false, names: files.takes.clone() };
        if task.answer(&query).is_none() {
            return Err(Suspend::Pending(query));
        }
    }
    if let Some(tally) = core.parts().tasks.tally_around(task) {
        for name in given {
            if is_in(&tally.given, &name) {
                let message = format!("`{}` is given twice", BStr::new(&name));
                return Err(Suspend::Failed(FailureKind::Io, Slug::BranchFile, message));
            }
            tally.given.insert(name);
        }
    }
    task.stack.truncate(from);
    task.files = Some(Box::new(files));
    match place {
        Some(dispatch) => task.jump(dispatch),
        None => task.advance(),
    }
    Ok(Flow::Continue)
}

/// Asks the driver for the files that a successful branch on this machine gives.
pub(crate) fn check_given(core: &mut Core, task: &mut Task) -> Option<OperationId> {
    let names = task.files.take()?.gives;
    let directory = core.tasks().parent(task)?.directory.clone();
    if names.is_empty() {
        return None;
    }
    let operation = core.new_operation(task);
    let query = Query::BranchFiles { given: true, names };
    core.request(Effect::Query { operation, directory, query });
    Some(operation)
}

/// Returns the words of values as names of files.
fn names(values: &[Value]) -> Result<Vec<Vec<u8>>, Suspend> {
    let mut items = Items::default();
    values.iter().cloned().for_each(|value| items.push(value));
    let words = std::iter::from_fn(|| items.next());
    let names = words.map(|word| relative(&word.text().unwrap_or_default()));
    let refused = |why| Suspend::Failed(FailureKind::Io, Slug::BranchFile, why);
    names.collect::<Result<_, _>>().map_err(refused)
}
