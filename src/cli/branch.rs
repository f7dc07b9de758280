//! `--branch`: runs a branch of another shell's `forall`. People don't type that; see [`ftsh_remote`].

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use bstr::{BString, ByteSlice};
use nix::unistd::{close, dup2_stdin, gethostname};

use super::patient::Patient;
use super::{end, messages, options};
use ftsh_cluster as cluster;
use ftsh_machine::control::Controller;
use ftsh_machine::driver::{self, Interactive};
use ftsh_machine::record::Level;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Machine, Outcome, Time};
use ftsh_process as process;
use ftsh_process::non_blocking_writer;
use ftsh_remote::{
    BadFrame, Branch, Frames, Go, Hello, Identity, Lease, Record, ToHead, ToNode, frame, merge,
    too_late,
};
use ftsh_sys::os_error::plain;

/// What says that this is wanted; nothing may stand beside it.
const OPTION: &str = "--branch";
/// The descriptors that a script can name beside those of a branch.
const FIRST_OTHER: i32 = 3;
const LAST_OTHER: i32 = 9;
/// Names the directory of channels.
const CHANNELS: &str = "FTSH_CHANNELS";

/// Whether a command line asks for that.
pub fn is_asked_for(words: &[OsString]) -> bool {
    matches!(words, [word] if word == OPTION)
}

/// A branch that can begin.
struct Prepared {
    machine: Machine,
    /// The text that its `forall` stands in.
    file: String,
    config: process::ProcessConfig,
    kill_timeout: Duration,
    /// When it was to begin, on the clock of its run.
    at: Duration,
}

/// Talks to the head, runs the branch and says how it ended.
pub fn serve() -> Result<Outcome> {
    // A branch has three descriptors. An engine may have left more, and a program that was sent its own.
    for number in FIRST_OTHER..=LAST_OTHER {
        let _ = close(number);
    }
    let identity = identity()
        .map_err(|error| anyhow!("can't read the program that is running: {}", plain(&error)))?;
    let node = node_name();
    let mut heard = Frames::<ToNode>::default();
    say(&ToHead::Hello(Hello { identity: identity.clone(), node: node.clone() }))?;
    let prepared = match hear(&mut heard)? {
        None => return Ok(Outcome::Succeeded),
        Some(ToNode::Branch(branch)) => match prepare(*branch, &identity) {
            Ok(prepared) => prepared,
            Err(reason) => return refuse(&reason.to_string()),
        },
        Some(_) => return refuse("there is no branch that could begin"),
    };
    let ready = process::since_boot();
    say(&ToHead::Ready)?;
    match hear(&mut heard)? {
        None => Ok(Outcome::Succeeded),
        Some(ToNode::Go(go)) => {
            let lease = Lease::new(&go, heard, prepared.kill_timeout, ready);
            if lease.has_passed(process::since_boot()) {
                // Whether anybody hears that is the head's affair.
                let _ = io::stderr().write_all(too_late(&go.nonce).as_bytes());
                return Ok(Outcome::Succeeded);
            }
            run(prepared, &go, node, lease)
        }
        Some(_) => refuse("there is a branch already"),
    }
}

fn refuse(reason: &str) -> Result<Outcome> {
    say(&ToHead::Refused(reason.into()))?;
    Ok(Outcome::Exited(super::NOTHING_WAS_RUN))
}

fn say(message: &ToHead) -> Result<()> {
    let bytes = frame(message).map_err(|error| anyhow!("can't answer: {error}"))?;
    let mut out = Patient(io::stdout());
    out.write_all(&bytes)
        .and_then(|()| out.flush())
        .map_err(|error| anyhow!("can't answer: {}", plain(&error)))
}

