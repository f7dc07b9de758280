//! `--answer` and `--call-home`: streams for a job of a queue without streams.
//!
//! The head listens, and starts a program that queues the job. The job calls the head, and runs its
//! command with the streams of the head. Only the first call runs the command, however often the
//! queue starts the job.

mod streams;
mod wire;

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use anyhow::{Error, Result, anyhow, bail};

use self::streams::Streams;
use self::wire::{Home, PacketKind};
use crate::cli::messages::{BlockingIo, end, print_note};
use crate::cli::preview::covered;
use ftsh_machine::Outcome;
use ftsh_process as process;
use ftsh_sys::os_error::plain;

/// Variable with the address of the head and the one-time word.
const CALL_HOME: &str = "FTSH_CALL_HOME";
/// Exit status if the connection breaks.
const BROKEN: u8 = 75;
/// Exit status of a job whose command cannot be started.
const CANNOT_RUN: u8 = 127;

/// Set when the job has called.
static HAS_CALLED: AtomicBool = AtomicBool::new(false);

/// Returns the command of the words, of which there is at least one.
fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn cannot_run(command: &Command, error: &io::Error) -> Error {
    anyhow!("can't run `{}`: {}", command.get_program().display(), plain(error))
}

/// Runs a program that queues a job, waits for the call of the job, and joins the job's streams with
/// those of this process.
pub(super) fn answer(ip: Option<IpAddr>, submit: &[OsString]) -> Result<Outcome> {
    let ip = ip.unwrap_or(Ipv4Addr::LOCALHOST.into());
    if ip.is_unspecified() {
        bail!("no job can call {ip}: --answer needs one address of this machine");
    }
    let listener = TcpListener::bind((ip, 0))
        .map_err(|error| anyhow!("can't listen at {ip}: {}", plain(&error)))?;
    let home = Home::new(listener.local_addr()?)?;
    let mut submit = command(submit);
    submit.env(CALL_HOME, home.to_string()).stdin(Stdio::null()).stdout(io::stderr());
    let mut submitter = submit.spawn().map_err(|error| cannot_run(&submit, &error))?;
    spawn(move || {
        let status = submitter.wait().ok().filter(|status| !status.success());
        // A job that has called does not need the program any more.
        if let Some(status) = status
            && !HAS_CALLED.load(Ordering::SeqCst)
        {
            let code = status.signal().map(|signal| 128 + signal).or(status.code());
            end(Ok(Outcome::Exited(code.unwrap_or(1) as u8)));
        }
    });
    // A stranger fails the greeting.
    let (sender, receiver) = loop {
        if let Ok(call) = listener.accept().and_then(|(stream, _)| home.accept(stream)) {
            break call;
        }
    };
    HAS_CALLED.store(true, Ordering::SeqCst);
    drop(listener);
    let streams = Streams::new(sender);
    streams.carry(0, BlockingIo(io::stdin()));
    let (output, written) = streams.deliver(1, BlockingIo(io::stdout()));
    let (errors, reported) = streams.deliver(2, BlockingIo(io::stderr()));
    let status = streams.receive(receiver, [None, output, errors]).0;
    // The job may end now, even if a reader takes long for the last output.
    streams.end(0);
    let _ = (written.join(), reported.join());
    let code = status.unwrap_or_else(|| {
        print_note("the connection to the job is broken");
        BROKEN
    });
    Ok(Outcome::Exited(code.max(streams.has_failed().into())))
}

/// Runs a command with the streams of the head.
pub(super) fn call_home(
    home: &OsStr,
    words: &[OsString],
    kill_timeout: Duration,
) -> Result<Outcome> {
    let mut command = command(words);
    let home = Home::read(home)?;
    let Some((sender, receiver)) = home.call()? else {
        let address = home.address;
        print_note(&format!("no coordinator waits for this call at {address}, so nothing was run"));
        return Ok(Outcome::Succeeded);
    };
    let streams = Streams::new(sender);
    command.env_remove(CALL_HOME);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (running, is_over) = channel::<()>();
    let (mut outputs, mut receiver, mut reader) = (Vec::new(), Some(receiver), None);
    let ended = covered::attend(|| {
        let child = ftsh_sys::release_signals_of(&mut command).spawn();
        let mut child = child.map_err(|error| cannot_run(&command, &error))?;
        let input = child.stdin.take().and_then(|input| streams.deliver(0, input).0);
        outputs.extend(child.stdout.take().map(|output| streams.carry(1, output)));
        outputs.extend(child.stderr.take().map(|errors| streams.carry(2, errors)));
        let (receiver, pid) = (receiver.take(), child.id().cast_signed());
        reader = Some(spawn(move || {
            // The command sees no end of its input before the signal.
            let _sinks = receiver.map(|it| streams.receive(it, [input, None, None]));
            // The head is gone. This process passes the signal on to the command.
            let _ = ftsh_sys::kill(std::process::id().cast_signed(), libc::SIGTERM);
            if is_over.recv_timeout(kill_timeout) == Err(RecvTimeoutError::Timeout) {
                process::kill_subtree(pid);
            }
        }));
        Ok(child)
    });
    drop(running);
    let code = ended.map_or_else(
        |error| {
            streams.send(PacketKind::Data, 2, format!("ftsh: {error}\n").as_bytes());
            CANNOT_RUN
        },
        |ended| ended.code() as u8,
    );
    for output in outputs {
        let _ = output.join();
    }
    streams.end(code);
    // A connection that is closed before all input was read is reset, and the head may lose output.
    reader.map(JoinHandle::join);
    receiver.map(|receiver| streams.receive(receiver, [const { None }; 3]));
    Ok(Outcome::Exited(code))
}
