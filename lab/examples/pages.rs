//! Writes the manual pages and the completions of `ftsh-lab` into a folder, `dist` if none is named.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap_complete::Shell;

fn main() -> io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "dist".into()));
    fs::create_dir_all(&folder)?;
    let command = ftsh_lab::cli::command();
    // A page of its own for each scenario, as `ftsh-lab-advise(1)`.
    clap_mangen::generate_to(command.clone().disable_help_subcommand(true), &folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command.clone(), "ftsh-lab", &folder)?;
    }
    Ok(())
}
