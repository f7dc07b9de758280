//! `--lsp`: a language server that knows the programs and variables of this environment.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use anyhow::{Result, anyhow};

use super::PathLookup;
use super::durations::DurationLookup;
use crate::cli::messages::print_message;
use ftsh_ide::known::SessionSnapshot;
use ftsh_ide::lsp::{ServerContext, serve as serve_editor};
use ftsh_machine::Outcome;
use ftsh_process::DurationStore;
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::slug::Slug;
use ftsh_sys::os_error::plain;

/// Serves an editor until the editor closes the connection.
pub(crate) fn serve(
    policy: Policy,
    durations: Option<DurationStore>,
    directory: PathBuf,
    programs: SessionSnapshot,
) -> Result<Outcome> {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        Some((name.into_string().ok()?, Some(value.into_vec().into())))
    });
    let context = ServerContext {
        policy,
        programs: Box::new(PathLookup(programs)),
        durations: Box::new(DurationLookup(durations)),
        variables: variables.collect(),
        directory,
    };
    // The standard library's `Stdin` buffers; this descriptor returns available bytes at once.
    let input = io::stdin().as_fd().try_clone_to_owned();
    let input = input.map_err(|error| anyhow!("no standard input: {}", plain(&error)))?;
    let print = |message: &str| print_message(Slug::System, message);
    let ended = serve_editor(context, File::from(input), io::stdout().lock(), print);
    let was_announced = ended.map_err(|error| anyhow!("{error}; `--lsp` serves editors only"))?;
    Ok(if was_announced { Outcome::Succeeded } else { Outcome::Exited(1) })
}
