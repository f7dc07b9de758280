//! How branches are sent, what is said between a head and its nodes, and what goes wrong with that.

use std::io;

use bstr::ByteSlice;

use super::engine::Choice;
use super::job::{Awaited, Job};
use super::link::{Said, Told};
use super::local::Here;
use super::there::There;
use super::{Attempt, Cluster, Families, Fault, NOTICE, Node, Orphans};
use crate::{Shell, World};
use ftsh_machine::effect::{Dispatch, Effect, ScopeId};
use ftsh_machine::event::{Blame, Returned};
use ftsh_machine::{Event, Time};
use ftsh_remote::{Branch, Head, Hello, Identity, Nonce, Output, Stream};

const SIGTERM: i32 = 15;

impl Cluster {
    /// Sends a branch, now or when there is a place.
    pub(super) fn dispatch(
        &mut self,
        dispatch: Dispatch,
        shell: &mut Shell,
        world: &mut impl World,
    ) {
        let now = world.now();
        let Some(dispatch) = self.orphans.hold(dispatch, &self.families) else { return };
        let process = dispatch.process;
        match self.outages.choose(dispatch.on.engine, &self.nodes, &dispatch.avoid, now, NOTICE) {
            Choice::Not(why, blame) => {
                let returned = Returned::NotBegun { node: None, why: why.into(), blame };
                self.events.push_back(Event::Returned { process, returned });
            }
            Choice::Wait if dispatch.avoid_until <= now => {
                let why = "machines needn't be avoided any more".into();
                let returned = Returned::NotBegun { node: None, why, blame: Blame::Stale };
                self.events.push_back(Event::Returned { process, returned });
            }
            Choice::Wait => {
                let changes = self.nodes.iter().map(|node| node.next_change(now, NOTICE));
                let again = changes.chain([dispatch.avoid_until]).min().unwrap_or(Time::NEVER);
                self.look_again =
                    if self.waiting.is_empty() { again } else { again.min(self.look_again) };
                self.waiting.push_back(dispatch);
            }
            Choice::Node(index) => self.send(&dispatch, index, shell, world),
        }
    }

    fn send(
        &mut self,
        dispatch: &Dispatch,
        index: usize,
        shell: &mut Shell,
        world: &mut impl World,
    ) {
        let now = world.now();
        self.count += 1;
        let number = self.count;
        let node = &mut self.nodes[index];
        node.used += 1;
        let fault = (self.faults)(&node.name);
        let identity = identity();
        let hello = Hello { identity: identity.clone(), node: node.name.clone() };
        let there = There::new(hello, fault == Some(Fault::Refuses));
        let packed = (*dispatch.branch).clone();
        let branch = Branch { identity, packed, child_env: Vec::new() };
        let mut head = Head::new(branch, Nonce((number as u128).to_ne_bytes()), self.lease, now);
        // It has its place.
        head.expect_hello(now, 0);
        let job = Job::new(number, dispatch, head, (index, node), there, fault, (now, NOTICE));
        shell.copy_io(job.io, dispatch.io);
        self.jobs.insert(number, job);
        self.visit(number, shell, world, |_, _| ());
    }

    /// Sends those that have waited for a place, if there is one by now.
    fn send_waiting(&mut self, shell: &mut Shell, world: &mut impl World) {
        for dispatch in std::mem::take(&mut self.waiting) {
            self.dispatch(dispatch, shell, world);
        }
    }

    /// Asks the branches of a scope to end.
    pub(super) fn end(&mut self, scope: ScopeId, shell: &mut Shell, world: &mut impl World) {
        let families = &self.families;
        self.waiting.retain(|it| !families.is_in(it.scope, scope));
        self.orphans.end(scope, families);
        let concerned =
            |job: &Job| job.awaited != Awaited::Told && families.is_in(job.scope, scope);
        let concerned = self.jobs.iter().filter(|(_, job)| concerned(job));
        for number in concerned.map(|(number, _)| *number).collect::<Vec<_>>() {
            let Some(job) = self.jobs.get_mut(&number) else { continue };
            job.awaited = Awaited::Nothing;
            job.head.end(SIGTERM);
            self.converse(number, shell, world);
        }
    }

