//! The fault-tolerant shell.

fn main() {
    ftsh::cli::main()
}
