//! Dispatch of branches, messages between a head and its nodes, and faults.

use std::io;
use std::time::Duration;

use bstr::ByteSlice;

use super::engine::Choice;
use super::job::{ExpectedEvent, SimulatedJob};
use super::link::{CONTENTS, FromHead, FromNode, modelled_files};
use super::local::Here;
use super::there::There;
use super::{
    Families, Fault, NOTICE, NodeAttempt, OrphanedBranches, SimulatedCluster, SimulatedNode,
};
use crate::{Shell, World};
use ftsh_machine::effect::{Dispatch, Effect, ScopeId};
use ftsh_machine::event::{Blame, Returned};
use ftsh_machine::{Event, Time};
use ftsh_remote::{
    Branch, Head, HeadOutput, Hello, Identity, Nonce, StoreId, Stream, TransferProgress,
};
use ftsh_syntax::engine::EngineId;

const SIGTERM: i32 = 15;
/// Time from the first message on one stream of a carrier to that on the other.
const STREAMS_WITHIN: Duration = Duration::from_secs(1);

impl SimulatedCluster {
    /// Sends a branch, at once or later if no place is free.
    pub(super) fn dispatch(
        &mut self,
        dispatch: Dispatch,
        shell: &mut Shell,
        world: &mut impl World,
    ) {
        let now = world.now();
        let Some(dispatch) = self.orphans.hold(dispatch, &self.families) else { return };
        let process = dispatch.process;
        match self.outages.choose(&dispatch.on, &self.nodes, &dispatch.avoid, now, NOTICE) {
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
                self.retry_at =
                    if self.waiting.is_empty() { again } else { again.min(self.retry_at) };
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
        let count = if matches!(fault, Some(Fault::StartsTwice(_))) { 2 } else { 1 };
        let start = |index| {
            let nonce = Nonce::new([number as u64, index as u64]);
            There::new(hello.clone(), nonce, fault == Some(Fault::Refuses))
        };
        let starts = (0..count).map(start).collect();
        let mut packed = (*dispatch.branch).clone();
        if self.adds_files && number % 2 == 1 {
            packed.files = modelled_files();
        }
        let branch = Branch { identity, packed, child_env: Vec::new(), store: StoreId::default() };
        let mut head = Head::new(branch, Nonce((number as u128).to_ne_bytes()), self.lease, now);
        // The branch has its place on a node.
        head.expect_hello(now, 0);
        if matches!(dispatch.on.engine, EngineId::Carrier(_)) {
            head.check_streams(STREAMS_WITHIN);
        }
        let job =
            SimulatedJob::new(number, dispatch, head, (index, node), starts, fault, (now, NOTICE));
        shell.copy_io(job.io, dispatch.io);
        self.jobs.insert(number, job);
        for start in 0..count {
            self.visit((number, start), shell, world, |_, _| ());
        }
    }

    /// Sends the waiting branches that now have a place.
    fn send_waiting(&mut self, shell: &mut Shell, world: &mut impl World) {
        for dispatch in std::mem::take(&mut self.waiting) {
            self.dispatch(dispatch, shell, world);
        }
    }

    /// Requests the end of the branches of a scope.
    pub(super) fn end(&mut self, scope: ScopeId, shell: &mut Shell, world: &mut impl World) {
        let families = &self.families;
        self.waiting.retain(|it| !families.is_in(it.scope, scope));
        self.orphans.end(scope, families);
        let concerned = |job: &SimulatedJob| {
            job.awaited != ExpectedEvent::Delivered && families.is_in(job.scope, scope)
        };
        let concerned = self.jobs.iter().filter(|(_, job)| concerned(job));
        for number in concerned.map(|(number, _)| *number).collect::<Vec<_>>() {
            let Some(job) = self.jobs.get_mut(&number) else { continue };
            job.awaited = ExpectedEvent::Nothing;
            job.head.end(SIGTERM);
            self.process_outputs(number, shell, world);
        }
    }

    /// Handles all due work.
    pub fn pass(&mut self, shell: &mut Shell, world: &mut impl World) {
        let now = world.now();
        while self.next_due() <= now {
            for index in 0..self.nodes.len() {
                let node = &mut self.nodes[index];
                if node.wake.take_if(|wake| *wake <= now).is_some() {
                    let shown = Time::after(node.clock.shows(now));
                    let events = node.channels.pass_time(shown);
                    self.deliver_events(now, index, events);
                }
            }
            let due = |job: &SimulatedJob| job.next_due(&self.nodes[job.node]) <= now;
            let due = self.jobs.iter().filter(|(_, job)| due(job));
            for number in due.map(|(number, _)| *number).collect::<Vec<_>>() {
                self.advance(number, shell, world);
            }
            if let Some(held) = self.orphans.pass(now) {
                self.report_empty();
                for dispatch in held {
                    self.dispatch(dispatch, shell, world);
                }
            }
            if self.retry_at <= now && !self.waiting.is_empty() {
                self.send_waiting(shell, world);
            }
            self.jobs.retain(|_, job| !job.is_over());
        }
    }

    /// Delivers events of channels to the shells of a node.
    fn deliver_events(&mut self, now: Time, node: usize, events: Vec<(usize, Event)>) {
        let node = &mut self.nodes[node];
        let shown = node.clock.shows(now);
        for (number, event) in events {
            if let Some(job) = self.jobs.get_mut(&number) {
                job.starts[0].on_channel_event(shown, event);
            }
        }
        if let Some(wake) = node.channels.wake() {
            node.wake = Some(node.clock.moment(wake.elapsed()));
        }
    }

    /// Handles the due work of a branch.
    fn advance(&mut self, number: usize, shell: &mut Shell, world: &mut impl World) {
        let now = world.now();
        let Some(job) = self.jobs.get_mut(&number) else { return };
        if job.dies <= now {
            job.starts.iter_mut().for_each(There::die);
        }
        for start in 0..job.starts.len() {
            let take = |job: &mut SimulatedJob| job.starts[start].inbox.take(now);
            while let Some(message) = self.jobs.get_mut(&number).and_then(take) {
                self.visit((number, start), shell, world, |there, here| match message {
                    FromHead::Bytes(bytes) => there.on_bytes(&bytes, here),
                    FromHead::End => there.on_close(here),
                });
            }
            self.visit((number, start), shell, world, There::advance);
        }
        let awaited = |job: &&mut SimulatedJob| job.awaited != ExpectedEvent::Delivered;
        if !self.jobs.get_mut(&number).as_ref().is_some_and(awaited) {
            return;
        }
        let next = |job: &mut SimulatedJob| job.to_head.take(now).or_else(|| job.copies.take(now));
        while let Some(job) = self.jobs.get_mut(&number)
            && let Some(message) = next(job)
        {
            job.receive(now, message);
            self.process_outputs(number, shell, world);
        }
        let Some(job) = self.jobs.get_mut(&number).filter(awaited) else { return };
        if job.given_up <= now {
            job.given_up = Time::NEVER;
            // The connection ends in the middle of a message.
            if let Some(FromNode::Bytes(stream, mut bytes)) = job.to_head.take(Time::NEVER) {
                bytes.truncate(bytes.len() / 2);
                job.receive(now, FromNode::Bytes(stream, bytes));
            }
            self.process_outputs(number, shell, world);
            let Some(job) = self.jobs.get_mut(&number) else { return };
            job.receive(now, FromNode::End);
            if let Some(Fault::Breaks(_)) = job.fault {
                job.send_to_node(now, &self.nodes[job.node], FromHead::End);
            }
            job.sever();
        }
        let Some(job) = self.jobs.get_mut(&number) else { return };
        job.head.handle_timeout(now);
        self.process_outputs(number, shell, world);
    }

    /// Runs an action on the node, and records the progress of the branch.
    fn visit<W: World>(
        &mut self,
        (number, start): (usize, usize),
        shell: &mut Shell,
        world: &mut W,
        act: impl FnOnce(&mut There, &mut Here<W>),
    ) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let (now, index) = (world.now(), job.node);
        let node = &mut self.nodes[index];
        let (mut events, (name, clock)) = (Vec::new(), (node.name.as_str(), node.clock));
        if !job.starts[start].is_over() {
            let (files, channels) = (&mut *shell, &mut node.channels);
            let events = &mut events;
            act(
                &mut job.starts[start],
                &mut Here { world, files, channels, events, node: name, clock, number },
            );
        }
        let there = &mut job.starts[start];
        let messages = there.take_messages();
        if there.has_begun && there.attempt.is_none() {
            there.attempt = Some(self.attempts.len());
            self.attempts.push(NodeAttempt::new(job, name, now));
            world.note(format_args!("{name}: begins {:?}", job.word));
        }
        for message in messages.into_iter().filter(|_| start == 0) {
            job.send_to_head(now, node, message);
        }
        let there = &mut job.starts[start];
        if let Some(attempt) = there.attempt.map(|it| &mut self.attempts[it])
            && attempt.over.is_none()
            && there.is_over()
        {
            attempt.over = Some(now);
            (attempt.ended, attempt.printed) =
                (there.ended.take(), std::mem::take(&mut there.printed));
            world.note(format_args!("{name}: is over {:?}", job.word));
            events.extend(node.channels.died(number, Time::after(clock.shows(now))));
        }
        self.deliver_events(now, index, events);
    }

