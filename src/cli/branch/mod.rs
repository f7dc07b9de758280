//! `--branch`: runs a branch of another shell's `forall`. Only shells use this option; see
//! [`ftsh_remote`].

use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

mod files;

use anyhow::{Result, anyhow};
use bstr::{BString, ByteSlice};
use nix::unistd::{close, dup2_stdin, gethostname};
use serde::de::DeserializeOwned;

use self::files::{NoFiles, NodeFiles};
use crate::cli::messages::{self, BlockingIo, NOTHING_WAS_RUN, end};
use crate::cli::options;
use crate::telemetry::Spans;
use ftsh_cluster as cluster;
use ftsh_machine::control::Controller;
use ftsh_machine::driver::{self, Interactive, JobEvent};
use ftsh_machine::packed::BranchEnd;
use ftsh_machine::record::Level;
use ftsh_machine::record::spans::RemoteSpans;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Event, Machine, Outcome, Time};
use ftsh_process as process;
use ftsh_process::non_blocking_writer;
use ftsh_remote::{
    BadFrame, Branch, BranchRecord, ERRORS_MARK, Frames, Go, Hello, Identity, Lease, NodeLine,
    Nonce, OPENING, ToHead, ToNode, frame, merge,
};
use ftsh_sys::os_error::plain;

/// Option of a shell that serves a branch. The command line has no other words.
const OPTION: &str = "--branch";
/// Descriptors that a script can name besides the three standard ones.
const FIRST_OTHER: i32 = 3;
const LAST_OTHER: i32 = 9;
/// Maximum number of spans that the report of a branch contains.
const MAX_SPANS: usize = 2000;
/// Variable that holds the directory of channels.
const CHANNELS: &str = "FTSH_CHANNELS";

/// True if a command line requests a branch.
pub(super) fn is_requested(words: &[OsString]) -> bool {
    matches!(words, [word] if word == OPTION)
}

/// A branch that is ready to begin.
struct PreparedBranch {
    machine: Machine,
    /// Name of the text that contains the `forall`.
    file: Arc<str>,
    config: process::ProcessConfig,
    kill_timeout: Duration,
    /// Time of the dispatch, on the clock of the run.
    at: Duration,
    /// Builder of the spans of the branch, and secrets that they must not contain.
    spans: Option<(Spans, Secrets)>,
    /// Files that travel, if any do.
    files: Option<NodeFiles>,
}

/// Receives a branch from the head, runs the branch, and reports the result.
pub(super) fn serve() -> Result<Outcome> {
    // A branch has three descriptors. An engine or a shipped program may have left more open.
    for number in FIRST_OTHER..=LAST_OTHER {
        let _ = close(number);
    }
    let identity = identity()
        .map_err(|error| anyhow!("can't read the program that is running: {}", plain(&error)))?;
    let node = node_name();
    if !is_opened()? {
        return Ok(Outcome::Succeeded);
    }
    non_blocking_writer::standard_error().print(ERRORS_MARK);
    let mut frames = Frames::<ToNode>::default();
    send(&ToHead::Hello(Hello { identity: identity.clone(), node: node.clone() }))?;
    let prepared = match receive(&mut frames)? {
        None => return Ok(Outcome::Succeeded),
        Some(ToNode::Branch(mut branch)) => {
            let files = match NodeFiles::receive(&mut branch, &mut frames) {
                Ok(files) => files,
                Err(NoFiles::HeadGone) => return Ok(Outcome::Succeeded),
                Err(NoFiles::Refused(reason)) => return refuse(&reason),
            };
            match prepare(*branch, &identity, files) {
                Ok(prepared) => prepared,
                Err(reason) => return refuse(&reason.to_string()),
            }
        }
        Some(_) => return refuse("the head started a branch without sending one"),
    };
    let ready = process::since_boot();
    let start = process::random().and_then(|one| Ok(Nonce::new([one, process::random()?])));
    let start = start.map_err(|error| anyhow!("can't get a random number: {}", plain(&error)))?;
    send(&ToHead::Ready(start))?;
    match receive(&mut frames)? {
        None => Ok(Outcome::Succeeded),
        // A repeated message for another start of the job, which has perhaps begun.
        Some(ToNode::Go(go)) if go.start != start => Ok(Outcome::Succeeded),
        Some(ToNode::Go(go)) => {
            let lease = Lease::new(&go, frames, prepared.kill_timeout, ready);
            if lease.has_passed(process::since_boot()) {
                // The head handles a failure of this write.
                let _ = io::stderr().write_all(NodeLine::TooLate.encode(&go.nonce).as_bytes());
                return Ok(Outcome::Succeeded);
            }
            run(prepared, &go, node, lease)
        }
        Some(_) => refuse("a branch is already running"),
    }
}

