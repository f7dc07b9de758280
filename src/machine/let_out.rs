//! Holds what branches print, and writes it on when its turn has come.

use super::Machine;
use super::effect::{Action, BufferId, Effect, IoId, Plumbing, Port, ProcessId, Run};
use super::event::{SpawnError, Status};
use super::held::{Held, LettingOut, Outputs};
use super::task::Task;
use super::value::Handle;

impl Machine {
    /// Somewhere to keep what a branch prints, and how it gets there.
    pub(super) fn hold(&mut self) -> (Held, Vec<Plumbing>) {
        let (output, errors) = (BufferId(self.next_id()), BufferId(self.next_id()));
        let plumbing = [(1, output), (2, errors)]
            .map(|(descriptor, buffer)| Plumbing { descriptor, port: Port::Hold(buffer) });
        let handle = |buffer| Handle::new(buffer, &self.released);
        (Held { output: handle(output), errors: handle(errors) }, plumbing.into())
    }

    /// Begins to let out what comes next, if nothing is being let out.
    pub(super) fn let_out(&mut self, task: &Task, io: IoId, outputs: &mut Outputs) {
        if let Some(held) = outputs.next() {
            outputs.letting_out = Some(self.write_on(task, io, held, false));
        }
    }

    /// Writes what was held to where it would have gone.
    pub(super) fn write_on(
        &mut self,
        task: &Task,
        io: IoId,
        held: Held,
        errors: bool,
    ) -> LettingOut {
        let buffer = if errors { held.errors.id() } else { held.output.id() };
        let mut redirects = vec![Plumbing { descriptor: 0, port: Port::BufferRead(buffer) }];
        if errors {
            redirects.push(Plumbing { descriptor: 1, port: Port::Descriptor(2) });
        }
        self.open_scope(task.scope);
        let process = ProcessId(self.next_id());
        self.processes.insert(process, task.id);
        self.effects.push_back(Effect::Run(Box::new(Run {
            process,
            task: task.id,
            scope: task.scope,
            action: Action::Copy,
            directory: task.directory.clone(),
            io,
            redirects,
            deadline: task.deadline(),
            line: task.line(),
            is_last: false,
        })));
        LettingOut { process, held, errors }
    }

    /// Something was written on: goes on with what comes next of it; an error is why it can't be written.
    pub(super) fn written_on(
        &mut self,
        task: &Task,
        io: IoId,
        outputs: &mut Outputs,
        result: Result<Status, SpawnError>,
    ) -> Result<(), Refused> {
        match result {
            Ok(Status::Exited(0)) => {}
            Ok(Status::Signaled(signal)) => return Err(Refused::NobodyReads(signal)),
            Ok(_) => return Err(Refused::Error("how that ended is lost".into())),
            Err(error) => return Err(Refused::Error(error.message)),
        }
        if let Some(LettingOut { held, errors: false, .. }) = outputs.letting_out.take() {
            outputs.letting_out = Some(self.write_on(task, io, held, true));
        }
        self.let_out(task, io, outputs);
        Ok(())
    }
}

/// Why what was held can't be written.
pub enum Refused {
    /// What a writer dies of.
    NobodyReads(i32),
    /// In words.
    Error(String),
}
