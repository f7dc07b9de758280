//! The fault-tolerant shell.

// Rust's start-up code reads `/proc/self/maps` for the sake of a message about the stack, which takes 3 % of
// the time of a short script. `ftsh-sys` does what is left of that code.
#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

/// Called by the C library.
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
