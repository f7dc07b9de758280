//! The fault-tolerant shell.

use std::process::ExitCode;

fn main() -> ExitCode {
    ftsh::cli::main()
}