    /// Handles the outputs of the head.
    fn process_outputs(&mut self, number: usize, shell: &mut Shell, world: &mut impl World) {
        let now = world.now();
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let node = &self.nodes[job.node];
        while let Some(output) = job.head.poll_output() {
            match output {
                HeadOutput::Write(bytes) => job.send_to_node(now, node, FromHead::Bytes(bytes)),
                HeadOutput::Placed(name) => {
                    job.begins(now, node, NOTICE);
                    if job.awaited == ExpectedEvent::End {
                        let process = job.process;
                        self.events.push_back(Event::Placed { process, node: name });
                    }
                }
                HeadOutput::Recorded => {}
                HeadOutput::Offer(bytes) => {
                    job.send_to_node(now, node, FromHead::Bytes(bytes));
                    job.head.on_progress(now, TransferProgress::Listed(CONTENTS.len() as u64));
                }
                HeadOutput::Send(_) => {
                    job.send_to_node(now, node, FromHead::Bytes(CONTENTS.into()));
                }
                HeadOutput::Receive(first) => {
                    job.gifts = Some(Vec::new());
                    job.receive(now, FromNode::Bytes(Stream::Output, first));
                }
                HeadOutput::Place if job.awaited != ExpectedEvent::End => {
                    let why = "it isn't wanted any more".into();
                    job.head.on_progress(now, TransferProgress::Failed(why));
                }
                HeadOutput::Place => {
                    if let Some(attempt) = job.starts[0].attempt.map(|it| &mut self.attempts[it]) {
                        attempt.placed = true;
                    }
                    job.head.on_progress(now, TransferProgress::Placed);
                }
                HeadOutput::Printed(stream, bytes) => {
                    let descriptor = if stream == Stream::Output { 1 } else { 2 };
                    shell.print(job.io, descriptor, bytes.as_bstr());
                    if let Some(attempt) = job.starts[0].attempt.map(|it| &mut self.attempts[it]) {
                        attempt.received[usize::from(descriptor - 1)].extend_from_slice(&bytes);
                    }
                }
                HeadOutput::Returned(returned) => {
                    job.send_to_node(now, node, FromHead::End);
                    let awaited = std::mem::replace(&mut job.awaited, ExpectedEvent::Delivered);
                    if awaited == ExpectedEvent::End {
                        let (process, returned) = (job.process, with_node_name(returned, node));
                        self.events.push_back(Event::Returned { process, returned });
                    }
                    self.conclude(number, shell, world);
                    return;
                }
            }
        }
    }

