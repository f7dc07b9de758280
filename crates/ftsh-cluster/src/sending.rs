//! Dispatch of branches: the choice of the host, the engine's command, and the message to the node.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::Duration;

use bstr::{BString, ByteSlice};

use super::ClusterDriver;
use super::carried::Carried;
use super::connection::Connection;
use super::engines::{self, Engine, Submission};
use super::hosts::Hosts;
use super::remote_branch::{Dispatched, HostPlace, RemoteBranch, ReservedIds};
use super::ship;
use ftsh_machine::driver::Driver;
use ftsh_machine::effect::{Action, Directory, Dispatch, Effect, Environment, TaskId};
use ftsh_machine::event::{Blame, Returned};
use ftsh_machine::{Event, Time};
use ftsh_process::{self as process, CarriedJob, Digests};
use ftsh_remote::{Branch, Head, Identity, Nonce, OPENING, StoreId};
use ftsh_syntax::engine::EngineId;
use ftsh_sys::os_error::plain;

/// Time from the first message on one stream of a node to that on the other.
const STREAMS_WITHIN: Duration = Duration::from_secs(1);

/// Reason why a branch cannot be sent, and the cause.
type NotSent = (String, Blame);

/// This program, as nodes run the program.
#[derive(Clone, Debug)]
pub(super) struct ShellProgram {
    identity: Identity,
    path: BString,
    /// Bytes of the program, if `--ship` is set.
    image: Option<Arc<[u8]>>,
    /// Environment of the engines' commands.
    pub(super) environment: Arc<Environment>,
}

impl ShellProgram {
    fn find(ship: bool) -> io::Result<Self> {
        const OWN_PROGRAM: &str = "/proc/self/exe";
        let path = std::env::current_exe()?.into_os_string().into_vec().into();
        let environment = std::env::vars_os()
            .filter(|(name, _)| !engines::is_misleading(name.as_encoded_bytes()))
            .map(|(name, value)| (name.into_vec().into(), value.into_vec().into()))
            .collect::<Environment>()
            .into();
        let (identity, image) = if ship {
            let image = fs::read(OWN_PROGRAM)?;
            (Identity::of(&*image)?, Some(image.into()))
        } else {
            (Identity::of(File::open(OWN_PROGRAM)?)?, None)
        };
        Ok(Self { identity, path, image, environment })
    }

    /// Returns the command that runs a branch on a node.
    fn command(&self) -> Vec<BString> {
        match &self.image {
            Some(image) => ship::command(image.len()).into(),
            None => vec![self.path.clone(), "--branch".into()],
        }
    }
}

impl ClusterDriver {
    /// Sends a branch at once, or later if no host is free or an earlier process's branch may still
    /// run. Reports a branch that cannot be sent.
    pub(super) fn dispatch(&mut self, dispatch: Dispatch) {
        let Some(dispatch) = self.orphans.hold(dispatch, &self.families) else { return };
        let process = dispatch.process;
        if let Err((why, blame)) = self.send(dispatch) {
            let returned = Returned::NotBegun { node: None, why, blame };
            self.ready.push_back(Event::Returned { process, returned });
        }
    }

    /// Sends the waiting branches that now have a host.
    pub(super) fn send_waiting(&mut self) {
        let mut without_host = BTreeSet::new();
        for dispatch in std::mem::take(&mut self.waiting) {
            let wanted =
                (dispatch.on.engine, options(&dispatch).to_owned(), dispatch.avoid.clone());
            if without_host.contains(&wanted) {
                self.waiting.push_back(dispatch);
                continue;
            }
            let waiting = self.waiting.len();
            self.dispatch(dispatch);
            if self.waiting.len() > waiting {
                without_host.insert(wanted);
            }
        }
    }

    /// Returns the next time at which a waiting branch may use an avoided host again.
    pub(super) fn next_stale(&self) -> Time {
        let now = self.inner.now();
        let until = self.waiting.iter().map(|it| it.avoid_until);
        until.filter(|until| *until > now).min().unwrap_or(Time::NEVER)
    }