/// The next message; none if there will be no more.
fn hear(heard: &mut Frames<ToNode>) -> Result<Option<ToNode>> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let damaged = |error: BadFrame| anyhow!("{error}");
        if let Some(message) = heard.message().map_err(damaged)? {
            return Ok(Some(message));
        }
        // Not buffered: what comes later is somebody else's.
        match nix::unistd::read(io::stdin(), &mut bytes) {
            Ok(0) => return Ok(None),
            Ok(read) => heard.push(&bytes[..read]),
            Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(anyhow!("can't listen: {}", plain(&errno.into()))),
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

fn prepare(branch: Branch, identity: &Identity) -> Result<Prepared> {
    let Branch { identity: theirs, mut packed, child_env } = branch;
    if theirs != *identity {
        return Err(anyhow!("the branch is for ftsh {theirs}, and this is {identity}"));
    }
    let directory = packed.directory.to_path_lossy().into_owned();
    std::env::set_current_dir(packed.directory.to_os_str_lossy()).map_err(|error| {
        anyhow!("can't enter the directory `{}`: {}", directory.display(), plain(&error))
    })?;
    let environment = std::env::vars_os()
        .filter(|(name, _)| !options::is_private(name))
        .map(|(name, value)| (name.into_vec().into(), value.into_vec().into()));
    let prefixes: Vec<_> = cluster::environment_prefixes().collect();
    packed.variables = merge(packed.variables, &packed.unset, &prefixes, environment);
    let settings = &packed.settings;
    let (names, given) = (settings.redacted.clone(), &settings.given);
    let secrets = Secrets::of_parts(names, given, &settings.secret);
    messages::keep_secret(secrets.clone());
    let (at, kill_timeout) = (packed.at, settings.kill_timeout);
    let file = packed.texts.get(packed.place.text).map(|it| it.name.clone()).unwrap_or_default();
    let channels = child_env.iter().find(|(name, _)| name == CHANNELS);
    let channels = channels.map(|(_, directory)| directory.to_path_lossy().into_owned());
    let machine = Machine::of_branch(packed, Level::NOTHING, secrets, Time::after(at))?;
    let config = process::ProcessConfig {
        child_env: known(child_env),
        kill_timeout: process::KillTimeout::of(kill_timeout).inside(),
        channels,
    };
    Ok(Prepared { machine, file, config, kill_timeout, at })
}

/// Returns the variables for nested shells.
fn known(child_env: Vec<(String, BString)>) -> Vec<(&'static str, BString)> {
    let names =
        || options::TABLE.into_iter().filter_map(|option| option.variable).chain([CHANNELS]);
    let known = child_env
        .into_iter()
        .filter_map(|(name, value)| Some((names().find(|known| *known == name)?, value)));
    known.collect()
}

/// Runs a branch as long as its head lets it, and says how it ended.
fn run(prepared: Prepared, go: &Go, node: String, lease: Lease) -> Result<Outcome> {
    let Prepared { machine, file, config, at, .. } = prepared;
    let (nonce, elapsed) = (go.nonce, at + go.waited);
    let not_overseen = |error: io::Error| anyhow!("can't listen to the head: {}", plain(&error));
    let limit = process::Limit::at(lease.last_moment()).map_err(not_overseen)?;
    let voice = part_with_standard_input().map_err(not_overseen)?;
    let oversight = process::Oversight::new(Box::new(lease), voice, limit).map_err(not_overseen)?;
    let conduct = move |mut machine: Machine, supervision| {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let clock = Instant::now();
        let mut driver = process::ProcessDriver::new(
            config,
            process::Attachments {
                file: file.into(),
                supervision,
                elapsed,
                oversight: Some(oversight),
                ..process::Attachments::default()
            },
        )
        .map_err(|error| anyhow!("can't get ready to start commands: {}", plain(&error)))?;
        let outcome = driver::run(&mut machine, &mut driver);
        driver.outlast_survivors();
        let Some(ended) = machine.branch_ended_with() else { return Ok(outcome) };
        let record = Record { ended, node, began, elapsed: clock.elapsed() };
        non_blocking_writer::standard_error().say(&record.to_line(&nonce));
        let outcome = driver.flush_on_exit(outcome);
        if !non_blocking_writer::is_quiet() {
            // Nobody reads that, and somebody is impatient.
            return Ok(outcome);
        }
        // All is said. Of another status `srun` would speak, perhaps before it passes the record on; of a
        // death by a signal it hears before it has passed that on, and gives the connection up.
        Ok(Outcome::Succeeded)
    };
    let options =
        process::SupervisorOptions { limit: Some(limit), ..process::SupervisorOptions::default() };
    process::supervise(options, move |supervision| -> Infallible {
        end(conduct(machine, supervision))
    })
}

/// Puts nothing where the head's voice comes from, which is none of the branch's business. Returns the
/// voice.
fn part_with_standard_input() -> io::Result<OwnedFd> {
    let voice = process::duplicate(io::stdin().as_fd())?;
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(voice)
}
