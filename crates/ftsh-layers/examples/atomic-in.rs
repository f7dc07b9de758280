//! Runs one command with `atomic in DIR…`: `atomic-in DIR… -- COMMAND ARGUMENTS…`.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use ftsh_layers::{Attempt, Directories};
use ftsh_sys::{CStringArray, ChildChange, ExitStatus, Launch};

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("atomic-in: {error}");
            ExitCode::from(125)
        }
    }
}

fn run() -> Result<u8, Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let mut parts = arguments.splitn(2, |argument| argument == "--");
    let directories = parts.next().unwrap_or_default();
    let command = parts.next().filter(|command| !command.is_empty()).ok_or("no command")?;
    let places = Directories::find(directories)?;
    let mark = format!("{:016x}", ftsh_sys::random()?);
    let attempt = Attempt::begin(&places, &mark)?;
    let status = start(&attempt, command)?;
    for change in attempt.changes()? {
        println!("{} {}", change.kind, change.path.display());
    }
    if status == 0 {
        let committed = attempt.commit()?;
        println!("committed: {} changes", committed.changes);
    } else {
        attempt.discard()?;
        println!("discarded");
    }
    Ok(status)
}

/// Runs a command within the attempt, and returns its status.
fn start(
    attempt: &Attempt,
    command: &[std::ffi::OsString],
) -> Result<u8, Box<dyn std::error::Error>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let name = &command[0];
    let program = std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| PathBuf::from(name));
    let program = CString::new(program.as_os_str().as_bytes())?;
    let directory = CString::new(std::env::current_dir()?.as_os_str().as_bytes())?;
    let (mut arguments, mut environment) = (CStringArray::default(), CStringArray::default());
    for word in command {
        arguments.push(&[word.as_bytes()]);
    }
    for (name, value) in std::env::vars_os() {
        environment.push(&[name.as_bytes(), b"=", value.as_bytes()]);
    }
    let launch = Launch {
        program: &program,
        arguments: &arguments,
        environment: &environment,
        directory: Some(&directory),
        descriptors: &[],
        umask: None,
    };
    let pid = ftsh_sys::spawn_within(&launch, attempt.namespaces())?;
    loop {
        match ftsh_sys::wait_for(pid, false)? {
            Some((_, ChildChange::Ended(ExitStatus::Exited(code)))) => return Ok(code as u8),
            Some((_, ChildChange::Ended(ExitStatus::Signaled(signal)))) => {
                return Ok(128 + signal as u8);
            }
            _ => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
}
