//! Programs that take the place of others in the commands of a storm, however a command starts them.
//!
//! A directory precedes `PATH` of all commands, so that `env`, `timeout`, `sh -c` and scripts find the
//! programs there. A program runs its model, or notes that the real one runs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use bstr::BString;

use super::inside::StormFiles;
use ftsh_machine::Time;
use ftsh_models::CommandModel;
use ftsh_storm::{SharedModels, TALKING};
use ftsh_sys::os_error::plain;

/// First argument of such a program. The directory of the storm, the name and the arguments follow.
const PROGRAM_ARGUMENT: &str = "--program-in-storm";

/// Name of the directory.
const DIRECTORY: &str = "programs";

/// Exit status of a program that cannot be executed.
const NOT_FOUND: i32 = 127;

/// Creates the programs: those that have a model, and those that talk to others.
pub(super) fn create(work: &Path, models: &[String]) -> Result<PathBuf> {
    let directory = work.join(DIRECTORY);
    fs::create_dir(&directory).context("--storm: the directory of programs")?;
    let shell = env::current_exe().context("--storm: the path of this program")?;
    let quoted = |path: &Path| path.to_string_lossy().replace('\'', "'\\''");
    let text = |name: &str| {
        let (shell, work) = (quoted(&shell), quoted(work));
        format!("#!/bin/sh\nexec '{shell}' {PROGRAM_ARGUMENT} '{work}' '{name}' \"$@\"\n")
    };
    let models = models.iter().filter_map(|it| it.parse::<CommandModel>().ok());
    let named = models.filter_map(|it| it.words.into_iter().next());
    let named = named.filter(|name| !name.contains(['/', '*', '?', '\'']));
    let talking = TALKING.iter().map(|name| (*name).to_owned());
    for name in named.chain(talking.filter(|name| find(name.as_ref(), &directory).is_some())) {
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o755)
            .open(directory.join(&name))?;
        file.write_all(text(&name).as_bytes())?;
    }
    Ok(directory)
}

/// Returns the program with this name along `PATH`, outside of a directory.
fn find(name: &OsStr, except: &Path) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let all = env::split_paths(&path).filter(|it| it != except).map(|it| it.join(name));
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    all.into_iter().find(is_program)
}

/// Takes the place of a program, if the command line requests it. Comes before this process changes any
/// setting that a program inherits.
pub(in crate::cli) fn serve_program() {
    let mut words = env::args_os().skip(1);
    if words.next().is_some_and(|it| it == PROGRAM_ARGUMENT)
        && let (Some(work), Some(name)) = (words.next(), words.next())
    {
        std::process::exit(run(Path::new(&work), &name, words.collect()));
    }
}

/// Runs the model of a command, or else the real program. Returns the exit status.
fn run(work: &Path, name: &OsStr, arguments: Vec<OsString>) -> i32 {
    let files = StormFiles::new(work);
    let words = [name].into_iter().chain(arguments.iter().map(OsString::as_os_str));
    let words: Vec<BString> = words.map(|it| it.as_bytes().into()).collect();
    // The time is that of the other program, so a model takes none, and has no outages or hangs.
    let spec = files.read_spec().ok();
    if let Some(end) = spec.and_then(|spec| SharedModels::new(&spec).next_run(&words, Time::NEVER))
    {
        let is_printed = io::stdout().write_all(&end.prints).is_ok();
        return if is_printed { end.status } else { 1 };
    }
    let note = File::options().append(true).create(true).open(&files.real);
    let _ = note.and_then(|mut file| file.write_all(format!("{}\n", name.display()).as_bytes()));
    let directory = work.join(DIRECTORY);
    let error = match find(name, &directory) {
        Some(path) => Command::new(path).arg0(name).args(arguments).exec(),
        None => io::ErrorKind::NotFound.into(),
    };
    eprintln!("{}: {}", name.display(), plain(&error));
    NOT_FOUND
}
