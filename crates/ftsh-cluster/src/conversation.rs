//! Conversation between this shell and a node, until nothing is left of the branch there.

use nix::libc::SIGTERM;

use super::ClusterDriver;
use super::connection::{ConnectionPipe, Received};
use super::files::FileOrder;
use super::remote_branch::{AwaitedEvent, END_TIMEOUT, RemoteBranch};
use ftsh_machine::driver::Driver;
use ftsh_machine::effect::{Action, Effect, FdChange, FdSource, ScopeId};
use ftsh_machine::event::{CommandStatus, Returned};
use ftsh_machine::{Event, Time};
use ftsh_process::CANCEL_TIMEOUT;
use ftsh_remote::{HeadOutput, Stream, TransferProgress};
use ftsh_sys::os_error::plain;

/// Maximum number of bytes that one command prints.
const MAX_PRINT: usize = 256 * 1024;

impl ClusterDriver {
    /// Requests the end of the branches of a scope.
    pub(super) fn end(&mut self, scope: ScopeId) {
        let families = &self.families;
        self.waiting.retain(|it| !families.is_in(it.scope, scope));
        self.orphans.end(scope, families);
        let concerned = |it: &&RemoteBranch| {
            it.awaited != AwaitedEvent::Delivered && families.is_in(it.dispatched.scope, scope)
        };
        let numbers: Vec<_> =
            self.branches.values().filter(concerned).map(RemoteBranch::number).collect();
        for number in numbers {
            if let Some(it) = self.branches.get_mut(&number) {
                it.awaited = AwaitedEvent::Nothing;
                it.head.end(SIGTERM);
            }
            self.process_outputs(number);
        }
    }

    /// Handles the outputs of a conversation.
    pub(super) fn process_outputs(&mut self, number: u64) {
        let Self { inner, branches, ready, digests, .. } = self;
        let Some(it) = branches.get_mut(&number) else { return };
        while let Some(output) = it.head.poll_output() {
            match output {
                HeadOutput::Write(bytes) => it.connection.write(inner, &bytes),
                HeadOutput::Offer(_) | HeadOutput::Receive(_) => {
                    if let Err(error) = it.start_transfer(inner, digests, output) {
                        it.head.on_progress(inner.now(), TransferProgress::Failed(plain(&error)));
                    }
                }
                HeadOutput::Send(files) => it.order(FileOrder::Send(files)),
                HeadOutput::Place if it.awaited == AwaitedEvent::End => {
                    it.order(FileOrder::Place);
                }
                HeadOutput::Place => {
                    // The record of a canceled branch may have arrived before the end of its scope.
                    let why = "it isn't wanted any more".into();
                    it.head.on_progress(inner.now(), TransferProgress::Failed(why));
                }
                HeadOutput::Placed(node) => {
                    // The thread has another end of the node's standard input.
                    it.close_transfer(inner);
                    if it.awaited == AwaitedEvent::End {
                        let node = it.node(node);
                        ready.push_back(Event::Placed { process: it.dispatched.process, node });
                    }
                }
                HeadOutput::Printed(stream, bytes) => {
                    // A carrier that still hands output on is not late, unless the branch is to end.
                    if stream == Stream::Output && it.awaited == AwaitedEvent::End {
                        it.kill_at = it.kill_at.map(|_| inner.now() + END_TIMEOUT);
                    }
                    it.unprinted.push(stream, &bytes);
                }
                HeadOutput::Recorded if it.carried.is_some() && !it.engine_ended => {
                    it.connection.close_input(inner);
                    it.kill_at = Some(inner.now() + END_TIMEOUT);
                }
                HeadOutput::Recorded => {}
                HeadOutput::Returned(returned) => {
                    it.connection.close(inner);
                    it.close_transfer(inner);
                    if it.engine_ended && matches!(returned, Returned::Ended { .. }) {
                        it.take_job();
                    }
                    // The command of a branch that reported its end exits without a signal.
                    let is_needless = !matches!(returned, Returned::Ended { .. });
                    let scope = it.ids.scope();
                    if is_needless && (!it.engine_ended || it.carried.is_some()) {
                        inner.perform(Effect::Terminate(scope));
                    }
                    if it.engine_ended && is_needless && it.carried.is_some() {
                        inner.perform(Effect::Kill { scope, strong: true });
                    }
                    if !it.engine_ended {
                        it.kill_at = Some(Time::after(inner.now().elapsed() + END_TIMEOUT));
                    }
                    it.returned = Some(it.with_script_name(returned));
                }
            }
        }
        // A command that has not ended may still create the job.
        if self.branches.get(&number).is_some_and(|it| it.is_needless() && it.engine_ended) {
            self.cancel_job(number);
        }
        self.end_start(number);
        self.print(number);
        self.conclude(number);
    }

    /// Records that a branch has begun on its host or cannot begin there, and sends waiting
    /// branches.
    fn end_start(&mut self, number: u64) {
        let Some(it) = self.branches.get_mut(&number) else { return };
        let has_begun = it.head.has_begun();
        let is_beginning = !has_begun && !it.head.is_over();
        if let Some(host) = &it.place.host
            && !is_beginning
            && !std::mem::replace(&mut it.place.start_ended, true)
        {
            if let Some(state) = self.engines.get_mut(&it.dispatched.engine) {
                state.hosts.end_start(host);
                if it.awaited == AwaitedEvent::End {
                    state.hosts.record_start(host, has_begun);
                }
            }
            self.send_waiting();
        }
    }