    /// Returns a waiting branch to the machine if the time to avoid hosts is over and a host is
    /// free.
    pub(super) fn return_stale(&mut self) {
        let now = self.inner.now();
        let has_room = |it: &Dispatch| {
            let hosts = it.on.hosts().ok().flatten();
            hosts.is_some_and(|hosts| self.choose(it.on.engine, &hosts, &[]).is_some())
        };
        let is_stale = |it: &Dispatch| it.avoid_until <= now && has_room(it);
        if let Some(at) = self.waiting.iter().position(is_stale)
            && let Some(Dispatch { process, .. }) = self.waiting.remove(at)
        {
            let why = "a host needn't be avoided any more".into();
            let returned = Returned::NotBegun { node: None, why, blame: Blame::Stale };
            self.ready.push_back(Event::Returned { process, returned });
        }
    }

    fn send(&mut self, dispatch: Dispatch) -> Result<(), NotSent> {
        let word = options(&dispatch).to_str_lossy();
        if let Some(why) = dispatch.on.engine.argument_error(&word) {
            return Err((why, Blame::Request));
        }
        let Some(place) = self.place(&dispatch)? else {
            self.waiting.push_back(dispatch);
            return Ok(());
        };
        let program = self.program().map_err(|error| (plain(&error), Blame::Request))?;
        let ids = self.new_ids();
        let engine = self.engine(dispatch.on.engine).engine;
        let job = ids.job(self.inner.tag_name());
        let submission = Submission {
            engine: dispatch.on.engine,
            name: &job,
            options: options(&dispatch),
            avoid: &dispatch.avoid,
            command: &program.command(),
            host: place.host.as_deref(),
        };
        let (words, overrides) = (engine.submit(&submission), engine.variables(&submission));
        let carried = self.carried(&dispatch, engine, &job);
        let dispatched = Dispatched::of(&dispatch, engine);
        // Hosts outlive their branches, and mostly receive more. Another engine's node may be gone.
        let linger = place.host.as_ref().map_or(Duration::ZERO, |_| self.config.lease);
        let branch_io = dispatch.io;
        let branch = Branch {
            identity: program.identity,
            packed: *dispatch.branch,
            child_env: self
                .inner
                .child_env()
                .iter()
                .map(|(name, it)| ((*name).into(), it.clone()))
                .collect(),
            store: StoreId { linger, ..self.store().map_err(|it| (plain(&it), Blame::Request))? },
        };
        let (mut connection, mut head) = self
            .connect(ids, branch, carried.is_some())
            .map_err(|error| (plain(&error), Blame::Engine))?;
        if let Some(image) = program.image {
            connection.send(&mut self.inner, image);
        }
        connection.write(&mut self.inner, &[OPENING]);
        if let Some(host) = &place.host {
            self.engine(dispatched.engine).hosts.enter(host);
            // A host has no queue. A carrier says when the job is on the host.
            if carried.is_none() {
                head.expect_hello(self.inner.now(), self.sent_along());
            }
        }
        let mut branch = RemoteBranch::new(ids, dispatched, place, head, connection, job);
        if carried.is_some() {
            branch.head.check_streams(STREAMS_WITHIN);
        }
        branch.carried = carried;
        self.inner.open_apart(ids.scope());
        // Output goes to the branch's descriptors, even after the machine has closed these
        // descriptors.
        self.inner.perform(Effect::Open {
            operation: ids.opening(),
            io: ids.printing_io(),
            base: branch_io,
            directory: Directory::default(),
            umask: None,
            redirects: Vec::new(),
        });
        let environment = program.environment;
        let submit = Action::Program { words, environment, overrides };
        self.inner.perform(branch.run(ids.engine(), submit, ids.engine_io(), Vec::new()));
        if dispatched.is_listed {
            let now = self.inner.now();
            self.engine(dispatched.engine).schedule.sent(now);
        }
        self.branches.insert(ids.number(), branch);
        Ok(())
    }

    /// Returns the place of a branch. The place has a host only if the driver chooses hosts.
    /// Returns none if no host is free.
    fn place(&self, dispatch: &Dispatch) -> Result<Option<HostPlace>, NotSent> {
        let hosts = dispatch.on.hosts().map_err(|why| (why, Blame::Request))?;
        let Some(hosts) = hosts else { return Ok(Some(HostPlace::default())) };
        let chosen = self.choose(dispatch.on.engine, &hosts, &dispatch.avoid);
        Ok(chosen.map(|(host, others)| HostPlace { host: Some(host), others, start_ended: false }))
    }

