//! Views of directories, in which the attempts of `atomic in` find files.

use bstr::BString;

use super::Committer;
use crate::core::Flow;
use crate::effect::{BeginView, Effect, ViewId};
use crate::endings::Continuation;
use crate::event::{Refusal, Reply};
use crate::frames::FrameKind;
use crate::resources::ResourceHandle;
use crate::tasks::{AfterEmptied, Task, TaskState};
use crate::transactions::{AttemptView, OpeningView, Transaction, TransactionKind};

impl Committer<'_> {
    /// Requests the view of an attempt that begins.
    pub(super) fn request_view(&mut self, task: &Task, directories: Vec<BString>) -> Flow {
        let handle = self.core.new_handle(ViewId);
        let operation = self.core.new_operation(task);
        let (view, directory) = (handle.id(), task.directory.clone());
        let request = BeginView { operation, view, directories, directory };
        self.core.request(Effect::BeginView(Box::new(request)));
        Flow::Wait(TaskState::OpeningView(OpeningView { operation, handle }))
    }

    /// Begins an attempt in its view. Later attempts use the same directories, whatever a path
    /// leads to by then.
    pub(crate) fn view_opened(
        &mut self,
        task: &mut Task,
        opening: OpeningView,
        result: Result<Reply, Refusal>,
    ) -> Flow {
        let directories = match result {
            Ok(Reply::Words(directories)) => directories,
            Ok(_) => return Flow::broken(task, "a view has no directories"),
            Err(refusal) => return Flow::Throw(task.not_begun(refusal)),
        };
        if let Some(frame) = task.top_try() {
            frame.directories = directories;
            self.core.parts().scopes.set_view(frame.scope, opening.handle.clone());
        }
        let (outer, outer_scope) = (task.directory.view, task.scope);
        let scope = self.core.new_scope(Some(outer_scope));
        let view = AttemptView { handle: opening.handle, scope, outer, outer_scope };
        task.directory.view = Some(view.handle.id());
        task.scope = scope;
        self.stage_output(task, true, Some(view))
    }
}

impl Task {
    /// Returns the view of the innermost attempt that has one.
    pub(crate) fn view(&self) -> Option<&ResourceHandle<ViewId>> {
        let own = self.frames.iter().rev().find_map(|frame| match &frame.kind {
            FrameKind::Transaction(transaction) => transaction.view(),
            _ => None,
        });
        own.map(|view| &view.handle).or(self.inherited.view.as_ref())
    }

    /// Leaves the view of an attempt, if the attempt has one, and the scope of a body.
    pub(super) fn leave_view(&mut self, transaction: &Transaction) {
        if let TransactionKind::NoLeftovers { outer_scope, .. } = transaction.kind {
            self.scope = outer_scope;
        }
        if let Some(view) = transaction.view() {
            self.directory.view = view.outer;
            self.scope = view.outer_scope;
        }
    }
}

/// Ends what a successful attempt has left running in its view, since its files are about to
/// change their places.
pub(super) fn empty_view(task: &mut Task, view: &AttemptView, then: Continuation) -> Flow {
    task.scope = view.outer_scope;
    Flow::Empty(view.scope, AfterEmptied::Commit(then))
}
