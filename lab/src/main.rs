//! The backoff laboratory.

use std::process::ExitCode;

fn main() -> ExitCode {
    ftsh_lab::cli::main()
}