fn refuse(reason: &str) -> Result<Outcome> {
    send(&ToHead::Refused(reason.into()))?;
    Ok(Outcome::Exited(NOTHING_WAS_RUN))
}

fn send(message: &ToHead) -> Result<()> {
    let bytes = frame(message).map_err(|error| anyhow!("can't write to the head: {error}"))?;
    let mut out = BlockingIo(io::stdout());
    out.write_all(&bytes)
        .and_then(|()| out.flush())
        .map_err(|error| anyhow!("can't write to the head: {}", plain(&error)))
}

/// Waits for the head. Returns false at the end of the input, and for a second start of the job,
/// which reads what is meant for the first.
fn is_opened() -> Result<bool> {
    let mut first = [0];
    Ok(read(&mut first)? == 1 && first == [OPENING])
}

/// Returns the next message, or none at the end of the input.
fn receive<M: DeserializeOwned>(frames: &mut Frames<M>) -> Result<Option<M>> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let damaged = |error: BadFrame| anyhow!("{error}");
        if let Some(message) = frames.message().map_err(damaged)? {
            return Ok(Some(message));
        }
        match read(&mut bytes)? {
            0 => return Ok(None),
            read => frames.push(&bytes[..read]),
        }
    }
}

/// Reads from the head, unbuffered, because bytes after a message belong to another reader.
fn read(bytes: &mut [u8]) -> Result<usize> {
    loop {
        match nix::unistd::read(io::stdin(), bytes) {
            Err(nix::errno::Errno::EINTR) => {}
            result => {
                return result.map_err(|errno| {
                    anyhow!("can't read from the head: {}", plain(&errno.into()))
                });
            }
        }
    }
}

fn identity() -> io::Result<Identity> {
    let own = File::open("/proc/self/exe");
    Identity::of(own.or_else(|_| File::open(std::env::current_exe()?))?)
}

fn node_name() -> String {
    let own = || gethostname().unwrap_or_default();
    cluster::node_name().unwrap_or_else(own).to_string_lossy().into_owned()
}

fn prepare(
    branch: Branch,
    identity: &Identity,
    files: Option<NodeFiles>,
) -> Result<PreparedBranch> {
    let Branch { identity: theirs, mut packed, child_env, .. } = branch;
    if theirs != *identity {
        return Err(anyhow!("the branch is for ftsh {theirs}, and this is {identity}"));
    }
    let directory = packed.directory.to_path_lossy().into_owned();
    std::env::set_current_dir(packed.directory.to_os_str_lossy()).map_err(|error| {
        anyhow!("can't enter the directory `{}`: {}", directory.display(), plain(&error))
    })?;
    let environment = std::env::vars_os()
        .filter(|(name, _)| !options::is_private(name))
        .filter(|(name, _)| !cluster::is_for_carrier(name.as_encoded_bytes()))
        .map(|(name, value)| (name.into_vec().into(), value.into_vec().into()));
    let prefixes: Vec<_> = cluster::environment_prefixes().collect();
    packed.variables = merge(packed.variables, &packed.unset, &prefixes, environment);
    messages::hide_secrets(packed.config.secrets.clone());
    let (at, kill_timeout) = (packed.at, packed.config.kill_timeout);
    let file = packed.texts.get(packed.place.text).map(|it| Arc::clone(it.source.name()));
    let channels = child_env.iter().find(|(name, _)| name == CHANNELS);
    let channels = channels.map(|(_, directory)| directory.to_path_lossy().into_owned());
    let trace = packed.config.trace.map(Spans::of_branch);
    let spans = trace.map(|spans| (spans, packed.config.secrets.clone()));
    packed.config.log_level = spans.as_ref().map_or(Level::NOTHING, |_| Level::SPANS);
    let machine = Machine::of_branch(packed, at)?;
    let config = process::ProcessConfig {
        child_env: known_variables(child_env),
        kill_timeout: process::KillTimeout::of(kill_timeout).inside(),
        channels,
        durations: process::DurationsConfig::default(),
    };
    let file = file.unwrap_or_default();
    Ok(PreparedBranch { machine, file, config, kill_timeout, at: at.elapsed(), spans, files })
}

/// Returns the variables for nested shells.
fn known_variables(child_env: Vec<(String, BString)>) -> Vec<(&'static str, BString)> {
    let names = || options::SETTINGS.iter().map(|setting| setting.variable).chain([CHANNELS]);
    let known = child_env
        .into_iter()
        .filter_map(|(name, value)| Some((names().find(|known| *known == name)?, value)));
    known.collect()
}