    /// Does all that is due by now.
    pub fn pass(&mut self, shell: &mut Shell, world: &mut impl World) {
        let now = world.now();
        while self.next_due() <= now {
            for index in 0..self.nodes.len() {
                let node = &mut self.nodes[index];
                if node.wake.take_if(|wake| *wake <= now).is_some() {
                    let shown = Time::after(node.clock.shows(now));
                    let told = node.channels.pass_time(shown);
                    self.tell(now, index, told);
                }
            }
            let due = |job: &Job| job.next_due(&self.nodes[job.node]) <= now;
            let due = self.jobs.iter().filter(|(_, job)| due(job));
            for number in due.map(|(number, _)| *number).collect::<Vec<_>>() {
                self.advance(number, shell, world);
            }
            if let Some(held) = self.orphans.pass(now) {
                self.tell_empty();
                for dispatch in held {
                    self.dispatch(dispatch, shell, world);
                }
            }
            if self.look_again <= now && !self.waiting.is_empty() {
                self.send_waiting(shell, world);
            }
            self.jobs.retain(|_, job| !job.is_over());
        }
    }

    /// Channels tell the shells of a node something.
    fn tell(&mut self, now: Time, node: usize, told: Vec<(usize, Event)>) {
        let node = &mut self.nodes[node];
        let shown = node.clock.shows(now);
        for (number, event) in told {
            if let Some(job) = self.jobs.get_mut(&number) {
                job.there.told(shown, event);
            }
        }
        if let Some(wake) = node.channels.wake() {
            node.wake = Some(node.clock.moment(wake.elapsed()));
        }
    }

    /// Does what is due for a branch.
    fn advance(&mut self, number: usize, shell: &mut Shell, world: &mut impl World) {
        let now = world.now();
        let Some(job) = self.jobs.get_mut(&number) else { return };
        if job.dies <= now {
            job.there.die();
        }
        while let Some(told) = self.jobs.get_mut(&number).and_then(|job| job.to_node.take(now)) {
            self.visit(number, shell, world, |there, here| match told {
                Told::Bytes(bytes) => there.hear(&bytes, here),
                Told::End => there.left(here),
            });
        }
        self.visit(number, shell, world, There::go_on);
        let awaited = |job: &&mut Job| job.awaited != Awaited::Told;
        let Some(job) = self.jobs.get_mut(&number).filter(awaited) else { return };
        while let Some(said) = job.to_head.take(now) {
            match said {
                Said::Bytes(Stream::Output, bytes) => job.head.on_stdout(now, &bytes),
                Said::Bytes(Stream::Errors, bytes) => job.head.on_stderr(now, &bytes),
                Said::End => job.head.closed("", Blame::Node),
            }
        }
        if job.given_up <= now {
            job.given_up = Time::NEVER;
            job.head.closed("", Blame::Node);
            if let Some(Fault::Breaks(_)) = job.fault {
                job.tell(now, &self.nodes[job.node], Told::End);
            }
            job.sever();
        }
        job.head.handle_timeout(now);
        self.converse(number, shell, world);
    }

