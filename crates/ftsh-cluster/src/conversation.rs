//! What is said between this shell and a node, until nothing is left of the branch there.

use std::time::Duration;

use nix::libc::SIGTERM;

use super::ClusterDriver;
use super::away::{Awaited, Away};
use super::connection::{Heard, Pipe};
use ftsh_machine::driver::Driver;
use ftsh_machine::effect::{Action, Effect, FdChange, FdSource, ScopeId};
use ftsh_machine::event::{Returned, Status};
use ftsh_machine::{Event, Time};
use ftsh_remote::{Output, Stream};
use ftsh_sys::os_error::plain;

/// How long an engine's command has to end when it isn't needed any more.
const PATIENCE: Duration = Duration::from_secs(5);
/// What has been read is printed in pieces up to this size.
const PIECE: usize = 256 * 1024;

impl ClusterDriver {
    /// Asks the branches of a scope to end.
    pub(super) fn end(&mut self, scope: ScopeId) {
        let families = &self.families;
        self.waiting.retain(|it| !families.is_in(it.scope, scope));
        self.orphans.end(scope, families);
        let concerned = |away: &&Away| {
            away.awaited != Awaited::Told && families.is_in(away.errand.scope, scope)
        };
        let numbers: Vec<_> = self.away.values().filter(concerned).map(Away::number).collect();
        for number in numbers {
            if let Some(away) = self.away.get_mut(&number) {
                away.awaited = Awaited::Nothing;
                away.head.end(SIGTERM);
            }
            self.go_on(number);
        }
    }

    /// Does what a conversation asks for.
    pub(super) fn go_on(&mut self, number: u64) {
        let Self { inner, away, ready, .. } = self;
        let Some(it) = away.get_mut(&number) else { return };
        while let Some(output) = it.head.poll_output() {
            match output {
                Output::Write(bytes) => it.connection.write(inner, &bytes),
                Output::Placed(node) if it.awaited == Awaited::End => {
                    let node = it.node(node);
                    ready.push_back(Event::Placed { process: it.errand.process, node });
                }
                Output::Placed(_) => {}
                Output::Printed(stream, bytes) => it.unprinted.push(stream, &bytes),
                Output::Returned(returned) => {
                    it.connection.close(inner);
                    // One that has begun and told its end ends by itself.
                    let is_needless = !matches!(returned, Returned::Ended { .. });
                    if !it.engine_ended {
                        if is_needless {
                            inner.perform(Effect::Terminate(it.names.scope()));
                        }
                        it.kill_at = Some(Time::after(inner.now().elapsed() + PATIENCE));
                    }
                    it.returned = Some(it.told(returned));
                }
            }
        }
        self.settle(number);
        self.print(number);
        self.conclude(number);
    }

    /// Takes note that a branch has begun on its host, or won't: another one may.
    fn settle(&mut self, number: u64) {
        let Some(it) = self.away.get_mut(&number) else { return };
        let has_begun = it.head.has_begun();
        let is_beginning = !has_begun && !it.head.is_over();
        if let Some(host) = &it.place.host
            && !is_beginning
            && !std::mem::replace(&mut it.place.is_settled, true)
        {
            if let Some(state) = self.engines.get_mut(&it.errand.engine) {
                state.hosts.settle(host);
                if it.awaited == Awaited::End {
                    state.hosts.learn(host, has_begun);
                }
            }
            self.send_waiting();
        }
    }

    /// Prints what comes next.
    fn print(&mut self, number: u64) {
        let Some(it) = self.away.get_mut(&number) else { return };
        if it.is_printing {
            return;
        }
        let (stream, bytes) = match it.unprinted.pop(PIECE) {
            Ok(Some(next)) => next,
            Ok(None) => return,
            Err(error) => {
                it.spoilt = Some(format!("what it printed can't be read back: {}", plain(&error)));
                return;
            }
        };
        it.is_printing = true;
        let errors = FdChange { descriptor: 1, source: FdSource::Descriptor(2) };
        let redirects = if stream == Stream::Errors { vec![errors] } else { Vec::new() };
        let print = Action::Print(bytes.into());
        let effect = it.run(it.names.printing(), print, it.names.printing_io(), redirects);
        self.inner.perform(effect);
    }

    /// Tells what became of a branch, once all that it has printed is printed; forgets it when the engine's
    /// command has ended as well.
    fn conclude(&mut self, number: u64) {
        let Some(it) = self.away.get_mut(&number) else { return };
        if it.returned.is_none() || it.is_printing || !it.unprinted.is_empty() {
            return;
        }
        let awaited = std::mem::replace(&mut it.awaited, Awaited::Told);
        if awaited != Awaited::Told {
            self.inner.perform(Effect::CloseIo(it.names.printing_io()));
            let returned = match it.spoilt.take() {
                Some(why) => Some(it.told(Returned::Lost { node: None, why })),
                None => it.returned.clone(),
            };
            if let Some(returned) = returned
                && awaited == Awaited::End
            {
                self.ready.push_back(Event::Returned { process: it.errand.process, returned });
            }
            let (place, engine) = (std::mem::take(&mut it.place), it.errand.engine);
            self.tell_empty();
            if let Some(host) = place.host {
                self.engine(engine).hosts.leave(&host);
                self.send_waiting();
            }
        }
        if self.away.get(&number).is_some_and(|it| it.engine_ended) {
            self.away.remove(&number);
        }
    }

    /// Waits for the end of engines' commands that aren't needed any more: at once, if somebody is impatient.
    pub(super) fn outlast_engines(&mut self) {
        self.end_looks();
        let until = self.inner.now() + PATIENCE * 2;
        let is_there = |it: &Self| !it.away.is_empty() || it.is_looking();
        while is_there(self) && self.inner.now() < until {
            self.turn(until);
            if self.ready.drain(..).any(|event| matches!(event, Event::Interrupted(_))) {
                let now = self.inner.now();
                self.away.values_mut().filter(|it| !it.engine_ended).for_each(|it| {
                    it.kill_at = Some(now);
                });
            }
        }
    }

    /// A descriptor of a connection is ready.
    pub(super) fn hear(&mut self, key: u64) {
        let number = key / Pipe::KEYS;
        let Some(pipe) = Pipe::ALL.get((key % Pipe::KEYS) as usize).copied() else { return };
        if let Some(engine) = self.looking(number) {
            return self.hear_list(engine, pipe);
        }
        let Some(it) = self.away.get_mut(&number) else { return };
        if pipe == Pipe::Input {
            it.connection.go_on(&mut self.inner);
            return;
        }
        if let Heard::Bytes(bytes) = it.connection.read(&mut self.inner, pipe) {
            it.hear(pipe, self.inner.now(), &bytes);
        }
        self.go_on(number);
    }

    /// An engine's command has ended: nothing more is said but what was said already.
    pub(super) fn engine_ended(&mut self, number: u64, status: Status) {
        let Some(it) = self.away.get_mut(&number) else { return };
        let code = match status {
            Status::Exited(code) => Some(code),
            Status::Signaled(_) | Status::OutOfMemory | Status::Lost => None,
        };
        it.engine_ended = true;
        it.kill_at = None;
        for pipe in [Pipe::Output, Pipe::Errors] {
            while let Heard::Bytes(bytes) = it.connection.read(&mut self.inner, pipe) {
                it.hear(pipe, self.inner.now(), &bytes);
            }
        }
        self.go_on(number);
        if let Some(it) = self.away.get_mut(&number)
            && !it.head.is_over()
        {
            it.closed(code);
            self.go_on(number);
        }
    }
}
