//! How a branch is sent away: to which host, by what command, and what the node is told.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::ClusterDriver;
use super::connection::Connection;
use super::engines::{self, Submission};
use super::hosts::Hosts;
use super::remote_branch::{Dispatched, Place, RemoteBranch, ReservedIds};
use super::ship;
use ftsh_machine::driver::Driver;
use ftsh_machine::effect::{Action, Dispatch, Effect, Environment};
use ftsh_machine::event::{Blame, Returned};
use ftsh_machine::{Event, Time};
use ftsh_process as process;
use ftsh_remote::{Branch, Head, Identity, Nonce};
use ftsh_sys::os_error::plain;

/// Why a branch isn't sent, and who is to blame.
type NotSent = (String, Blame);

/// This program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    identity: Identity,
    path: BString,
    /// Its bytes, if it is sent along.
    image: Option<Arc<[u8]>>,
    /// What the engines' commands find.
    pub(super) environment: Arc<Environment>,
}

impl Program {
    fn find(ship: bool) -> io::Result<Self> {
        const OWN: &str = "/proc/self/exe";
        let path = std::env::current_exe()?.into_os_string().into_vec().into();
        let environment = std::env::vars_os()
            .filter(|(name, _)| !engines::is_misleading(name.as_encoded_bytes()))
            .map(|(name, value)| (name.into_vec().into(), value.into_vec().into()))
            .collect::<Environment>()
            .into();
        let (identity, image) = if ship {
            let image = fs::read(OWN)?;
            (Identity::of(&*image)?, Some(image.into()))
        } else {
            (Identity::of(File::open(OWN)?)?, None)
        };
        Ok(Self { identity, path, image, environment })
    }

    /// What runs a branch on a node.
    fn command(&self) -> Vec<BString> {
        match &self.image {
            Some(image) => ship::command(image.len()).into(),
            None => vec![self.path.clone(), "--branch".into()],
        }
    }
}

impl ClusterDriver {
    /// Sends a branch away, now or when a host is free and nothing of it is left from an earlier process; tells
    /// the machine if that can't be.
    pub(super) fn dispatch(&mut self, dispatch: Dispatch) {
        let Some(dispatch) = self.orphans.hold(dispatch, &self.families) else { return };
        let process = dispatch.process;
        if let Err((why, blame)) = self.send(dispatch) {
            let returned = Returned::NotBegun { node: None, why, blame };
            self.ready.push_back(Event::Returned { process, returned });
        }
    }

    /// Sends those that have waited for a host and have one now.
    pub(super) fn send_waiting(&mut self) {
        let mut in_vain = BTreeSet::new();
        for dispatch in std::mem::take(&mut self.waiting) {
            let asked = (dispatch.on.engine, options(&dispatch).to_owned(), dispatch.avoid.clone());
            if in_vain.contains(&asked) {
                self.waiting.push_back(dispatch);
                continue;
            }
            let waiting = self.waiting.len();
            self.dispatch(dispatch);
            if self.waiting.len() > waiting {
                in_vain.insert(asked);
            }
        }
    }

    /// When the first of those that wait for a host needn't avoid some other any more.
    pub(super) fn next_stale(&self) -> Time {
        let now = self.inner.now();
        let until = self.waiting.iter().map(|it| it.avoid_until);
        until.filter(|until| *until > now).min().unwrap_or(Time::NEVER)
    }

    /// Gives one back to the machine that waits for a host while another has room that needn't be avoided any
    /// more.
    pub(super) fn give_back_stale(&mut self) {
        let now = self.inner.now();
        let has_room = |it: &Dispatch| matches!(self.choose(it, &[]), Ok(Some(_)));
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
        let words = engine.submit(&Submission {
            name: &ids.job(self.inner.mark()),
            options: options(&dispatch),
            avoid: &dispatch.avoid,
            command: &program.command(),
            host: place.host.as_deref(),
        });
        let dispatched = Dispatched::of(&dispatch, engine);
        let branch_io = dispatch.io;
        let branch = Branch {
            identity: program.identity,
            packed: *dispatch.branch,
            told: self
                .inner
                .child_env()
                .iter()
                .map(|(name, it)| ((*name).into(), it.clone()))
                .collect(),
        };
        let (mut connection, mut head) =
            self.connect(ids, branch).map_err(|error| (plain(&error), Blame::Engine))?;
        if let Some(image) = program.image {
            connection.send(&mut self.inner, image);
        }
        if let Some(host) = &place.host {
            self.engine(dispatched.engine).hosts.enter(host);
            // Nothing waits there.
            head.called(self.inner.now(), self.sent_along());
        }
        let branch = RemoteBranch::new(ids, dispatched, place, head, connection);
        self.inner.open_apart(ids.scope());
        // What it prints goes where the branch's descriptors lead, also once the machine has closed them.
        self.inner.perform(Effect::Open {
            operation: ids.opening(),
            io: ids.printing_io(),
            base: branch_io,
            directory: None,
            umask: None,
            redirects: Vec::new(),
        });
        let environment = program.environment;
        let submit = Action::Program { words, environment, overrides: Vec::new() };
        self.inner.perform(branch.run(ids.engine(), submit, ids.engine_io(), Vec::new()));
        if dispatched.is_listed {
            let now = self.inner.now();
            self.engine(dispatched.engine).schedule.sent(now);
        }
        self.branches.insert(ids.number(), branch);
        Ok(())
    }

    /// Where a branch goes, if that is for us to choose; none if it waits for a free place.
    fn place(&self, dispatch: &Dispatch) -> Result<Option<Place>, NotSent> {
        if !dispatch.on.engine.lists_hosts() {
            return Ok(Some(Place::default()));
        }
        let chosen = self.choose(dispatch, &dispatch.avoid);
        let chosen = chosen.map_err(|why| (why, Blame::Request))?;
        Ok(chosen.map(|(host, others)| Place { host: Some(host), others, is_settled: false }))
    }

    /// Returns the host for a branch, and true if there are other hosts; none if none has room.
    fn choose(
        &self,
        dispatch: &Dispatch,
        avoid: &[String],
    ) -> Result<Option<(String, bool)>, String> {
        let unused = Hosts::default();
        let hosts = self.engines.get(&dispatch.on.engine).map_or(&unused, |state| &state.hosts);
        hosts.choose(options(dispatch), avoid)
    }

    pub(super) fn new_ids(&mut self) -> ReservedIds {
        self.count += 1;
        ReservedIds::new(self.count)
    }

    pub(super) fn program(&mut self) -> io::Result<Program> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => Ok(self.program.insert(Program::find(self.config.ship)?).clone()),
        }
    }

    /// How many bytes a node reads of this program before it says anything.
    pub(super) fn sent_along(&self) -> usize {
        let image = self.program.as_ref().and_then(|program| program.image.as_ref());
        image.map_or(0, |image| image.len())
    }

    /// The pipes of an engine's command, and the head of what is said over them.
    fn connect(&mut self, ids: ReservedIds, branch: Branch) -> io::Result<(Connection, Head)> {
        let (connection, theirs) = Connection::open(&mut self.inner, ids.first_key())?;
        self.inner.give(ids.engine_io(), theirs)?;
        let [one, other] = [process::random()?, process::random()?];
        let nonce = Nonce((u128::from(one) << 64 | u128::from(other)).to_ne_bytes());
        Ok((connection, Head::new(branch, nonce, self.config.lease, self.inner.now())))
    }
}

/// The script's word for the engine.
fn options(dispatch: &Dispatch) -> &bstr::BStr {
    dispatch.on.options.as_ref().map(|word| word.as_bstr()).unwrap_or_default()
}