    /// Returns the host for a branch, and true if there are other hosts. Returns none if no host
    /// has a free place.
    fn choose(
        &self,
        engine: EngineId,
        hosts: &[(String, u64)],
        avoid: &[String],
    ) -> Option<(String, bool)> {
        let unused = Hosts::default();
        let used = self.engines.get(&engine).map_or(&unused, |state| &state.hosts);
        used.choose(hosts, avoid)
    }

    /// Registers the job of a branch, if a carrier will have the job.
    fn carried(&self, dispatch: &Dispatch, engine: &dyn Engine, name: &str) -> Option<Carried> {
        let job = engine.is_carrier().then(|| CarriedJob {
            program: along_path(&engine.program(dispatch.on.engine)),
            words: options(dispatch).to_owned(),
            name: name.to_owned(),
        })?;
        let (note, sent) = (self.inner.carried_jobs().note(job), self.sent_along());
        Some(Carried::new(Some(note), self.inner.now(), sent))
    }

    /// Starts a command of an engine apart from all branches, without input.
    pub(super) fn start_apart(
        &mut self,
        task: TaskId,
        words: Vec<BString>,
        environment: Arc<Environment>,
        overrides: Vec<(BString, BString)>,
    ) -> io::Result<(ReservedIds, Connection)> {
        let ids = self.new_ids();
        let (mut connection, theirs) = Connection::open(&mut self.inner, ids.first_key(), false)?;
        connection.close_input(&mut self.inner);
        self.inner.add_table(ids.engine_io(), theirs)?;
        self.inner.open_apart(ids.scope());
        let action = Action::Program { words, environment, overrides };
        let (process, io) = (ids.engine(), ids.engine_io());
        self.inner.perform(ids.run((task, 0), process, action, io, Vec::new()));
        Ok((ids, connection))
    }

    pub(super) fn new_ids(&mut self) -> ReservedIds {
        self.count += 1;
        ReservedIds::new(self.count)
    }

    pub(super) fn program(&mut self) -> io::Result<ShellProgram> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => Ok(self.program.insert(ShellProgram::find(self.config.ship)?).clone()),
        }
    }

    /// Returns the store of this run on nodes, with a secret key.
    fn store(&mut self) -> io::Result<StoreId> {
        if self.store.name.is_empty() {
            let [name, one, other] = [(); 3].map(|()| process::random());
            let key = Nonce::new([one?, other?]).0;
            self.store = StoreId { name: format!("{:016x}", name?), key, linger: Duration::ZERO };
            self.digests = Arc::new(Digests::new(key));
        }
        Ok(self.store.clone())
    }

    /// Returns the number of bytes that a node reads before the node can send a message.
    pub(super) fn sent_along(&self) -> usize {
        let image = self.program.as_ref().and_then(|program| program.image.as_ref());
        image.map_or(0, |image| image.len())
    }

    /// Opens the pipes of an engine's command, and creates the head of the conversation.
    fn connect(
        &mut self,
        ids: ReservedIds,
        branch: Branch,
        is_carrier: bool,
    ) -> io::Result<(Connection, Head)> {
        let first_key = ids.first_key();
        let (connection, theirs) = Connection::open(&mut self.inner, first_key, is_carrier)?;
        self.inner.add_table(ids.engine_io(), theirs)?;
        let nonce = Nonce::new([process::random()?, process::random()?]);
        Ok((connection, Head::new(branch, nonce, self.config.lease, self.inner.now())))
    }
}

/// Returns the path of a program, or the name if the program is missing.
fn along_path(name: &str) -> String {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = std::env::split_paths(&directories).map(|directory| directory.join(name));
    let found = paths.find(|path| path.is_file()).and_then(|path| std::path::absolute(path).ok());
    found.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or(name.to_owned())
}

/// Returns the argument of the engine in the script.
fn options(dispatch: &Dispatch) -> &bstr::BStr {
    dispatch.on.options.as_ref().map(|word| word.as_bstr()).unwrap_or_default()
}