/// Runs a branch while the lease lasts, and reports the result.
fn run(prepared: PreparedBranch, go: &Go, node: String, lease: Lease) -> Result<Outcome> {
    let PreparedBranch { machine, file, config, at, spans, files, .. } = prepared;
    let (nonce, elapsed) = (go.nonce, at + go.waited);
    let cannot_control =
        |error: io::Error| anyhow!("can't receive messages of the head: {}", plain(&error));
    let limit = process::SharedDeadline::at(lease.last_moment()).map_err(cannot_control)?;
    let control = detach_standard_input().map_err(cannot_control)?;
    let link =
        process::ControlLink::new(Box::new(lease), control, limit).map_err(cannot_control)?;
    let execute = move |mut machine: Machine, supervision| {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let clock = Instant::now();
        let log_level = spans.as_ref().map_or(Level::NOTHING, |_| Level::SPANS);
        let spans = Rc::new(RefCell::new(spans));
        if let Some((spans, _)) = &mut *spans.borrow_mut() {
            spans.start(elapsed, began);
        }
        let traced = Rc::clone(&spans);
        let mut driver = process::ProcessDriver::new(
            config,
            process::Attachments {
                file,
                log_level,
                log: Box::new(move |record| {
                    if let Some((spans, secrets)) = &mut *traced.borrow_mut() {
                        spans.add(&record.hide(secrets));
                        spans.limit(MAX_SPANS);
                    }
                }),
                supervision,
                elapsed,
                control: Some(link),
                ..process::Attachments::default()
            },
        )
        .map_err(|error| anyhow!("can't prepare to start commands: {}", plain(&error)))?;
        let outcome = driver::run(&mut machine, &mut *driver);
        driver.kill_survivors();
        let Some(mut ended) = machine.branch_ended_with() else { return Ok(outcome) };
        if let Some((mut spans, _)) = spans.take() {
            spans.finish(Some(&outcome));
            spans.limit(MAX_SPANS);
            ended.spans = RemoteSpans { finished: spans.take(), dropped: spans.take_dropped() };
        }
        let elapsed = clock.elapsed();
        non_blocking_writer::standard_output().print(&NodeLine::OutputEnded.encode(&nonce));
        let files = files.map(Arc::new);
        let no_gifts = match &files {
            Some(files) if ended.end == BranchEnd::Succeeded => {
                match give(&mut driver, Arc::clone(files)) {
                    Ok(no_gifts) => no_gifts,
                    Err(signal) => return Ok(Outcome::Interrupted(signal)),
                }
            }
            _ => None,
        };
        let record = BranchRecord { ended, node, began, elapsed, no_gifts };
        let record = NodeLine::Record(Box::new(record)).encode(&nonce);
        non_blocking_writer::standard_error().print(&record);
        let outcome = driver.flush_on_exit(outcome);
        drop(files);
        if !non_blocking_writer::is_quiet() {
            // The reader is gone or too slow.
            return Ok(outcome);
        }
        // All output is written. With another status, `srun` would print a message, perhaps before
        // the record. With a death by a signal, `srun` may close the connection before the record
        // has arrived.
        Ok(Outcome::Succeeded)
    };
    let options =
        process::SupervisorOptions { limit: Some(limit), ..process::SupervisorOptions::default() };
    process::supervise(options, move |supervision| -> Infallible {
        end(execute(machine, supervision))
    })
}

/// Writes the files that a branch gives while the lease is extended. Returns the reason if a file is
/// missing. Fails if a signal ends the branch meanwhile.
fn give(driver: &mut process::ProcessDriver, files: Arc<NodeFiles>) -> Result<Option<String>, i32> {
    let Ok(mut job) = driver.begin(move || files.give()) else {
        return Ok(Some("can't start a thread for the files of the branch".into()));
    };
    loop {
        match driver.wait_for_job(&mut job, Time::NEVER) {
            JobEvent::Answer(given) => return Ok(given.err()),
            JobEvent::Event(Event::Interrupted(signal)) => return Err(signal),
            JobEvent::Event(_) | JobEvent::StatusRequested | JobEvent::Timeout => {}
        }
    }
}

/// Replaces standard input by `/dev/null`, because the branch must not read messages of the head.
/// Returns the descriptor that the messages come from.
fn detach_standard_input() -> io::Result<OwnedFd> {
    let control = process::duplicate(io::stdin().as_fd())?;
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(control)
}
