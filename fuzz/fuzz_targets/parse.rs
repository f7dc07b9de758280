//! Fuzz target of the parser for arbitrary bytes: run `just fuzz`.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod checks;

fuzz_target!(|bytes: &[u8]| checks::parse_and_print(bytes));