    /// Prints the next unprinted bytes.
    fn print(&mut self, number: u64) {
        let Some(it) = self.branches.get_mut(&number) else { return };
        if it.is_printing {
            return;
        }
        let (stream, bytes) = match it.unprinted.pop(MAX_PRINT) {
            Ok(Some(next)) => next,
            Ok(None) => return,
            Err(error) => {
                it.output_error =
                    Some(format!("what it printed can't be read back: {}", plain(&error)));
                return;
            }
        };
        it.is_printing = true;
        let errors = FdChange { descriptor: 1, source: FdSource::Descriptor(2) };
        let redirects = if stream == Stream::Errors { vec![errors] } else { Vec::new() };
        let print = Action::Print(bytes.into());
        let effect = it.run(it.ids.printing(), print, it.ids.printing_io(), redirects);
        self.inner.perform(effect);
    }

    /// Delivers the result of a branch once all of its output is printed. Removes the branch when
    /// the engine's command has ended as well.
    fn conclude(&mut self, number: u64) {
        let Some(it) = self.branches.get_mut(&number) else { return };
        if it.returned.is_none() || it.is_printing || !it.unprinted.is_empty() {
            return;
        }
        let awaited = std::mem::replace(&mut it.awaited, AwaitedEvent::Delivered);
        if awaited != AwaitedEvent::Delivered {
            self.inner.perform(Effect::CloseIo(it.ids.printing_io()));
            let returned = match it.output_error.take() {
                Some(why) => Some(it.with_script_name(Returned::Lost { node: None, why })),
                None => it.returned.clone(),
            };
            if let Some(returned) = returned
                && awaited == AwaitedEvent::End
            {
                self.ready.push_back(Event::Returned { process: it.dispatched.process, returned });
            }
            let (place, engine) = (std::mem::take(&mut it.place), it.dispatched.engine);
            self.report_empty();
            if let Some(host) = place.host {
                self.engine(engine).hosts.leave(&host);
                self.send_waiting();
            }
        }
        if self.branches.get(&number).is_some_and(|it| it.engine_ended) {
            self.branches.remove(&number);
        }
    }

    /// Waits for the end of needless commands of engines. An interrupt kills these commands at
    /// once.
    pub(super) fn wait_for_engines(&mut self) {
        self.end_polls();
        self.cancel_stale();
        let until = self.inner.now() + END_TIMEOUT * 2 + CANCEL_TIMEOUT;
        let is_there =
            |it: &Self| !it.branches.is_empty() || it.is_polling() || it.cancels.are_left();
        while is_there(self) && self.inner.now() < until {
            self.turn(until);
            if self.ready.drain(..).any(|event| matches!(event, Event::Interrupted(_))) {
                let now = self.inner.now();
                self.branches.values_mut().filter(|it| !it.engine_ended).for_each(|it| {
                    it.kill_at = Some(now);
                });
            }
        }
    }

    /// Handles a ready descriptor of a connection.
    pub(super) fn on_ready(&mut self, key: u64) {
        let number = key / ConnectionPipe::KEYS;
        let Some(pipe) = ConnectionPipe::ALL.get((key % ConnectionPipe::KEYS) as usize).copied()
        else {
            return;
        };
        if let Some(engine) = self.engine_with_poll(number) {
            return self.on_list(engine, pipe);
        }
        if self.cancels.has(number) {
            return self.cancels.read(&mut self.inner, number, pipe);
        }
        let Some(it) = self.branches.get_mut(&number) else { return };
        if pipe == ConnectionPipe::Input {
            it.connection.flush(&mut self.inner);
            return;
        }
        while let Some(progress) = it
            .transfer
            .as_mut()
            .filter(|_| pipe == ConnectionPipe::Files)
            .and_then(|it| it.next(&mut self.inner))
        {
            it.head.on_progress(self.inner.now(), progress);
        }
        if let Received::Bytes(bytes) = it.connection.read(&mut self.inner, pipe) {
            it.on_bytes(pipe, self.inner.now(), &bytes);
        }
        self.process_outputs(number);
    }

    /// Handles the end of an engine's command, after the remaining bytes of both pipes.
    pub(super) fn engine_ended(&mut self, number: u64, status: CommandStatus) {
        let Some(it) = self.branches.get_mut(&number) else { return };
        let code = match status {
            CommandStatus::Exited(code) => Some(code),
            CommandStatus::Signaled(_) | CommandStatus::OutOfMemory | CommandStatus::Lost => None,
        };
        it.engine_ended = true;
        it.kill_at = None;
        if matches!(it.returned, Some(Returned::Ended { .. })) {
            it.take_job();
        }
        for pipe in [ConnectionPipe::Notices, ConnectionPipe::Output, ConnectionPipe::Errors] {
            while let Some(it) = self.branches.get_mut(&number)
                && let Received::Bytes(bytes) = it.connection.read(&mut self.inner, pipe)
            {
                it.on_bytes(pipe, self.inner.now(), &bytes);
                // Files may follow, which a thread reads.
                self.process_outputs(number);
            }
        }
        self.process_outputs(number);
        if let Some(it) = self.branches.get_mut(&number)
            && !it.head.is_over()
        {
            it.closed(code);
            self.process_outputs(number);
            // Without a record, something may still run there.
            let is_unknown = |it: &RemoteBranch| it.returned.is_none() && !it.head.has_record();
            if self.branches.get(&number).is_some_and(is_unknown) {
                self.cancel_job(number);
            }
        }
    }
}