    /// Goes to the node, and takes note of what has become of the branch there.
    fn visit<W: World>(
        &mut self,
        number: usize,
        shell: &mut Shell,
        world: &mut W,
        act: impl FnOnce(&mut There, &mut Here<W>),
    ) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let (now, index) = (world.now(), job.node);
        let node = &mut self.nodes[index];
        let (mut told, (name, clock)) = (Vec::new(), (node.name.as_str(), node.clock));
        if !job.there.is_over() {
            let (files, channels) = (&mut *shell, &mut node.channels);
            let told = &mut told;
            act(
                &mut job.there,
                &mut Here { world, files, channels, told, node: name, clock, number },
            );
        }
        if job.there.has_begun && job.attempt.is_none() {
            job.attempt = Some(self.attempts.len());
            self.attempts.push(Attempt::new(job, name, now));
            world.note(format_args!("{name}: begins {:?}", job.word));
        }
        for said in job.there.take_said() {
            job.say(now, node, said);
        }
        if let Some(attempt) = job.attempt.map(|it| &mut self.attempts[it])
            && attempt.over.is_none()
            && job.there.is_over()
        {
            attempt.over = Some(now);
            (attempt.ended, attempt.printed) =
                (job.there.ended.take(), std::mem::take(&mut job.there.printed));
            world.note(format_args!("{name}: is over {:?}", job.word));
            told.extend(node.channels.died(number, Time::after(clock.shows(now))));
        }
        self.tell(now, index, told);
    }

    /// Does what the head asks for.
    fn converse(&mut self, number: usize, shell: &mut Shell, world: &mut impl World) {
        let now = world.now();
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let node = &self.nodes[job.node];
        while let Some(output) = job.head.poll_output() {
            match output {
                Output::Write(bytes) => job.tell(now, node, Told::Bytes(bytes)),
                Output::Placed(name) => {
                    job.begins(now, node, NOTICE);
                    if job.awaited == Awaited::End {
                        let process = job.process;
                        self.events.push_back(Event::Placed { process, node: name });
                    }
                }
                Output::Printed(stream, bytes) => {
                    let descriptor = if stream == Stream::Output { 1 } else { 2 };
                    shell.print(job.io, descriptor, bytes.as_bstr());
                    if let Some(attempt) = job.attempt.map(|it| &mut self.attempts[it]) {
                        attempt.heard[usize::from(descriptor - 1)].extend_from_slice(&bytes);
                    }
                }
                Output::Returned(returned) => {
                    job.tell(now, node, Told::End);
                    let awaited = std::mem::replace(&mut job.awaited, Awaited::Told);
                    if awaited == Awaited::End {
                        let (process, returned) = (job.process, told(returned, node));
                        self.events.push_back(Event::Returned { process, returned });
                    }
                    self.conclude(number, shell, world);
                    return;
                }
            }
        }
    }

    /// The machine knows, or needn't know, what became of a branch.
    fn conclude(&mut self, number: usize, shell: &mut Shell, world: &mut impl World) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let io = job.io;
        self.nodes[job.node].used -= 1;
        shell.perform(Effect::CloseIo(io), world);
        self.tell_empty();
        self.send_waiting(shell, world);
    }

    /// Tells of the scopes that are empty by now.
    fn tell_empty(&mut self) {
        let away = self.scopes_away();
        let empty = self.families.empty(&away).into_iter();
        self.events.extend(empty.map(|scope| Event::Emptied { scope }));
    }

    /// The head dies: nobody there hears anything more. Returns the scopes of the branches that it had sent.
    pub fn head_dies(&mut self, now: Time) -> Vec<ScopeId> {
        let scopes = self.scopes_away();
        self.waiting.clear();
        self.orphans.forget_held();
        self.events.clear();
        for job in self.jobs.values_mut().filter(|job| job.awaited != Awaited::Told) {
            job.awaited = Awaited::Told;
            self.nodes[job.node].used -= 1;
            job.tell(now, &self.nodes[job.node], Told::End);
        }
        scopes
    }

    /// Another machine goes on, which has scopes and orphans of its own.
    pub fn forget_scopes(&mut self) {
        (self.families, self.orphans) = (Families::default(), Orphans::default());
    }
}

/// What became of a branch, as the machine is told: engines name the node that it didn't begin on.
fn told(returned: Returned, on: &Node) -> Returned {
    match returned {
        Returned::NotBegun { node: None, why, blame: Blame::Node } => {
            Returned::NotBegun { node: Some(on.name.clone()), why, blame: Blame::Node }
        }
        returned => returned,
    }
}

/// All run the same program.
fn identity() -> Identity {
    Identity::of(io::empty()).unwrap_or_else(|_| unreachable!("nothing can always be read"))
}
