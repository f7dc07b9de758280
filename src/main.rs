//! The fault-tolerant shell.

// Rust's start-up code reads `/proc/self/maps` only for a message about the stack. The read takes 3
// % of the time of a short script. `ftsh-sys` does the remaining work of the start-up code.
#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

/// Starts the shell. The C library calls this function.
#[cfg(all(target_env = "gnu", not(test)))]
#[expect(unsafe_code, reason = "the one function of this name")]
#[unsafe(no_mangle)]
extern "C" fn main() -> std::ffi::c_int {
    ftsh::cli::main()
}

#[cfg(not(all(target_env = "gnu", not(test))))]
fn main() {
    ftsh::cli::main()
}