    /// Frees the place of a branch, as the result is delivered or needless.
    fn conclude(&mut self, number: usize, shell: &mut Shell, world: &mut impl World) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let io = job.io;
        self.nodes[job.node].used -= 1;
        shell.perform(Effect::CloseIo(io), world);
        self.report_empty();
        self.send_waiting(shell, world);
    }

    /// Reports the scopes that are now empty.
    fn report_empty(&mut self) {
        let away = self.scopes_away();
        let empty = self.families.empty(&away).into_iter();
        self.events.extend(empty.map(|scope| Event::Emptied { scope }));
    }

    /// Ends the head. Returns the scopes of the branches that the head has sent.
    pub fn head_dies(&mut self, now: Time) -> Vec<ScopeId> {
        let scopes = self.scopes_away();
        self.waiting.clear();
        self.orphans.forget_held();
        self.events.clear();
        for job in self.jobs.values_mut().filter(|job| job.awaited != ExpectedEvent::Delivered) {
            job.awaited = ExpectedEvent::Delivered;
            self.nodes[job.node].used -= 1;
            job.send_to_node(now, &self.nodes[job.node], FromHead::End);
        }
        scopes
    }

    /// Resets the scopes and orphans for another machine.
    pub fn forget_scopes(&mut self) {
        (self.families, self.orphans) = (Families::default(), OrphanedBranches::default());
    }
}

/// Adds the node's name to a failure of the node, as engines do.
fn with_node_name(returned: Returned, on: &SimulatedNode) -> Returned {
    match returned {
        Returned::NotBegun { node: None, why, blame: Blame::Node } => {
            Returned::NotBegun { node: Some(on.name.clone()), why, blame: Blame::Node }
        }
        returned => returned,
    }
}

/// Returns the identity of the program, which is the same on all nodes.
fn identity() -> Identity {
    Identity::of(io::empty()).unwrap_or_else(|_| unreachable!("nothing can always be read"))
}
